// Sequential, ModuleList and Functional; and the path by which an error names a module.
#include "taper/nn/container.h"

#include "taper/nn/layers.h"
#include "taper/nn/stateless.h"
#include "taper/nn/transformer.h"
#include "taper/tests/nn/nn_testing.h"

namespace taper::testing {
namespace {

using Keys = std::vector<std::string>;

TEST(Sequential, RunsItsModulesInOrder) {
  const nn::Linear a(3, 4), b(4, 2);
  const nn::Sequential net(a, nn::ReLU(), b);
  const Tensor x = sample({5, 3}).to(kFloat32);
  EXPECT_EQ(values(net(x)), values(b(relu(a(x)))));
  EXPECT_EQ(values(net->forward(x)), values(net(x)));
  EXPECT_EQ(net->named_parameters().keys(), (Keys{"0.weight", "0.bias", "2.weight", "2.bias"}));
  EXPECT_EQ(net->size(), 3U);
  EXPECT_EQ((*net)[2].get(), b.get());
  EXPECT_EQ(net->ptr(0).get(), a.get());
  net->to(kFloat64);
  expect_parameter_gradients(*net, [&, y = x.to(kFloat64)] { return net(y); });
}

TEST(Sequential, IsBuiltByNamesByOneModuleAndByPushing) {
  const nn::Sequential named({{"fc", nn::Linear(3, 4)}, {"act", nn::Tanh()}});
  EXPECT_EQ(named->named_children().keys(), (Keys{"fc", "act"}));
  const nn::Sequential one(nn::Linear(3, 4));
  EXPECT_EQ(one->named_parameters().keys(), (Keys{"0.weight", "0.bias"}));
  nn::Sequential grown;
  EXPECT_TRUE(grown->is_empty());
  grown->push_back(nn::Linear(3, 4));
  grown->push_back("act", nn::Tanh());
  grown->push_back(nn::Sequential(nn::Linear(4, 1), nn::ReLU()));
  EXPECT_EQ(grown->named_children().keys(), (Keys{"0", "act", "2"}));
  EXPECT_TRUE(grown(ones({2, 3})).sizes() == IntArrayRef({2, 1}));
  std::size_t seen = 0;
  for (const nn::AnyModule& m : *grown) seen += m.ptr() == nullptr ? 0U : 1U;
  EXPECT_EQ(seen, 3U);
  expect_error([&] { grown->push_back("act", nn::Tanh()); }, {"'act'", "already"});
}

TEST(Sequential, EmptyIsRefused) {
  const nn::Sequential net;
  const Error e = error_of([&] { net(ones({1})); });
  EXPECT_EQ(e.loc().line, unsigned{__LINE__ - 1});
  EXPECT_NE(std::string(e.what()).find("Sequential"), std::string::npos);
}

TEST(Sequential, ACopyOwnsItsModules) {
  const nn::Sequential net({{"fc", nn::Linear(3, 4)}, {"act", nn::ReLU()}});
  net->push_back(nn::Sequential(nn::Dropout(0.5), nn::Linear(4, 2)));
  net->eval();
  const auto copy = std::dynamic_pointer_cast<nn::SequentialImpl>(net->clone());
  ASSERT_NE(copy, nullptr);
  EXPECT_EQ(copy->named_children().keys(), net->named_children().keys());
  const Tensor x = sample({5, 3}).to(kFloat32);
  EXPECT_EQ(values(copy->forward(x)), values(net(x)));
  for (const auto& p : net->named_parameters()) {
    EXPECT_FALSE(copy->named_parameters()[p.key()].is_alias_of(p.value())) << p.key();
  }
  (*copy)[0]->as<nn::Linear>()->weight.detach().zero_();
  EXPECT_NE(values(copy->forward(x)), values(net(x)));
}

TEST(Sequential, InsideAClonedModuleIsCopiedToo) {
  struct NetImpl : nn::Cloneable<NetImpl> {
    NetImpl() { reset(); }
    void reset() override {
      body = register_module("body", nn::Sequential(nn::Linear(2, 3), nn::Tanh()));
    }
    nn::Sequential body{nullptr};
  };
  const auto net = std::make_shared<NetImpl>();
  const auto copy = std::dynamic_pointer_cast<NetImpl>(net->clone());
  const Tensor x = ones({1, 2});
  EXPECT_EQ(values(copy->body(x)), values(net->body(x)));
  EXPECT_NE(copy->body.get(), net->body.get());
}

TEST(Sequential, CopiesEveryKindOfLayer) {
  const nn::Sequential net(nn::Conv2d(2, 4, 3), nn::BatchNorm2d(4), nn::ReLU(), nn::MaxPool2d(2),
                           nn::Flatten(), nn::Linear(16, 6),
                           nn::LayerNorm(std::vector<std::int64_t>{6}), nn::Dropout(0.5));
  const Tensor x = sample({3, 2, 6, 6}).to(kFloat32);
  net(x);  // moves the running statistics
  net->eval();
  EXPECT_EQ(values(std::dynamic_pointer_cast<nn::SequentialImpl>(net->clone())->forward(x)),
            values(net(x)));
  const nn::Sequential gpt(nn::Embedding(7, 4), nn::TransformerBlock(4, 2));
  const Tensor words = tensor({{1, 5, 6}}, kInt64);
  EXPECT_EQ(values(std::dynamic_pointer_cast<nn::SequentialImpl>(gpt->clone())->forward(words)),
            values(gpt(words)));
}

TEST(Sequential, CopiesFunctionsAndRefusesWhatCannotBeCopied) {
  struct FixedImpl : nn::Module {
    Tensor forward(const Tensor& x) { return x; }
  };
  const nn::Sequential net(nn::Functional(relu), nn::Linear(2, 2));
  const auto copy = std::dynamic_pointer_cast<nn::SequentialImpl>(net->clone());
  const Tensor x = sample({3, 2}).to(kFloat32);
  EXPECT_EQ(values(copy->forward(x)), values(net(x)));
  net->push_back(nn::ModuleHolder<FixedImpl>());
  expect_error([&] { net->clone(); }, {"clone", "Fixed"});
}

TEST(ModuleList, RegistersByIndex) {
  nn::ModuleList list;
  list->push_back(nn::Linear(2, 3));
  list->push_back(std::make_shared<nn::LinearImpl>(3, 1));
  list->push_back(nn::LinearImpl(1, 1));
  EXPECT_EQ(list->size(), 3U);
  EXPECT_EQ(list->named_children().keys(), (Keys{"0", "1", "2"}));
  EXPECT_TRUE(list->at<nn::LinearImpl>(1).weight.sizes() == IntArrayRef({1, 3}));
  const std::shared_ptr<nn::Module> second = list[1];
  EXPECT_EQ(second.get(), &list->at<nn::LinearImpl>(1));
  expect_error([&] { list->at<nn::ReLUImpl>(1); }, {"element 1", "Linear"});
  Tensor x = ones({1, 2});
  for (const auto& m : *list) x = m->as<nn::Linear>()->forward(x);
  EXPECT_TRUE(x.sizes() == IntArrayRef({1, 1}));
  const std::shared_ptr<nn::LinearImpl> none;
  const Error empty = error_of([&] { list->push_back(none); });
  expect_names(empty, __LINE__ - 1, "", {"register_module", "'3'", "empty"});
  const auto copy = std::dynamic_pointer_cast<nn::ModuleListImpl>(list->clone());
  EXPECT_EQ(values(copy->at<nn::LinearImpl>(1).weight), values(list->at<nn::LinearImpl>(1).weight));
  EXPECT_NE((*copy)[1], (*list)[1]);
}

TEST(Functional, CallsWhatItWasGiven) {
  const Tensor x = sample({2, 2});
  EXPECT_EQ(values(nn::Functional(relu)(x)), values(relu(x)));
  const nn::Functional twice([](const Tensor& t) { return t * 2; });
  EXPECT_EQ(values(nn::Sequential(twice, nn::Functional(tanh))(x)), values(tanh(x * 2)));
  EXPECT_EQ(printed(*twice), "Functional()");
}

TEST(Containers, PrintTheirTree) {
  const nn::Sequential net(nn::Linear(2, 3), nn::ReLU(), nn::Sequential(nn::Tanh()));
  EXPECT_EQ(printed(*net),
            "Sequential(\n"
            "  (0): Linear(in_features=2, out_features=3, bias=true)\n"
            "  (1): ReLU()\n"
            "  (2): Sequential(\n"
            "    (0): Tanh()\n"
            "  )\n"
            ")");
}

// --- Scopes: the path that a user would write
// -----------------------------------------------------

struct BlockImpl : nn::Module {
  BlockImpl() : body(register_module("body", nn::Sequential(nn::Linear(2, 3), nn::Linear(2, 3)))) {}

  const unsigned line = __LINE__ + 1;
  Tensor forward(const Tensor& x) { return body(x); }

  nn::Sequential body;
};
TAPER_MODULE(Block);

struct StackImpl : nn::Module {
  StackImpl() {
    layers->push_back(Block());
    register_module("layers", layers);
    layers->push_back(Block());
  }

  Tensor forward(const Tensor& x) { return layers->at<BlockImpl>(1).forward(x); }

  // The list's modules through their own calls, which alone know what they are.
  Tensor norms(const Tensor& x) { return extra->at<nn::LayerNormImpl>(0).forward(x); }

  nn::ModuleList layers, extra = register_module("extra", nn::ModuleList());
};
TAPER_MODULE(Stack);

TEST(Scope, OfASequentialNamesTheIndexAndWhoseItIs) {
  const nn::Sequential net(nn::Linear(2, 3), nn::Linear(2, 3));
  const Error e = error_of([&] { net(ones({1, 2})); });
  expect_names(e, __LINE__ - 1, "Sequential.1", {"linear", "(1, 3)", "(3, 2)"});
  const nn::Sequential named({{"fc1", nn::Linear(2, 3)}, {"fc2", nn::Linear(2, 3)}});
  const Error by_name = error_of([&] { named->forward(ones({1, 2})); });
  expect_names(by_name, __LINE__ - 1, "Sequential.fc2", {"linear"});
}

TEST(Scope, OfARegisteredSequentialIsItsPath) {
  const Block block;
  const Error e = error_of([&] { block(ones({1, 2})); });
  expect_names(e, block->line, "body.1", {"linear"});
  struct NetImpl : nn::Module {
    NetImpl() { register_module("net", net); }
    nn::Sequential net = nn::Sequential(nn::Sequential(nn::Linear(2, 3)), nn::ReLU());
  };
  const NetImpl outer;
  const Error nested = error_of([&] { outer.net(ones({1, 5})); });
  expect_names(nested, __LINE__ - 1, "net.0.0", {"linear"});
}

TEST(Scope, OfAListNamesTheListToo) {
  const Stack stack;
  const auto wrong = [&] { stack(ones({1, 2})); };  // Block has no call of its own to name it
  EXPECT_EQ(error_of(wrong).scope(), "body.1");
  stack->extra->push_back(nn::LayerNorm(nn::LayerNormOptions({3})));
  const Error e = error_of([&] { stack->norms(ones({1, 2})); });
  EXPECT_EQ(e.scope(), "extra.0");
  nn::ModuleList alone;
  alone->push_back(nn::Linear(2, 3));
  const Error own = error_of([&] { alone->at<nn::LinearImpl>(0).forward(ones({1, 5})); });
  expect_names(own, __LINE__ - 1, "ModuleList.0", {"linear"});
}

TEST(Scope, FollowsTheLastRegistration) {
  const nn::Linear fc(2, 3);
  nn::Module first, second;
  const auto scope = [&] { return error_of([&] { fc(ones({1, 5})); }).scope(); };
  EXPECT_EQ(scope(), "");
  first.register_module("a", fc);
  EXPECT_EQ(scope(), "a");
  second.register_module("b", fc);
  EXPECT_EQ(scope(), "b");
  EXPECT_EQ(scope_name(call_site.scope), "");
}

}  // namespace
}  // namespace taper::testing
