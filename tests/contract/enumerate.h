// What tests over the list of all ops share: the types, and the ways in which an input's memory
// lies.
#pragma once
#include <gtest/gtest.h>

#include "taper/tests/contract/more_samples.h"

namespace taper::contract {

// The variants of an input's memory. All hold the same elements.
inline Tensor transposed(const Tensor& x) {
  if (x.dim() < 2) return x.clone();
  return x.transpose(0, -1).contiguous().transpose(0, -1);
}

inline Tensor sliced(const Tensor& x) {
  if (x.dim() == 0) return cat({x.view({1}), x.view({1})})[1];
  const Tensor wide = zeros(cat({x, x}, -1).sizes(), x.options());
  const Tensor part = wide.slice(-1, 0, 2 * x.size(-1), 2);
  part.copy_(x);
  return part;
}

inline Tensor backwards(const Tensor& x) {
  if (x.dim() == 0 || x.numel() == 0) return x.clone();
  return x.flip({0}).slice(0, std::nullopt, std::nullopt, -1);
}

struct Variant {
  const char* name;
  Tensor (*make)(const Tensor&);
};

inline constexpr Variant kVariants[] = {
    {"transposed", transposed}, {"sliced", sliced}, {"negative step", backwards}};

// The first row, as often as there are rows.
inline Tensor expanded(const Tensor& x) {
  const bool can = x.dim() > 0 && x.size(0) > 0;
  return can ? x.narrow(0, 0, 1).expand(x.sizes()) : x;
}

template <class F> std::vector<Tensor> map(const std::vector<Tensor>& in, F f) {
  std::vector<Tensor> out;
  for (const Tensor& t : in) out.push_back(f(t));
  return out;
}

template <class List> struct ToTypes;
template <class... Ops> struct ToTypes<ops::OpList<Ops...>> {
  using type = testing::Types<Ops...>;
};

struct OpNames {
  template <class Op> static std::string GetName(int) { return Op::kName; }
};

}  // namespace taper::contract
