// An LSTM learns the parity of bits: after each bit, whether the ones so far are odd. It trains on
// short sequences of unequal lengths, packed, and is then asked about long ones. parity [STEPS]
#include <cstdio>
#include <cstdlib>

#include "taper/taper.h"

using namespace taper;
namespace rnn = nn::utils::rnn;

namespace {

struct ParityImpl : nn::Module {
  ParityImpl()
      : lstm(register_module("lstm", nn::LSTM(1, 16))),
        out(register_module("out", nn::Linear(16, 1))) {}

  // (T, 1) of each sequence -> one score for each of their bits, step by step.
  Tensor forward(const rnn::PackedSequence& bits) {
    const auto [states, last] = lstm->forward_with_packed_input(bits);
    return out(states.data()).squeeze(1);
  }

  nn::LSTM lstm;
  nn::Linear out;
};
TAPER_MODULE(Parity);

rnn::PackedSequence random_bits(std::int64_t batch, std::int64_t shortest, std::int64_t longest) {
  const Tensor lengths = randint(shortest, longest + 1, {batch});
  const Tensor bits = randint(2, {longest, batch, 1}).to(kFloat32);
  return rnn::pack_padded_sequence(bits, lengths, false, false);
}

// Whether the ones up to each bit are odd.
Tensor parity_of(const rnn::PackedSequence& bits) {
  const Tensor odd = std::get<0>(rnn::pad_packed_sequence(bits)).cumsum(0).remainder(2);
  const Tensor lengths = std::get<1>(rnn::pad_packed_sequence(bits));
  return rnn::pack_padded_sequence(odd, lengths, false, false).data().squeeze(1);
}

}  // namespace

int main(int argc, char** argv) try {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 600;
  manual_seed(2);
  Parity model;
  optim::Adam optimizer(model->parameters(), optim::AdamOptions(1e-2));
  for (int step = 0; step <= steps; ++step) {
    const rnn::PackedSequence bits = random_bits(32, 1, 10);
    const Tensor loss = binary_cross_entropy_with_logits(model(bits), parity_of(bits));
    optimizer.zero_grad();
    loss.backward();
    nn::utils::clip_grad_norm_(model->parameters(), 1);
    optimizer.step();
    if (step % 100 == 0) std::printf("step %4d  loss %.4f\n", step, loss.item<double>());
  }
  const NoGradGuard no_grad;
  const rnn::PackedSequence bits = random_bits(64, 50, 100);
  const Tensor right = model(bits).gt(0).eq(parity_of(bits).gt(0)).to(kFloat32).mean();
  std::printf("of bits in sequences of 50 to 100: %.1f %% right\n", 100 * right.item<double>());
} catch (const Error& e) {
  return std::fprintf(stderr, "parity: %s\n", e.what()), 1;
}
