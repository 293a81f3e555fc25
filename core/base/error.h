// How Taper fails: one exception type that knows the user's line, and two checks that throw it.
#pragma once
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "taper/core/base/array_ref.h"
#include "taper/core/base/source_loc.h"

namespace taper {

// What went wrong, in which op, and at which line of the user's.
// what() reads "mul: (2, 3) and (4) do not broadcast\n  at train.cpp:42 in main, scope encoder.3".
class Error : public std::runtime_error {
 public:
  Error(std::string message, std::string op, SourceLoc loc, std::string scope);

  const std::string& message() const { return message_; }  // without op, line and scope

  const std::string& msg() const { return message_; }  // LibTorch's name

  // The called function, and the op inside it that failed: "mul", "mse_loss: sub".
  const std::string& op() const { return op_; }

  const SourceLoc& loc() const { return loc_; }

  const std::string& scope() const { return scope_; }

 private:
  std::string message_, op_, scope_;
  SourceLoc loc_;
};

// A message is put together by append; types of ours add overloads of their own.
inline void append(std::string& out, std::string_view s) {
  out += s;
}

inline void append(std::string& out, const std::string& s) {
  out += s;
}

inline void append(std::string& out, const char* s) {
  out += s;
}

inline void append(std::string& out, char c) {
  out += c;
}

void append(std::string& out, double x);  // shortest text that reads back as the same float
void append(std::string& out, IntArrayRef sizes);  // "(2, 3)"

template <class T>
requires std::is_integral_v<T>
void append(std::string& out, T n) {
  if constexpr (std::is_same_v<T, bool>) out += n ? "true" : "false";
  else out += std::to_string(n);
}

// One part of a text: where it lies, and how it is appended. So that each of the many messages in
// the program is a few addresses and one call.
class TextPart {
 public:
  TextPart(const char* s)  // NOLINT(google-explicit-constructor)
      : at_(s),
        append_([](std::string& out, const void* at) { out += static_cast<const char*>(at); }) {}

  template <class T>
  requires(!std::is_convertible_v<const T&, const char*>)
      TextPart(const T& x)  // NOLINT(google-explicit-constructor)
      : at_(&x),
        append_([](std::string& out, const void* at) { append(out, *static_cast<const T*>(at)); }) {
  }

  void append_to(std::string& out) const { append_(out, at_); }

 private:
  const void* at_;
  void (*append_)(std::string& out, const void* at);
};

std::string join(std::initializer_list<TextPart> parts);

// Joins its arguments to one text.
template <class... Parts> std::string str(const Parts&... parts) {
  return join({TextPart(parts)...});
}

// Throws Error with the op, line and scope of the thread's call site.
[[noreturn]] void fail(std::string message);
// "expected a floating-point dtype, got i64"
[[noreturn]] void fail_dtype(const char* expected, const char* got);
[[noreturn]] void fail_assert(const char* file, int line, const char* condition);

}  // namespace taper

// The caller broke the contract: say what was expected and what came.
#define TAPER_CHECK(cond, ...) ((cond) ? void(0) : ::taper::fail(::taper::str(__VA_ARGS__)))

// We broke ours: a defect in Taper.
#define TAPER_ASSERT(cond) ((cond) ? void(0) : ::taper::fail_assert(__FILE__, __LINE__, #cond))
