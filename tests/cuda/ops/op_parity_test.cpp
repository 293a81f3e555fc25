// Every op of the list on CUDA devices: the results, gradients, second gradients and refusals of
// the CPU, to the bit, in all the ways in which inputs are varied. That the CPU's gradients are
// right is for its own contract tests to say.
#include <algorithm>

#include "taper/core/backends.h"
#include "taper/tests/contract/enumerate.h"
#include "taper/tests/cuda/ops/same_bits.h"
#include "taper/tests/cuda/race_free.h"

namespace taper::cuda {
namespace {

using contract::Sample;
using contract::Samples;

// What a call gave, or why it was refused.
struct Outcome {
  std::vector<Tensor> outputs, gradients, second_gradients;
  std::string refusal;
};

std::vector<Tensor> only_differentiable(std::vector<Tensor> tensors) {
  std::erase_if(tensors, [](const Tensor& t) { return !t.defined() || !t.requires_grad(); });
  return tensors;
}

// Gradients of the outputs, each weighed by numbers of its own, for inputs that they reach.
std::vector<Tensor> gradients_of(const std::vector<Tensor>& outputs,
                                 const std::vector<Tensor>& inputs) {
  std::vector<Tensor> weights;
  for (const Tensor& t : outputs) {
    weights.push_back(contract::numbers(t.sizes(), -1, 1, 0.7).to(t.options()).requires_grad_());
  }
  return grad(outputs, inputs, weights, true, true, true);
}

Outcome outcome_of(const Sample& s, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> leaves;
  for (const Tensor& t : inputs) {
    leaves.push_back(t.is_floating_point() ? t.detach().requires_grad_() : t);
  }
  Outcome out;
  try {
    out.outputs = s.call(leaves);
    const std::vector<Tensor> ends = only_differentiable(out.outputs);
    const std::vector<Tensor> varied = only_differentiable(leaves);
    if (ends.empty() || varied.empty()) return out;
    out.gradients = gradients_of(ends, varied);
    const std::vector<Tensor> again = only_differentiable(out.gradients);
    if (!again.empty()) out.second_gradients = gradients_of(again, varied);
  } catch (const Error& e) {
    out.refusal = e.what();
  }
  return out;
}

void expect_same(const std::vector<Tensor>& cpu,
                 const std::vector<Tensor>& cuda,
                 Device device,
                 const std::string& what) {
  ASSERT_EQ(cpu.size(), cuda.size()) << what;
  for (std::size_t i = 0; i < cpu.size(); ++i) {
    EXPECT_TRUE(!cuda[i].defined() || cuda[i].device() == device) << what << ' ' << i;
    expect_same_bits(cpu[i], cuda[i], str(what, " ", i));
  }
}

std::string without_device(std::string text, Device device) {
  const std::string name = str(device);
  for (auto at = text.find(name); at != std::string::npos; at = text.find(name)) {
    text.replace(at, name.size(), "cpu");
  }
  return text;
}

// Calls with the inputs on the CPU and on the device. `lay` makes of a tensor of either the same
// elements, lying otherwise.
template <class Lay>
void expect_parity(const Sample& s,
                   const std::vector<Tensor>& inputs,
                   const Lay& lay,
                   Device device,
                   const std::string& how) {
  const std::string what = s.name + ", " + how;
  const Outcome cpu = outcome_of(s, contract::map(inputs, lay));
  const auto moved = [&](const Tensor& t) { return lay(t.to(device)); };
  const Outcome cuda = outcome_of(s, contract::map(inputs, moved));
  EXPECT_EQ(cpu.refusal, without_device(cuda.refusal, device)) << what;
  expect_same(cpu.outputs, cuda.outputs, device, what + ", output");
  expect_same(cpu.gradients, cuda.gradients, device, what + ", gradient");
  expect_same(cpu.second_gradients, cuda.second_gradients, device, what + ", second gradient");
}

// The same of inputs that the op must take.
template <class Lay>
void expect_taken_and_parity(const Sample& s,
                             const std::vector<Tensor>& inputs,
                             const Lay& lay,
                             Device device,
                             const std::string& how) {
  EXPECT_EQ(outcome_of(s, contract::map(inputs, lay)).refusal, "") << s.name << ", " << how;
  expect_parity(s, inputs, lay, device, how);
}

Tensor as_it_is(const Tensor& t) {
  return t;
}

std::vector<Tensor> floats_to(DType dtype, const std::vector<Tensor>& inputs) {
  return contract::map(inputs,
                       [&](const Tensor& t) { return t.is_floating_point() ? t.to(dtype) : t; });
}

template <class Op> class OpOnCuda : public testing::Test {
 protected:
  const std::vector<Sample> samples_ = Samples<Op>::make();
};

TYPED_TEST_SUITE_P(OpOnCuda);

TYPED_TEST_P(OpOnCuda, HasTheCpusBits) {
  for (const Sample& s : this->samples_) {
    expect_taken_and_parity(s, s.inputs, as_it_is, kFirst, "f64");
    for (const DType dtype : {kFloat32, kFloat16, kBFloat16}) {
      expect_taken_and_parity(s, floats_to(dtype, s.inputs), as_it_is, kFirst, str(dtype));
    }
  }
}

TYPED_TEST_P(OpOnCuda, StridesDoNotMatter) {
  for (const Sample& s : this->samples_) {
    for (const contract::Variant& v : contract::kVariants) {
      expect_taken_and_parity(s, s.inputs, v.make, kFirst, v.name);
    }
    expect_taken_and_parity(s, floats_to(kFloat32, s.inputs), contract::expanded, kFirst,
                            "expanded");
  }
}

TYPED_TEST_P(OpOnCuda, RunsOnTheSecondDeviceToo) {
  if (device_count() < 2) GTEST_SKIP() << "needs two devices";
  for (const Sample& s : this->samples_) {
    expect_taken_and_parity(s, floats_to(kFloat32, s.inputs), contract::transposed, kSecond,
                            "on cuda:1");
  }
}

TYPED_TEST_P(OpOnCuda, EmptyInputsAndNumbers) {
  const auto emptied = [](const Tensor& t) { return t.dim() == 0 ? t : t.narrow(0, 0, 0).clone(); };
  const auto number = [](const Tensor& t) { return t.numel() == 0 ? t : t.flatten()[0].clone(); };
  for (const Sample& s : this->samples_) {
    expect_parity(s, contract::map(s.inputs, emptied), as_it_is, kFirst, "empty");
    expect_parity(s, contract::map(s.inputs, number), as_it_is, kFirst, "0-dim");
  }
}

TYPED_TEST_P(OpOnCuda, EveryDtype) {
  for (const Sample& s : this->samples_) {
    for (int d = 0; d < kNumDTypes; ++d) {
      const auto dtype = static_cast<DType>(d);
      if (is_floating_point(dtype)) continue;
      const auto converted = [&](const Tensor& t) { return (t * 4).to(dtype); };
      expect_parity(s, contract::map(s.inputs, converted), as_it_is, kFirst, info(dtype).name);
    }
  }
}

REGISTER_TYPED_TEST_SUITE_P(OpOnCuda,
                            HasTheCpusBits,
                            StridesDoNotMatter,
                            RunsOnTheSecondDeviceToo,
                            EmptyInputsAndNumbers,
                            EveryDtype);

template <class List> using Types = typename contract::ToTypes<List>::type;
INSTANTIATE_TYPED_TEST_SUITE_P(Unary, OpOnCuda, Types<ops::UnaryOps>, contract::OpNames);
INSTANTIATE_TYPED_TEST_SUITE_P(Binary, OpOnCuda, Types<ops::BinaryOps>, contract::OpNames);
INSTANTIATE_TYPED_TEST_SUITE_P(Other, OpOnCuda, Types<ops::OtherOps>, contract::OpNames);

// --- in place ---

template <class Row> ops::UnaryOp<Row> made(const ops::UnaryOp<Row>*) {
  return {};
}

template <class Row> ops::Unary2Op<Row> made(const ops::Unary2Op<Row>*) {
  return {0.4, 0.7};
}

template <class Row> ops::BinaryOp<Row> made(const ops::BinaryOp<Row>*) {
  return {};
}

// Writes the op's result into a part of a copy of the first input, in whose gradient it shows.
template <class Op> Sample in_place(const Sample& s) {
  const auto call = [](const std::vector<Tensor>& in) -> std::vector<Tensor> {
    static const SourceLoc loc = SourceLoc::current();
    const Tensor whole = cat({in[0], in[0]});
    const Call site(loc);
    const Tensor part = whole.slice(0, whole.size(0) / 2);
    std::vector<const Tensor*> inputs = {&part};
    for (std::size_t i = 1; i < in.size(); ++i) inputs.push_back(&in[i]);
    const Op* which = nullptr;
    apply_inplace(made(which), part, ArrayRef<const Tensor*>(inputs.data(), inputs.size()));
    return {whole, part};
  };
  return {s.name + " in place", s.inputs, call};
}

template <class Op> class InPlaceOnCuda : public testing::Test {};
TYPED_TEST_SUITE_P(InPlaceOnCuda);

TYPED_TEST_P(InPlaceOnCuda, HasTheCpusBits) {
  for (const Sample& sample : Samples<TypeParam>::make()) {
    const bool fits = sample.call(sample.inputs)[0].sizes() == sample.inputs[0].sizes();
    if (!fits || sample.inputs[0].dim() == 0) continue;
    const Sample s = in_place<TypeParam>(sample);
    expect_taken_and_parity(s, s.inputs, as_it_is, kFirst, "f64");
    expect_taken_and_parity(s, floats_to(kFloat32, s.inputs), contract::transposed, kFirst, "f32");
    expect_taken_and_parity(s, floats_to(kFloat16, s.inputs), contract::sliced, kFirst, "f16");
  }
}

REGISTER_TYPED_TEST_SUITE_P(InPlaceOnCuda, HasTheCpusBits);
INSTANTIATE_TYPED_TEST_SUITE_P(Unary, InPlaceOnCuda, Types<ops::UnaryOps>, contract::OpNames);
INSTANTIATE_TYPED_TEST_SUITE_P(Binary, InPlaceOnCuda, Types<ops::BinaryOps>, contract::OpNames);

}  // namespace
}  // namespace taper::cuda
