// Calls that must be refused: what their errors have to say, and that they leave their inputs be.
#pragma once
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "taper/taper.h"

namespace taper::errors {

inline SourceLoc here_at;

// Stands before the refused call, on its line: `here(), mul(a, b)`.
inline void here(SourceLoc loc = SourceLoc::current()) {
  here_at = loc;
}

// "refusal.h:21": how an error names a line.
inline std::string name_of(const SourceLoc& loc) {
  const std::string file = loc.file;
  return file.substr(file.find_last_of('/') + 1) + ":" + std::to_string(loc.line);
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A tensor as it was: its version and all bytes of its storage.
class Snapshot {
 public:
  explicit Snapshot(const Tensor& t)
      : tensor_(t), impl_(t.ref().get()), version_(t.version()), layout_(t.layout()) {
    if (t.is_meta()) return;
    bytes_.resize(t.storage()->nbytes());
    if (!bytes_.empty()) std::memcpy(bytes_.data(), t.storage()->data(), bytes_.size());
  }

  bool holds() const {
    if (tensor_.ref().get() != impl_ || tensor_.version() != version_) return false;
    if (!(tensor_.layout() == layout_)) return false;
    return bytes_.empty() ||
           std::memcmp(bytes_.data(), tensor_.storage()->data(), bytes_.size()) == 0;
  }

 private:
  Tensor tensor_;
  const TensorImpl* impl_;
  std::uint32_t version_;
  Layout layout_;
  std::vector<std::byte> bytes_;
};

// Tensors to call with, named by dtype and sizes: f23 is f32 (2, 3).
class Refusal : public ::testing::Test {
 protected:
  const Tensor f = tensor(1.5), f3 = numbers({3}), f4 = numbers({4}), f23 = numbers({2, 3}),
               f24 = numbers({2, 4}), f34 = numbers({3, 4}), f234 = numbers({2, 3, 4}),
               f03 = numbers({0, 3}), f333 = numbers({3, 3, 3}), f1255 = numbers({1, 2, 5, 5});
  const Tensor d3 = numbers({3}, kFloat64), d23 = numbers({2, 3}, kFloat64),
               d34 = numbers({3, 4}, kFloat64);
  const Tensor i2 = numbers({2}, kInt64), i3 = numbers({3}, kInt64), i23 = numbers({2, 3}, kInt64),
               b3 = ones({3}, kBool), b23 = ones({2, 3}, kBool);
  const Tensor m3 = empty({3}, kMeta), m23 = empty({2, 3}, kMeta), m34 = empty({3, 4}, kMeta);
  const Tensor wide = numbers({2, 1}).expand({2, 3}), none;
  const std::string nothing = "the tensor is undefined";

  static Tensor numbers(IntArrayRef sizes, DType dtype = kFloat32) {
    return arange(checked_numel(sizes), dtype).view(sizes);
  }

  // Tensors that must be as they were after each refused call, besides those above.
  void watch(const Tensor& t) { watched_.push_back(t); }

  // `call` throws an Error that names `op`, holds all of `texts`, and stands at here()'s line.
  void refuses(const char* op,
               const std::vector<std::string>& texts,
               const std::function<void()>& call,
               SourceLoc row = SourceLoc::current()) {
    const ::testing::ScopedTrace trace(row.file, static_cast<int>(row.line), op);
    std::vector<Snapshot> before;
    for (const Tensor& t : inputs()) before.emplace_back(t);
    try {
      here_at = SourceLoc();
      call();
      ADD_FAILURE() << "it was not refused";
    } catch (const Error& e) {
      expect_says(e, op, texts);
    } catch (const std::exception& e) {
      ADD_FAILURE() << "another type of error: " << e.what();
    }
    for (std::size_t i = 0; i < before.size(); ++i) {
      EXPECT_TRUE(before[i].holds()) << str("input ", i, " of shape ", inputs()[i].sizes());
    }
    EXPECT_FALSE(call_site.active());
    EXPECT_EQ(call_site.op, nullptr);
  }

 private:
  static void expect_says(const Error& e, const char* op, const std::vector<std::string>& texts) {
    const std::string text = e.what();
    EXPECT_TRUE(contains(text, op)) << text;
    for (const std::string& part : texts) {
      EXPECT_TRUE(contains(text, part)) << "no \"" << part << "\" in: " << text;
    }
    EXPECT_TRUE(contains(text, name_of(here_at))) << "no " << name_of(here_at) << " in: " << text;
  }

  std::vector<Tensor> inputs() const {
    std::vector<Tensor> out{f,   f3,  f4, f23, f24, f34, f234, f03, f333, f1255, d3,
                            d23, d34, i2, i3,  i23, b3,  b23,  m3,  m23,  m34,   wide};
    out.insert(out.end(), watched_.begin(), watched_.end());
    return out;
  }

  std::vector<Tensor> watched_;
};

}  // namespace taper::errors
