// Every element type: names, sizes, categories, and the only switch over them.
#pragma once
#include <cstdint>
#include <iosfwd>
#include <type_traits>

#include "taper/core/base/error.h"
#include "taper/core/base/half.h"

namespace taper {

// LibTorch's names stand beside ours: ScalarType::Float.
enum class DType : std::uint8_t {
  kFloat64,
  kFloat32,
  kFloat16,
  kBFloat16,
  kInt64,
  kInt32,
  kUInt8,
  kBool,
  Double = kFloat64,     // NOLINT(readability-identifier-naming)
  Float = kFloat32,      // NOLINT(readability-identifier-naming)
  Half = kFloat16,       // NOLINT(readability-identifier-naming)
  BFloat16 = kBFloat16,  // NOLINT(readability-identifier-naming)
  Long = kInt64,         // NOLINT(readability-identifier-naming)
  Int = kInt32,          // NOLINT(readability-identifier-naming)
  Byte = kUInt8,         // NOLINT(readability-identifier-naming)
  Bool = kBool,          // NOLINT(readability-identifier-naming)
};

using ScalarType = DType;  // LibTorch's name
using Dtype = DType;

inline constexpr DType kFloat64 = DType::kFloat64, kDouble = kFloat64;
inline constexpr DType kFloat32 = DType::kFloat32, kFloat = kFloat32, kF32 = kFloat32;
inline constexpr DType kFloat16 = DType::kFloat16, kHalf = kFloat16, kF16 = kFloat16;
inline constexpr DType kBFloat16 = DType::kBFloat16;
inline constexpr DType kInt64 = DType::kInt64, kLong = kInt64, kI64 = kInt64;
inline constexpr DType kInt32 = DType::kInt32, kInt = kInt32, kI32 = kInt32;
inline constexpr DType kUInt8 = DType::kUInt8, kByte = kUInt8, kU8 = kUInt8;
inline constexpr DType kBool = DType::kBool;

inline constexpr int kNumDTypes = 8;

// Promotion goes bool < integer < floating (docs/tensors.md).
enum class DTypeCategory : std::uint8_t { kBoolean, kInteger, kFloating };

// Sizes are counted in bits per block of elements, so that a 4-bit type is a row and no exception.
struct DTypeInfo {
  const char* name;        // "f32", as our messages print it
  const char* torch_name;  // "Float", as LibTorch prints it
  std::int32_t bits;       // per block
  std::int32_t block;      // elements per block
  DTypeCategory category;
};

inline constexpr DTypeInfo kDTypeInfo[kNumDTypes] = {
    {"f64", "Double", 64, 1, DTypeCategory::kFloating},
    {"f32", "Float", 32, 1, DTypeCategory::kFloating},
    {"f16", "Half", 16, 1, DTypeCategory::kFloating},
    {"bf16", "BFloat16", 16, 1, DTypeCategory::kFloating},
    {"i64", "Long", 64, 1, DTypeCategory::kInteger},
    {"i32", "Int", 32, 1, DTypeCategory::kInteger},
    {"u8", "Byte", 8, 1, DTypeCategory::kInteger},
    {"bool", "Bool", 8, 1, DTypeCategory::kBoolean},
};

constexpr const DTypeInfo& info(DType dtype) {
  return kDTypeInfo[static_cast<int>(dtype)];
}

constexpr std::int64_t element_size(DType dtype) {
  return info(dtype).bits / 8;
}

constexpr bool is_floating_point(DType dtype) {
  return info(dtype).category == DTypeCategory::kFloating;
}

constexpr bool is_integral(DType dtype, bool include_bool = false) {
  return info(dtype).category == DTypeCategory::kInteger || (include_bool && dtype == DType::kBool);
}

inline void append(std::string& out, DType dtype) {
  out += info(dtype).name;
}

// The C++ type's name, as LibTorch prints x.dtype(): "float", "c10::Half".
std::ostream& operator<<(std::ostream& out, DType dtype);

// The C++ type of each dtype, and back.
template <DType> struct CppTypeOf;
template <> struct CppTypeOf<DType::kFloat64> : std::type_identity<double> {};
template <> struct CppTypeOf<DType::kFloat32> : std::type_identity<float> {};
template <> struct CppTypeOf<DType::kFloat16> : std::type_identity<Half> {};
template <> struct CppTypeOf<DType::kBFloat16> : std::type_identity<BFloat16> {};
template <> struct CppTypeOf<DType::kInt64> : std::type_identity<std::int64_t> {};
template <> struct CppTypeOf<DType::kInt32> : std::type_identity<std::int32_t> {};
template <> struct CppTypeOf<DType::kUInt8> : std::type_identity<std::uint8_t> {};
template <> struct CppTypeOf<DType::kBool> : std::type_identity<bool> {};

// int is i32, long and long long are i64, as element types of tensor({...}) and item<T>().
template <class T> constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, double>) return DType::kFloat64;
  else if constexpr (std::is_same_v<T, float>) return DType::kFloat32;
  else if constexpr (std::is_same_v<T, Half>) return DType::kFloat16;
  else if constexpr (std::is_same_v<T, BFloat16>) return DType::kBFloat16;
  else if constexpr (std::is_same_v<T, bool>) return DType::kBool;
  else if constexpr (std::is_same_v<T, std::uint8_t>) return DType::kUInt8;
  else if constexpr (std::is_integral_v<T> && sizeof(T) == 4) return DType::kInt32;
  else if constexpr (std::is_integral_v<T> && sizeof(T) == 8) return DType::kInt64;
  else static_assert(!sizeof(T), "no dtype holds this C++ type");
}

// Calls fn(std::type_identity<T>{}) with the C++ type of `dtype`.
template <class Fn> [[gnu::always_inline]] inline decltype(auto) visit_dtype(DType dtype, Fn&& fn) {
  switch (dtype) {
    case DType::kFloat64: return fn(std::type_identity<double>{});
    case DType::kFloat32: return fn(std::type_identity<float>{});
    case DType::kFloat16: return fn(std::type_identity<Half>{});
    case DType::kBFloat16: return fn(std::type_identity<BFloat16>{});
    case DType::kInt64: return fn(std::type_identity<std::int64_t>{});
    case DType::kInt32: return fn(std::type_identity<std::int32_t>{});
    case DType::kUInt8: return fn(std::type_identity<std::uint8_t>{});
    case DType::kBool: return fn(std::type_identity<bool>{});
  }
  fail_assert(__FILE__, __LINE__, "dtype is one of the enumerators");
}

// The same over the floating types alone; anything else is the caller's fault.
template <class Fn>
[[gnu::always_inline]] inline decltype(auto) visit_floating(DType dtype, Fn&& fn) {
  switch (dtype) {
    case DType::kFloat64: return fn(std::type_identity<double>{});
    case DType::kFloat32: return fn(std::type_identity<float>{});
    case DType::kFloat16: return fn(std::type_identity<Half>{});
    case DType::kBFloat16: return fn(std::type_identity<BFloat16>{});
    default: fail_dtype("a floating-point", info(dtype).name);
  }
}

}  // namespace taper
