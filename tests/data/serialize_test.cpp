// save and load: tensors, modules and optimizers come back bit for bit, or an Error says what
// differs.
#include "taper/data/serialize.h"

#include "taper/nn/container.h"
#include "taper/nn/layers.h"
#include "taper/optim/optimizer.h"
#include "taper/tests/autograd/ops_testing.h"
#include "taper/tests/data/files.h"

namespace taper::testing {
namespace {

struct NetImpl : nn::Module {
  explicit NetImpl(std::int64_t hidden = 5, std::int64_t out = 2)
      : fc(register_module("fc", nn::Linear(3, hidden))),
        norm(register_module("norm", nn::BatchNorm2d(hidden))),
        head(register_module("head", nn::Linear(hidden, out))) {}

  Tensor forward(const Tensor& x) {
    return head(relu(norm(fc(x).unsqueeze(2).unsqueeze(3))).flatten(1));
  }

  nn::Linear fc;
  nn::BatchNorm2d norm;
  nn::Linear head;
};
TAPER_MODULE(Net);

Tensor batch(unsigned seed) {
  return sample({4, 3}, seed).to(kFloat32);
}

void expect_same_state(const OrderedDict<std::string, Tensor>& a,
                       const OrderedDict<std::string, Tensor>& b) {
  ASSERT_EQ(a.keys(), b.keys());
  for (const auto& item : a)
    EXPECT_EQ(bytes_of(item.value()), bytes_of(b[item.key()])) << item.key();
}

TEST(Serialize, OneTensor) {
  const Folder folder;
  const Tensor t = sample({2, 3}).t();
  save(t, folder / "t");
  Tensor back;
  load(back, folder / "t");
  EXPECT_TRUE(back.sizes() == IntArrayRef({3, 2}));
  EXPECT_EQ(values(back), values(t));
}

TEST(Serialize, ManyTensors) {
  const Folder folder;
  std::vector<Tensor> many, back;
  for (unsigned i = 0; i < 12; ++i)
    many.push_back(sample({i}, i));  // beyond "9", which sorts behind "10"
  save(many, folder / "t");
  load(back, folder / "t");
  ASSERT_EQ(back.size(), 12U);
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(values(back[i]), values(many[i])) << i;
  OrderedDict<std::string, Tensor> named, named_back;
  named.insert("a", many[3]);
  named.insert("b.c", tensor({1, 2}, kInt32));
  save(named, folder / "n");
  load(named_back, folder / "n");
  EXPECT_EQ(named_back.size(), 2U);
  EXPECT_EQ(values(named_back["a"]), values(many[3]));
  EXPECT_EQ(named_back["b.c"].dtype(), kInt32);
}

TEST(Serialize, WrongKindOfFile) {
  const Folder folder;
  save(std::vector<Tensor>{sample({2}), sample({3})}, folder / "two");
  Tensor one;
  expect_error([&] { load(one, folder / "two"); },
               {folder / "two", "2 named tensors", "serialize_test.cpp:"});
  save(sample({2}), folder / "one");
  std::vector<Tensor> many{sample({7})};
  expect_error([&] { load(many, folder / "one"); }, {folder / "one", "'0'", "serialize_test.cpp:"});
  EXPECT_EQ(many.size(), 1U);  // unchanged
  EXPECT_FALSE(one.defined());
  expect_error([&] { load(one, folder / "missing"); }, {folder / "missing", "serialize_test.cpp:"});
  expect_error([&] { save(Tensor(), folder / "u"); }, {"undefined", "serialize_test.cpp:"});
}

TEST(Serialize, ModulesByHolderAndPointer) {
  const Folder folder;
  Net net, other;
  net(batch(1));  // moves the running statistics
  save(net, folder / "net");
  const Tensor weight = other->fc->weight;
  load(other, folder / "net");
  expect_same_state(other->state_dict(), net->state_dict());
  EXPECT_TRUE(weight.is_alias_of(other->fc->weight));  // copied into what is there
  EXPECT_TRUE(weight.requires_grad());
  net->eval();
  other->eval();
  EXPECT_EQ(values(other(batch(2))), values(net(batch(2))));
  auto pointer = std::make_shared<NetImpl>();
  load(pointer, folder / "net");
  expect_same_state(pointer->state_dict(), net->state_dict());
  save(pointer, folder / "again");
  EXPECT_EQ(read_file(folder / "again"), read_file(folder / "net"));
}

// All that differs is told at once, with the file, and nothing is changed.
TEST(Serialize, ModuleMismatch) {
  const Folder folder;
  Net net(5, 2), wide(7, 2);
  nn::Sequential other(nn::Linear(3, 5));
  save(net, folder / "net");
  const auto before = wide->state_dict();
  OrderedDict<std::string, Tensor> kept;
  for (const auto& item : before) kept.insert(item.key(), item.value().clone());
  expect_error([&] { load(wide, folder / "net"); },
               {folder / "net", "shape: fc.weight is (7, 3) here, (5, 3) in the state",
                "head.weight", "norm.running_var", "serialize_test.cpp:"});
  expect_same_state(wide->state_dict(), kept);
  expect_error([&] { load(other, folder / "net"); },
               {folder / "net", "missing: 0.weight (5, 3)", "missing: 0.bias (5)",
                "unexpected: fc.weight (5, 3)"});
}

template <class Optimizer, class Options> void expect_training_goes_on(const Options& options) {
  const Folder folder;
  const auto step = [](Net& net, Optimizer& optimizer, unsigned seed) {
    optimizer.zero_grad();
    net(batch(seed)).square().sum().backward();
    optimizer.step();
  };
  Net net;
  Optimizer optimizer(net->parameters(), options);
  for (unsigned i = 0; i < 3; ++i) step(net, optimizer, i);
  save(net, folder / "net");
  save(optimizer, folder / "optimizer");
  Net resumed;
  Optimizer resumed_optimizer(resumed->parameters(), options);
  load(resumed, folder / "net");
  load(resumed_optimizer, folder / "optimizer");
  for (unsigned i = 3; i < 6; ++i) {
    step(net, optimizer, i);
    step(resumed, resumed_optimizer, i);
  }
  expect_same_state(resumed->state_dict(), net->state_dict());
  expect_same_state(resumed_optimizer.state_dict(), optimizer.state_dict());
}

TEST(Serialize, TrainingGoesOnBitForBit) {
  expect_training_goes_on<optim::SGD>(optim::SGDOptions(0.1).momentum(0.9));
  expect_training_goes_on<optim::Adam>(optim::AdamOptions(0.1));
  expect_training_goes_on<optim::AdamW>(optim::AdamWOptions(0.1));
}

TEST(Serialize, OptimizerMismatch) {
  const Folder folder;
  Net net, wide(7, 2);
  optim::Adam adam(net->parameters(), optim::AdamOptions(0.1));
  net(batch(1)).sum().backward();
  adam.step();
  save(adam, folder / "adam");
  optim::Adam other(wide->parameters(), optim::AdamOptions(0.2));
  expect_error([&] { load(other, folder / "adam"); },
               {folder / "adam", "(5, 3)", "(7, 3)", "serialize_test.cpp:"});
  optim::SGD sgd(net->parameters(), optim::SGDOptions(0.3));
  expect_error([&] { load(sgd, folder / "adam"); },
               {folder / "adam", "entries", "serialize_test.cpp:"});
  optim::Adam few({net->fc->weight}, optim::AdamOptions(0.4));
  expect_error([&] { load(few, folder / "adam"); }, {folder / "adam", "entries"});
  optim::Adam more({sample({1}).requires_grad_()}, optim::AdamOptions(0.4));
  save(net, folder / "net");
  expect_error([&] { load(more, folder / "net"); }, {folder / "net", "'0.step'"});
}

}  // namespace
}  // namespace taper::testing
