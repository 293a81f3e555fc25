// The module tree: names and their order, modes, moves, copies, and what is refused.
#include "taper/nn/layers.h"
#include "taper/tests/nn/nn_testing.h"

namespace taper::testing {
namespace {

using Keys = std::vector<std::string>;

struct PairImpl : nn::Cloneable<PairImpl> {
  PairImpl() { reset(); }

  void reset() override {
    scale = register_parameter("scale", ones({2}));
    step = register_buffer("step", zeros({1}));
    a = register_module("a", nn::Linear(2, 3));
    b = register_module("b", nn::Linear(nn::LinearOptions(3, 1).bias(false)));
  }

  Tensor forward(const Tensor& x) { return b(a(x * scale)); }

  Tensor scale, step;
  nn::Linear a{nullptr}, b{nullptr};
};
TAPER_MODULE(Pair);

struct NestImpl : nn::Module {
  NestImpl()
      : pair(register_module("pair", Pair())), norm(register_module("norm", nn::BatchNorm2d(4))) {}

  Tensor forward(const Tensor& x) { return norm(pair(x)); }

  Pair pair;
  nn::BatchNorm2d norm;
};
TAPER_MODULE(Nest);

template <class Dict> Keys keys_of(const Dict& dict) {
  return dict.keys();
}

TEST(Module, NamesComeInTheOrderOfRegistration) {
  const Nest nest;
  EXPECT_EQ(keys_of(nest->named_parameters()), (Keys{"pair.scale", "pair.a.weight", "pair.a.bias",
                                                     "pair.b.weight", "norm.weight", "norm.bias"}));
  EXPECT_EQ(keys_of(nest->named_buffers()), (Keys{"pair.step", "norm.running_mean",
                                                  "norm.running_var", "norm.num_batches_tracked"}));
  EXPECT_EQ(keys_of(nest->named_children()), (Keys{"pair", "norm"}));
  EXPECT_EQ(keys_of(nest->named_modules()), (Keys{"", "pair", "pair.a", "pair.b", "norm"}));
  EXPECT_EQ(keys_of(nest->named_modules(false)), (Keys{"pair", "pair.a", "pair.b", "norm"}));
  EXPECT_EQ(keys_of(nest->pair->named_parameters(false)), (Keys{"scale"}));
  EXPECT_EQ(nest->modules().size(), 5U);
  EXPECT_EQ(nest->modules()[2].get(), nest->pair->a.get());
  EXPECT_EQ(nest->children()[1].get(), nest->norm.get());
  EXPECT_EQ(nest->parameters().size(), 6U);
  EXPECT_EQ(nest->buffers(false).size(), 0U);
  EXPECT_TRUE(nest->named_parameters()["pair.a.weight"].is_same(nest->pair->a->weight));
}

TEST(Module, StateIsParametersThenBuffersOfTheWholeTree) {
  const Keys keys = keys_of(Pair()->state_dict());
  EXPECT_EQ(keys, (Keys{"scale", "a.weight", "a.bias", "b.weight", "step"}));
}

// Two layers that share a weight: one parameter to optimize, two names in a checkpoint.
TEST(Module, ASharedParameterIsCountedOnce) {
  struct Tied : nn::Module {
    Tied() {
      const nn::Linear fc(2, 2);
      register_module("first", fc);
      register_module("second", fc);
      register_buffer("mean", zeros({1}));
    }
  };
  const Tied tied;
  EXPECT_EQ(tied.parameters().size(), 2U);
  EXPECT_EQ(keys_of(tied.named_parameters()), (Keys{"first.weight", "first.bias"}));
  EXPECT_EQ(keys_of(tied.state_dict()),
            (Keys{"first.weight", "first.bias", "second.weight", "second.bias", "mean"}));
}

TEST(Module, ModesReachTheWholeTree) {
  const Nest nest;
  EXPECT_TRUE(nest->is_training());
  nest->eval();
  for (const auto& m : nest->modules()) EXPECT_FALSE(m->is_training());
  nest->pair->train();
  EXPECT_TRUE(nest->pair->a->is_training());
  EXPECT_FALSE(nest->is_training() || nest->norm->is_training());
}

TEST(Module, MovesKeepIdentityGradientsAndIntegers) {
  const Nest nest;
  const Tensor w = nest->pair->a->weight;
  w.mutable_grad() = ones({3, 2});
  const Tensor before = w.detach().clone();
  nest->to(kFloat64);
  EXPECT_TRUE(w.is_same(nest->pair->a->weight));
  EXPECT_EQ(w.dtype(), kFloat64);
  EXPECT_EQ(w.grad().dtype(), kFloat64);
  EXPECT_TRUE(w.requires_grad() && w.is_leaf());
  EXPECT_EQ(values(w), values(before));
  EXPECT_EQ(nest->norm->running_mean.dtype(), kFloat64);
  EXPECT_EQ(nest->norm->num_batches_tracked.dtype(), kInt64);
  nest->to(Device(kCPU), kFloat32);
  EXPECT_EQ(w.dtype(), kFloat32);
  nest->to(Device(kCPU));
  nest->to(kCPU);
  EXPECT_EQ(w.device(), Device(kCPU));
  (w * 2).sum().backward();
  EXPECT_EQ(values(w.grad()), Numbers(6, 3));
}

TEST(Module, MovesToIntegersAreRefused) {
  const nn::Linear fc(2, 2);
  const Error one = error_of([&] { fc->to(kInt64); });
  expect_names(one, __LINE__ - 1, "", {"floating-point", "i64"});
  const Error both = error_of([&] { fc->to(Device(kCPU), kInt32); });
  expect_names(both, __LINE__ - 1, "", {"floating-point", "i32"});
  EXPECT_EQ(fc->weight.dtype(), kFloat32);
}

TEST(Module, GradientsAreCleared) {
  const Pair pair;
  const auto backward = [&] { pair(ones({1, 2})).sum().backward(); };
  backward();
  const Tensor grad = pair->a->bias.grad();
  pair->zero_grad(false);
  EXPECT_TRUE(pair->a->bias.grad().is_alias_of(grad));
  EXPECT_EQ(values(grad), Numbers(3, 0));
  pair->zero_grad();
  for (const Tensor& p : pair->parameters()) EXPECT_FALSE(p.grad().defined());
  pair->requires_grad_(false);
  EXPECT_FALSE(pair(ones({1, 2})).requires_grad());
}

TEST(Module, ApplyVisitsParentsFirst) {
  Keys seen;
  Nest()->apply([&](nn::Module& m) { seen.push_back(m.name()); });
  EXPECT_EQ(seen, (Keys{"Nest", "Pair", "Linear", "Linear", "BatchNorm2d"}));
}

template <class T> struct BoxImpl : nn::Module {};

TEST(Module, TypesAreNamedWithoutNamespaceAndImpl) {
  struct Local : nn::Module {};
  EXPECT_EQ(Local().name(), "Local");
  EXPECT_EQ(NestImpl().name(), "Nest");
  EXPECT_EQ(BoxImpl<std::vector<nn::Linear>>().name(), "Box");
  EXPECT_EQ(nn::Module("mine").name(), "mine");
}

TEST(Module, AsFindsTheTypeBehindThePointer) {
  const Nest nest;
  const auto children = nest->children();
  EXPECT_EQ(children[0]->as<PairImpl>(), nest->pair.get());
  EXPECT_EQ(children[0]->as<Pair>(), nest->pair.get());
  EXPECT_EQ(children[0]->as<nn::LinearImpl>(), nullptr);
}

TEST(Module, WrongNamesAreRefusedAtTheUsersLine) {
  nn::Module m("Net");
  m.register_module("fc", nn::Linear(1, 1));
  m.register_parameter("w", ones({1}));
  const Error twice = error_of([&] { m.register_module("fc", nn::Linear(1, 1)); });
  expect_names(twice, __LINE__ - 1, "", {"register_module", "'fc'", "already"});
  const Error dotted = error_of([&] { m.register_parameter("a.b", ones({1})); });
  expect_names(dotted, __LINE__ - 1, "", {"register_parameter", "'a.b'", "dot"});
  const Error empty = error_of([&] { m.register_buffer("", ones({1})); });
  expect_names(empty, __LINE__ - 1, "", {"register_buffer", "empty"});
  const Error taken = error_of([&] { m.register_buffer("w", ones({1})); });
  expect_names(taken, __LINE__ - 1, "", {"register_buffer", "'w'", "already"});
  const Error absent = error_of([&] { m.unregister_module("gone"); });
  expect_names(absent, __LINE__ - 1, "", {"unregister_module", "'gone'"});
  const Error integers = error_of([&] { m.register_parameter("i", ones({1}, kInt64)); });
  expect_names(integers, __LINE__ - 1, "", {"i64"});
  EXPECT_EQ(keys_of(m.named_parameters()), (Keys{"w", "fc.weight", "fc.bias"}));
}

TEST(Module, AnEmptyHolderSaysWhatItWouldHold) {
  const nn::Linear fc{nullptr};
  EXPECT_FALSE(fc);
  EXPECT_TRUE(fc.is_empty());
  const Error call = error_of([&] { fc(ones({1, 2})); });
  expect_names(call, __LINE__ - 1, "", {"Linear", "empty"});
  EXPECT_NE(message_of([&] { fc->reset(); }).find("Linear"), std::string::npos);
  nn::Module m;
  const Error add = error_of([&] { m.register_module("fc", fc); });
  expect_names(add, __LINE__ - 1, "", {"Linear", "empty"});
  const std::shared_ptr<nn::LinearImpl> none;
  const Error null = error_of([&] { m.register_module("fc", none); });
  expect_names(null, __LINE__ - 1, "", {"'fc'", "empty"});
}

TEST(Module, ChildrenAreReplacedAndTakenAway) {
  NestImpl nest;
  const auto fresh = std::make_shared<nn::LinearImpl>(2, 2);
  nest.replace_module("pair", fresh);
  EXPECT_EQ(keys_of(nest.named_parameters()),
            (Keys{"pair.weight", "pair.bias", "norm.weight", "norm.bias"}));
  nest.unregister_module("pair");
  EXPECT_EQ(keys_of(nest.named_parameters()), (Keys{"norm.weight", "norm.bias"}));
  const Error absent = error_of([&] { nest.replace_module("pair", fresh); });
  expect_names(absent, __LINE__ - 1, "", {"replace_module", "'pair'"});
  nest.replace_module("norm", nn::Linear(1, 1));
  EXPECT_EQ(keys_of(nest.named_parameters()), (Keys{"norm.weight", "norm.bias"}));
}

TEST(Module, ACopyOwnsItsParametersAndIsOtherwiseTheSame) {
  const Pair pair;
  pair->to(kFloat64);
  pair->step.fill_(7);
  pair->a->eval();
  pair->b->requires_grad_(false);
  const auto copy = std::dynamic_pointer_cast<PairImpl>(pair->clone());
  ASSERT_NE(copy, nullptr);
  const auto want = pair->state_dict(), got = copy->state_dict();
  EXPECT_EQ(got.keys(), want.keys());
  for (const auto& item : want) {
    EXPECT_EQ(got[item.key()].dtype(), kFloat64) << item.key();
    EXPECT_EQ(values(got[item.key()]), values(item.value())) << item.key();
    EXPECT_FALSE(got[item.key()].is_alias_of(item.value())) << item.key();
    EXPECT_EQ(got[item.key()].requires_grad(), item.value().requires_grad()) << item.key();
  }
  EXPECT_TRUE(copy->is_training() && copy->b->is_training());
  EXPECT_FALSE(copy->a->is_training());
  EXPECT_TRUE(copy->a->weight.is_same(got["a.weight"]));
}

TEST(Module, WhatCannotBeCopiedSaysHow) {
  expect_error([] { Nest()->clone(); }, {"clone", "Nest", "Cloneable"});
}

TEST(Module, PrintsItsTree) {
  EXPECT_EQ(printed(*Nest()),
            "Nest(\n"
            "  (pair): Pair(\n"
            "    (a): Linear(in_features=2, out_features=3, bias=true)\n"
            "    (b): Linear(in_features=3, out_features=1, bias=false)\n"
            "  )\n"
            "  (norm): BatchNorm2d(4, eps=1e-05, momentum=0.1, affine=true, "
            "track_running_stats=true)\n"
            ")");
  std::ostringstream holder;
  holder << nn::Linear(1, 1);
  EXPECT_EQ(holder.str(), "Linear(in_features=1, out_features=1, bias=true)");
}

}  // namespace
}  // namespace taper::testing
