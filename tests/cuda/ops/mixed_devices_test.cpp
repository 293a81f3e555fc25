// Calls with tensors of several devices are refused, by op, devices and the user's line.
#include "taper/core/backends.h"
#include "taper/tests/contract/enumerate.h"
#include "taper/tests/cuda/ops/same_bits.h"
#include "taper/tests/message_of.h"

namespace taper::cuda {
namespace {

using contract::Sample;
using contract::Samples;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The call must name an op, both devices, and the line: "x.cpp:" and a number.
template <class F>
void expect_refused(
    const F& call, Device a, Device b, const std::string& line, const std::string& what) {
  try {
    call();
    ADD_FAILURE() << what << " took tensors on " << str(a) << " and " << str(b);
  } catch (const Error& e) {
    const std::string text = e.what();
    EXPECT_FALSE(e.op().empty()) << what << ": " << text;
    EXPECT_TRUE(contains(text, e.op() + ": ")) << what << ": " << text;
    EXPECT_TRUE(contains(text, "on " + str(a))) << what << ": " << text;
    EXPECT_TRUE(contains(text, "on " + str(b))) << what << ": " << text;
    EXPECT_TRUE(contains(text, line)) << what << ": " << text;
  }
}

// --- every op of the list that has samples with several tensors ---

template <class Op> class MixedDevices : public testing::Test {
 protected:
  // One input at a time on `odd`, the others on `usual`.
  static void expect_each_refused(Device usual, Device odd) {
    for (const Sample& s : Samples<Op>::make()) {
      for (std::size_t k = 0; k < s.inputs.size(); ++k) {
        std::vector<Tensor> inputs;
        for (const Tensor& t : s.inputs) inputs.push_back(t.to(usual));
        inputs[k] = s.inputs[k].to(odd);
        if (!are_mixed(inputs)) continue;
        const auto call = [&] { s.call(inputs); };
        expect_refused(call, usual, odd, "samples.h:", str(s.name, ", input ", k));
      }
    }
  }

  // Numbers of the host go along with tensors of any device.
  static bool are_mixed(std::vector<Tensor> tensors) {
    std::erase_if(tensors, [](const Tensor& t) { return t.is_cpu() && t.dim() == 0; });
    for (const Tensor& t : tensors) {
      if (!(t.device() == tensors[0].device())) return true;
    }
    return false;
  }
};

TYPED_TEST_SUITE_P(MixedDevices);

TYPED_TEST_P(MixedDevices, AreRefused) {
  if constexpr (std::is_same_v<TypeParam, ops::CopyInto>) {
    GTEST_SKIP() << "copies from any device to any";
  } else {
    this->expect_each_refused(kCPU, kFirst);
    this->expect_each_refused(kFirst, kCPU);
    if (device_count() > 1) this->expect_each_refused(kFirst, kSecond);
  }
}

REGISTER_TYPED_TEST_SUITE_P(MixedDevices, AreRefused);

template <class List> using Types = typename contract::ToTypes<List>::type;
INSTANTIATE_TYPED_TEST_SUITE_P(Binary, MixedDevices, Types<ops::BinaryOps>, contract::OpNames);
INSTANTIATE_TYPED_TEST_SUITE_P(Other, MixedDevices, Types<ops::OtherOps>, contract::OpNames);

// --- tensors that are no sample's inputs, and what users call ---

constexpr const char* kHere = "at mixed_devices_test.cpp:";

class TwoDevices : public testing::Test {
 protected:
  const Tensor x = contract::numbers({3, 4}), row = contract::numbers({4}),
               ids = contract::integers({1, 0, 3}), mask = contract::mask34();
  Tensor cx, crow, cids, cmask;

  void SetUp() override {
    cx = x.to(kFirst), crow = row.to(kFirst), cids = ids.to(kFirst), cmask = mask.to(kFirst);
  }

  template <class F> static void refuses(const F& call, const char* what) {
    expect_refused(call, kCPU, kFirst, kHere, what);
  }
};

TEST_F(TwoDevices, MasksAndIndicesMustLieBesideTheTensor) {
  refuses([&] { where(mask, cx, cx); }, "where");
  refuses([&] { where(cmask, cx, x); }, "where");
  refuses([&] { masked_fill(cx, mask, 2); }, "masked_fill");
  refuses([&] { cx.masked_fill_(mask, 2); }, "masked_fill_");
  refuses([&] { cx.masked_select(mask); }, "masked_select");
  refuses([&] { x.masked_select(cmask); }, "masked_select");
  refuses([&] { x.index({cids}); }, "index");
  refuses([&] { x.index({cmask}); }, "index");
  refuses([&] { cx.index_put_({cids.slice(0, 0, 1)}, row); }, "index_put_");
  refuses([&] { x.index_put_({ids.slice(0, 0, 1)}, crow); }, "index_put_");
  EXPECT_TRUE(cx.index({ids.slice(0, 0, 1)}).is_cuda());  // an index of the host goes along
  refuses([&] { gather(cx, 1, ids.view({3, 1})); }, "gather");
  refuses([&] { scatter(cx, 1, ids.view({3, 1}), cx); }, "scatter");
  refuses([&] { scatter_add(cx, 1, cids.view({3, 1}), x); }, "scatter_add");
  refuses([&] { index_select(cx, 1, ids); }, "index_select");
  refuses([&] { index_add(cx, 0, ids, cx); }, "index_add");
  refuses([&] { embedding(cx, ids); }, "embedding");
  refuses([&] { nll_loss(cx, ids); }, "nll_loss");
  refuses([&] { nll_loss(cx, cids, row); }, "nll_loss");
  refuses([&] { cross_entropy(cx, ids); }, "cross_entropy");
  refuses([&] { binary_cross_entropy(cx, x); }, "binary_cross_entropy");
}

TEST_F(TwoDevices, FunctionsMadeOfSeveralOpsNameTheUsersLine) {
  refuses([&] { mse_loss(cx, x); }, "mse_loss");
  refuses([&] { einsum("ij,kj->ik", {cx, x}); }, "einsum");
  refuses([&] { cx.lerp(x, 0.5); }, "lerp");
  refuses([&] { cx.addcmul(cx, x); }, "addcmul");
  refuses([&] { linear(cx, x, contract::numbers({3})); }, "linear");
  refuses([&] { layer_norm(cx, 4, row, row); }, "layer_norm");
  refuses([&] { batch_norm(cx, {}, {}, row, row, true, 0.1, 1e-5); }, "batch_norm");
  refuses([&] { cat({cx, x}); }, "cat");
  refuses([&] { stack({x, cx}); }, "stack");
  refuses([&] { row.dot(crow); }, "dot");
  refuses([&] { cx.allclose(x); }, "allclose");
  refuses([&] { cx.equal(x); }, "equal");
  refuses([&] { scaled_dot_product_attention(cx, x, cx); }, "attention");
}

TEST_F(TwoDevices, InPlaceLeavesTheTensorAsItWas) {
  const auto version = cx.version();
  refuses([&] { cx.add_(x); }, "add_");
  refuses([&] { cx.mul_(row); }, "mul_");
  refuses([&] { cx.addcmul_(cx, x); }, "addcmul_");
  EXPECT_EQ(cx.version(), version);
  expect_same_bits(x, cx, "after refused calls");
}

TEST_F(TwoDevices, ModulesNameTheirScope) {
  nn::Linear fc(4, 2);
  const std::string text = message_of([&] { fc(cx.to(kFloat32)); });
  EXPECT_TRUE(contains(text, "on cpu")) << text;
  EXPECT_TRUE(contains(text, "on cuda:0")) << text;
  EXPECT_TRUE(contains(text, kHere)) << text;
}

TEST_F(TwoDevices, GradientsMustLieBesideWhatTheyBelongTo) {
  const Tensor w = cx.detach().requires_grad_(), y = w * 2, g = ones({3, 4}, kFloat64);
  refuses([&] { y.backward(g); }, "backward");
  refuses([&] { grad({y}, {w}, {g}); }, "grad");
  y.backward(g.to(kFirst));
  expect_same_bits(g * 2, w.grad(), "a gradient that lies beside");
}

TEST_F(TwoDevices, NumbersAndIndicesOfTheHostGoAlong) {
  const Tensor number = tensor(2.5, kFloat64);
  expect_same_bits(x + number, cx + number, "cuda + number");
  expect_same_bits(number - x, number - cx, "number - cuda");
  expect_same_bits(x.index({ids.slice(0, 0, 2)}), cx.index({ids.slice(0, 0, 2)}), "index");
  expect_same_bits(masked_fill(x, mask, number), masked_fill(cx, cmask, number), "masked_fill");
}

}  // namespace
}  // namespace taper::cuda
