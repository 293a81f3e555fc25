// Whole networks train alike on the CPU and on CUDA devices: each loss, weight, buffer and piece of
// the optimizer's state has the same bits after twenty steps, and moves between them in files.
#include <filesystem>

#include <unistd.h>

#include "taper/tests/cuda/ops/same_bits.h"
#include "taper/tests/cuda/race_free.h"
#include "taper/tests/cuda/training/networks.h"

namespace taper::cuda {
namespace {

constexpr int kSteps = 20;

using State = OrderedDict<std::string, Tensor>;

void expect_same_state(const State& a, const State& b, const std::string& what) {
  ASSERT_EQ(a.keys(), b.keys()) << what;
  for (const auto& item : a) expect_same_bits(item.value(), b[item.key()], what + item.key());
}

template <class Net> Tensor train_step(Net& net, optim::Optimizer& optimizer, const Batch& batch) {
  const Device device = net->parameters()[0].device();
  optimizer.zero_grad();
  const Tensor loss = cross_entropy(net(batch.data.to(device)), batch.target.to(device));
  loss.backward();
  nn::utils::clip_grad_norm_(net->parameters(), 1.0);
  optimizer.step();
  return loss.detach();
}

// What twenty steps from one seed gave. The batches are drawn on the CPU, the weights too;
// dropout's masks where the network lies.
template <class Net> struct Trained {
  template <class MakeOptimizer>
  Trained(Device device, Batch (*make_batch)(), const MakeOptimizer& make_optimizer) {
    manual_seed(5);
    net = Net();
    net->to(device);
    optimizer = make_optimizer(net->parameters());
    for (int step = 0; step < kSteps; ++step) {
      losses.push_back(train_step(net, *optimizer, make_batch()));
    }
  }

  Net net{nullptr};
  std::unique_ptr<optim::Optimizer> optimizer;
  std::vector<Tensor> losses;
};

template <class Net, class MakeOptimizer>
void expect_same_training(Device device,
                          Batch (*make_batch)(),
                          const MakeOptimizer& make_optimizer,
                          const std::string& what) {
  if (device.index() >= device_count()) return;
  const Trained<Net> cpu(kCPU, make_batch, make_optimizer);
  EXPECT_NE(difference(cpu.losses[0], cpu.losses[kSteps - 1]), "") << "it does not train";
  const Trained<Net> cuda(device, make_batch, make_optimizer);
  for (std::size_t i = 0; i < kSteps; ++i) {
    EXPECT_EQ(cuda.losses[i].device(), device);
    expect_same_bits(cpu.losses[i], cuda.losses[i], str(what, ", loss of step ", i));
  }
  expect_same_state(cpu.net->state_dict(), cuda.net->state_dict(), what + ", ");
  expect_same_state(cpu.optimizer->state_dict(), cuda.optimizer->state_dict(),
                    what + ", optimizer's ");
}

using Parameters = std::vector<Tensor>;

std::unique_ptr<optim::Optimizer> sgd(const Parameters& p) {
  return std::make_unique<optim::SGD>(p, optim::SGDOptions(0.05).momentum(0.9).weight_decay(1e-3));
}

std::unique_ptr<optim::Optimizer> adam(const Parameters& p) {
  return std::make_unique<optim::Adam>(p, optim::AdamOptions(2e-3).amsgrad(true));
}

std::unique_ptr<optim::Optimizer> adamw(const Parameters& p) {
  return std::make_unique<optim::AdamW>(p, optim::AdamWOptions(2e-3).weight_decay(0.1));
}

TEST(TrainingParity, Mlp) {
  expect_same_training<Mlp>(kFirst, vectors, sgd, "sgd");
  expect_same_training<Mlp>(kSecond, vectors, adam, "adam");
  expect_same_training<Mlp>(kFirst, vectors, adamw, "adamw");
}

TEST(TrainingParity, Cnn) {
  expect_same_training<Cnn>(kFirst, images, sgd, "sgd");
  expect_same_training<Cnn>(kSecond, images, adam, "adam");
  expect_same_training<Cnn>(kFirst, images, adamw, "adamw");
}

TEST(TrainingParity, Gpt) {
  expect_same_training<Gpt>(kFirst, letters, sgd, "sgd");
  expect_same_training<Gpt>(kSecond, letters, adam, "adam");
  expect_same_training<Gpt>(kFirst, letters, adamw, "adamw");
}

TEST(TrainingParity, Recurrent) {
  expect_same_training<Recurrent>(kFirst, letters, sgd, "sgd");
  expect_same_training<Recurrent>(kSecond, letters, adam, "adam");
}

// --- states ---

// A folder that goes when the test does.
class StateFiles : public testing::Test {
 protected:
  StateFiles() { std::filesystem::create_directories(folder_); }

  ~StateFiles() override { std::filesystem::remove_all(folder_); }

  // A run that begins on one device, is saved, and goes on on another, as if it had stayed on the
  // CPU.
  template <class Net> void expect_moves(Device from, Device to, Batch (*make_batch)()) {
    Trained<Net> stays(kCPU, make_batch, adamw);
    const Trained<Net> begun(from, make_batch, adamw);
    save(begun.net, folder_ + "/model.safetensors");
    save(*begun.optimizer, folder_ + "/optimizer.safetensors");
    const auto generator = default_generator().state();

    manual_seed(99);
    Net net;
    net->to(to);
    const std::unique_ptr<optim::Optimizer> optimizer = adamw(net->parameters());
    load(net, folder_ + "/model.safetensors");
    load(*optimizer, folder_ + "/optimizer.safetensors");
    for (const auto& item : net->state_dict()) EXPECT_EQ(item.value().device(), to) << item.key();
    expect_same_state(begun.net->state_dict(), net->state_dict(), "loaded ");
    expect_same_state(begun.optimizer->state_dict(), optimizer->state_dict(),
                      "loaded optimizer's ");

    default_generator().set_state(generator);
    for (int step = 0; step < 5; ++step) {
      const Batch batch = make_batch();
      const auto here = default_generator().state();
      const Tensor expected = train_step(stays.net, *stays.optimizer, batch);
      default_generator().set_state(here);
      expect_same_bits(expected, train_step(net, *optimizer, batch), str("moved, step ", step));
    }
    expect_same_state(stays.net->state_dict(), net->state_dict(), "in the end ");
  }

 private:
  const std::string folder_ = testing::TempDir() + "taper_states_" + std::to_string(getpid());
};

TEST_F(StateFiles, GoFromADeviceToTheHostAndBack) {
  expect_moves<Mlp>(kFirst, kCPU, vectors);
  expect_moves<Mlp>(kCPU, kFirst, vectors);
  expect_moves<Cnn>(kFirst, kCPU, images);
  expect_moves<Cnn>(kCPU, kFirst, images);
  expect_moves<Gpt>(kFirst, kCPU, letters);
  expect_moves<Gpt>(kCPU, kFirst, letters);
}

TEST_F(StateFiles, GoFromOneDeviceToAnother) {
  if (device_count() < 2) GTEST_SKIP() << "needs two devices";
  expect_moves<Cnn>(kFirst, kSecond, images);
}

// Without a file: a state lies where its network does, and is copied to where it is loaded.
TEST(States, LoadFromTensorsOfAnotherDevice) {
  const Trained<Cnn> cuda(kFirst, images, adam), cpu(kCPU, images, adam);
  Cnn net;
  net->load_state_dict(cuda.net->state_dict());
  const std::unique_ptr<optim::Optimizer> optimizer = adam(net->parameters());
  optimizer->load_state_dict(cuda.optimizer->state_dict());
  expect_same_state(cpu.net->state_dict(), net->state_dict(), "");
  expect_same_state(cpu.optimizer->state_dict(), optimizer->state_dict(), "optimizer's ");
  for (const auto& item : optimizer->state_dict()) EXPECT_TRUE(item.value().is_cpu());
}

}  // namespace
}  // namespace taper::cuda
