// Inputs for every op, by its type. There is no general definition: an op without samples does not
// compile.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "taper/autograd/ops/all_ops.h"
#include "taper/taper.h"

namespace taper::contract {

// One way to call an op. `inputs` are those that are varied: their layout, dtype, device.
struct Sample {
  std::string name;
  std::vector<Tensor> inputs;
  std::function<std::vector<Tensor>(const std::vector<Tensor>&)> call;
  bool expandable = true;  // no result depends on whether inputs share memory
};

using Inputs = const std::vector<Tensor>&;
using Outputs = std::vector<Tensor>;

// Distinct numbers in (low, high), in no order, without ties and far from integers' edges.
inline Tensor numbers(IntArrayRef sizes, double low = 0.15, double high = 0.85, double phase = 0) {
  const Tensor t = empty(sizes, kFloat64);
  auto* p = t.data_ptr<double>();
  for (std::int64_t i = 0; i < t.numel(); ++i) {
    const double x = 0.43 + phase + static_cast<double>(i) * 0.61803398874989485;
    p[i] = low + (high - low) * (x - std::floor(x));
  }
  return t;
}

inline Tensor mask34() {
  return tensor(
      {{true, false, true, false}, {false, true, true, false}, {true, true, false, true}});
}

inline Tensor integers(const NestedNumbers& values) {
  return tensor(values, kInt64);
}

// Calls an op with the inputs as they are, as a public function would that was called here.
template <class Make>
std::function<Outputs(Inputs)> direct(Make make, SourceLoc loc = SourceLoc::current()) {
  return [make, loc](Inputs in) -> Outputs {
    const Call call(loc);
    std::vector<const Tensor*> pointers;
    for (const Tensor& t : in) pointers.push_back(&t);
    Tensors out = apply_n(make(), pointers);
    return Outputs(out.begin(), out.end());
  };
}

template <class F> std::function<Outputs(Inputs)> one(F f) {
  return [f](Inputs in) -> Outputs { return {f(in)}; };
}

template <class Op> struct Samples;

template <class Row> struct Samples<ops::UnaryOp<Row>> {
  static std::vector<Sample> make() {
    const auto call = direct([] { return ops::UnaryOp<Row>(); });
    return {{"matrix", {numbers({3, 4})}, call},
            {"scalar", {numbers({})}, call},
            {"empty", {numbers({0, 3})}, call}};
  }
};

template <class Row> struct Samples<ops::Unary2Op<Row>> {
  static std::vector<Sample> make() {
    const auto call = direct([] { return ops::Unary2Op<Row>(0.4, 0.7); });
    return {{"matrix", {numbers({3, 4}, -0.9, 0.9)}, call}, {"scalar", {numbers({})}, call}};
  }
};

template <class Row> struct Samples<ops::BinaryOp<Row>> {
  static std::vector<Sample> make() {
    const auto call = direct([] { return ops::BinaryOp<Row>(); });
    const Tensor a = numbers({3, 4}, 0.3, 2.7), b = numbers({3, 4}, 0.4, 1.9, 0.37);
    return {{"same", {a, b}, call},
            {"row", {a, numbers({4}, 0.4, 1.9, 0.37)}, call},
            {"column", {numbers({3, 1}, 0.3, 2.7), b}, call},
            {"scalar", {a, numbers({}, 0.4, 1.9, 0.37)}, call},
            {"empty", {numbers({0, 4}), numbers({4})}, call}};
  }
};

}  // namespace taper::contract
