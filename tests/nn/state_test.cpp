// Saving and loading the state of modules: what comes back, and how a misfit is reported.
#include "taper/nn/layers.h"
#include "taper/tests/nn/nn_testing.h"

namespace taper::testing {
namespace {

using State = OrderedDict<std::string, Tensor>;

struct NetImpl : nn::Module {
  NetImpl()
      : encoder(register_module("encoder", nn::Linear(2, 3))),
        norm(register_module("norm", nn::BatchNorm2d(3))) {}

  nn::Linear encoder;
  nn::BatchNorm2d norm;
};
TAPER_MODULE(Net);

State copy_of(const State& state) {
  State out;
  for (const auto& item : state) out.insert(item.key(), item.value().detach().clone());
  return out;
}

State without(const State& state, const std::string& name) {
  State out;
  for (const auto& item : state) {
    if (item.key() != name) out.insert(item.key(), item.value());
  }
  return out;
}

TEST(ModuleState, ComesBackToTheBit) {
  const Net from, to;
  from->norm->running_var.fill_(5);
  from->norm->num_batches_tracked.fill_(3);
  const Tensor weight = to->encoder->weight;
  to->load_state_dict(from->state_dict());
  for (const auto& item : from->state_dict()) {
    const Tensor got = to->state_dict()[item.key()];
    EXPECT_EQ(values(got), values(item.value())) << item.key();
    EXPECT_FALSE(got.is_alias_of(item.value())) << item.key();
  }
  EXPECT_TRUE(weight.is_same(to->encoder->weight));
  EXPECT_TRUE(weight.is_leaf() && weight.requires_grad());
}

TEST(ModuleState, KeepsTheDtypeOfTheModule) {
  const Net from, to;
  to->to(kFloat64);
  to->load_state_dict(from->state_dict());
  EXPECT_EQ(to->encoder->weight.dtype(), kFloat64);
  EXPECT_EQ(values(to->encoder->weight), values(from->encoder->weight));
}

TEST(ModuleState, AMisfitListsEverythingAndChangesNothing) {
  const Net net;
  const State kept = copy_of(net->state_dict());
  State wrong = without(copy_of(kept), "encoder.bias");
  wrong = without(wrong, "norm.running_mean");
  wrong.insert("encodr.bias", ones({3}));
  wrong.insert("something.else.entirely", ones({2, 5}));
  wrong["encoder.weight"] = ones({3, 4});
  const Error e = error_of([&] { net->load_state_dict(wrong); });
  expect_names(e, __LINE__ - 1, "",
               {"load_state_dict", "Net", "missing: encoder.bias (3) (did you mean 'encodr.bias'?)",
                "missing: norm.running_mean (3)",
                "unexpected: encodr.bias (3) (did you mean 'encoder.bias'?)",
                "unexpected: something.else.entirely (2, 5)\n",
                "shape: encoder.weight is (3, 2) here, (3, 4) in the state"});
  for (const auto& item : net->state_dict()) {
    EXPECT_EQ(values(item.value()), values(kept[item.key()])) << item.key();
  }
}

TEST(ModuleState, NotStrictTakesWhatFits) {
  const Net net;
  State part;
  part.insert("encoder.bias", full({3}, 2.0));
  part.insert("unknown", ones({1}));
  net->load_state_dict(part, false);
  EXPECT_EQ(values(net->encoder->bias), Numbers(3, 2));
  part["encoder.bias"] = ones({4});
  const Error e = error_of([&] { net->load_state_dict(part, false); });
  expect_names(e, __LINE__ - 1, "", {"shape: encoder.bias"});
  EXPECT_EQ(values(net->encoder->bias), Numbers(3, 2));
}

TEST(ModuleState, LoadingIsNotRecordedButRaisesVersions) {
  const Net from, to;
  const Tensor w = to->encoder->weight;
  const auto before = w.version();
  to->load_state_dict(from->state_dict());
  EXPECT_GT(w.version(), before);
  const Tensor y = (w * w).sum();
  to->load_state_dict(from->state_dict());
  expect_error([&] { y.backward(); }, {"mul"});
}

}  // namespace
}  // namespace taper::testing
