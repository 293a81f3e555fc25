// <torch/torch.h> for small scripts written for LibTorch: Taper under LibTorch's names.
#pragma once
#include <cmath>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>

#include "taper/taper.h"

// What LibTorch has under its own name, and Taper takes from the standard library.
namespace taper {

template <class T> using optional = std::optional<T>;
using std::nullopt;
using std::nullopt_t;

// std::cout << x.sizes(): "[2, 3]".
template <class T> std::ostream& operator<<(std::ostream& out, const ArrayRef<T>& list) {
  out << '[';
  for (std::size_t i = 0; i < list.size(); ++i) out << (i == 0 ? "" : ", ") << list[i];
  return out << ']';
}

// at::globalContext().setAllowTF32CuBLAS(true).
class Context {
 public:
  void setAllowTF32CuBLAS(bool allow) { setFloat32MatmulPrecision(allow ? "high" : "highest"); }

  bool allowTF32CuBLAS() const { return matmul_rounds_to_tf32(); }

  void setFloat32MatmulPrecision(const std::string& precision) {
    set_float32_matmul_precision(precision);
  }
};

inline Context& globalContext() {
  static Context context;
  return context;
}

}  // namespace taper

namespace torch = taper;
namespace at = taper;
namespace c10 = taper;

#define TORCH_MODULE(Name) TAPER_MODULE(Name)
#define TORCH_CHECK(cond, ...) TAPER_CHECK(cond, __VA_ARGS__)
#define AT_ASSERT(cond, ...) \
  TAPER_CHECK(cond, "assertion failed: " #cond __VA_OPT__(, "; ", __VA_ARGS__))
