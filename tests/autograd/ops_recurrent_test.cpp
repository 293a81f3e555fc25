// Recurrent layers as ops: fused and composite derivatives, what is refused, what is kept alive.
#include "taper/autograd/grad_mode.h"
#include "taper/autograd/ops/recurrent.h"
#include "taper/core/threads.h"
#include "taper/tests/autograd/ops_testing.h"

namespace taper::testing {
namespace {

using Lengths = std::vector<std::int64_t>;
using List = std::vector<Tensor>;

const std::vector<Lengths> kLengths = {{1},       {3},          {2, 2, 2},
                                       {4, 1, 1}, {3, 2, 2, 1}, {3, 3, 1, 1, 1}};

std::int64_t total(const Lengths& lengths) {
  std::int64_t n = 0;
  for (const std::int64_t count : lengths) n += count;
  return n;
}

List lstm_inputs(const Lengths& lengths, std::int64_t size = 2) {
  return {leaf({total(lengths), 4 * size}, 1), leaf({4 * size, size}, 2),
          leaf({lengths[0], size}, 3), leaf({lengths[0], size}, 4)};
}

List gru_inputs(const Lengths& lengths, std::int64_t size = 2) {
  return {leaf({total(lengths), 3 * size}, 1), leaf({3 * size, size}, 2), leaf({3 * size}, 3),
          leaf({lengths[0], size}, 4)};
}

// h and c side by side.
Tensor lstm(const List& in, const Lengths& lengths) {
  const LstmStates s = lstm_layer(in[0], in[1], in[2], in[3], lengths);
  return cat({s.h, s.c}, 1);
}

TEST(Recurrent, FusedAndCompositeDerivativesAgree) {
  for (const Lengths& lengths : kLengths) {
    expect_same_with_graph([&](const List& in) { return lstm(in, lengths); }, lstm_inputs(lengths));
    expect_same_with_graph(
        [&](const List& in) { return gru_layer(in[0], in[1], in[2], in[3], lengths); },
        gru_inputs(lengths));
  }
}

TEST(Recurrent, DerivativesOfBothOrdersAreRight) {
  for (const Lengths& lengths : kLengths) {
    expect_gradients([&](const List& in) { return lstm(in, lengths); }, lstm_inputs(lengths));
    expect_gradients([&](const List& in) { return gru_layer(in[0], in[1], in[2], in[3], lengths); },
                     gru_inputs(lengths));
  }
}

// Gradients of h alone, of c alone, and in single inputs.
TEST(Recurrent, DerivativesOfPartsAreThoseOfTheWhole) {
  const Lengths lengths = {3, 2, 1};
  const List in = lstm_inputs(lengths);
  const LstmStates s = lstm_layer(in[0], in[1], in[2], in[3], lengths);
  const Tensor of_h = sample(s.h.sizes(), 8), of_c = sample(s.c.sizes(), 9);
  const List both = grad({s.h, s.c}, in, {of_h, of_c}, true);
  const List h = grad({s.h}, in, {of_h}, true), c = grad({s.c}, in, {of_c}, true);
  for (std::size_t i = 0; i < in.size(); ++i) {
    expect_close(both[i], h[i] + c[i], 1e-12);
    expect_close(grad({s.h}, {in[i]}, {of_h}, true)[0], h[i], 1e-12);
  }
}

TEST(Recurrent, ThreadsDoNotChangeBits) {
  const int before = get_num_threads();
  const Lengths lengths(5, 40);
  std::vector<List> results;
  for (const int threads : {1, 2, 4}) {
    set_num_threads(threads);
    List all;
    const auto add = [&](const List& in, const Tensor& y) {
      all.push_back(y);
      for (const Tensor& g : grad({y}, in, {sample(y.sizes(), 7).to(y.dtype())})) all.push_back(g);
    };
    List a = lstm_inputs(lengths, 96), b = gru_inputs(lengths, 96);
    for (List* in : {&a, &b}) {
      for (Tensor& t : *in) t = t.detach().to(kFloat32).requires_grad_();
    }
    add(a, lstm(a, lengths));
    add(b, gru_layer(b[0], b[1], b[2], b[3], lengths));
    results.push_back(all);
  }
  set_num_threads(before);
  for (const List& other : results) {
    for (std::size_t i = 0; i < other.size(); ++i) EXPECT_TRUE(results[0][i].equal(other[i])) << i;
  }
}

TEST(Recurrent, RefusesWhatDoesNotFit) {
  const auto run = [](const List& in, const Lengths& lengths) {
    return [=] { lstm_layer(in[0], in[1], in[2], in[3], lengths); };
  };
  const List in = lstm_inputs({2, 2});
  expect_error(run(in, {2, 3}), {"lstm", "must not grow", "(2, 3)"});
  expect_error(run(in, {}), {"lstm", "one time step"});
  expect_error(run(in, {2, 1}), {"lstm", "needs x (3, 4 H)", "(4, 8)", "(8, 2)"});
  expect_error(run({in[0], in[0], in[2], in[3]}, {2, 2}), {"lstm", "w_hh (4 H, H)"});
  expect_error(run({in[0], in[1], in[0], in[3]}, {2, 2}), {"lstm", "initial states (2, 2)"});
  expect_error(run({in[0], in[1].to(kFloat32), in[2], in[3]}, {2, 2}), {"lstm", "one floating"});
  const List gru = gru_inputs({2, 2});
  expect_error(
      [&] {
        gru_layer(gru[0], gru[1], gru[3], gru[3], {2, 2});
      },
      {"gru", "needs b_hh (6)"});
}

TEST(Recurrent, WritesToWhatBackwardNeedsAreNoticed) {
  const List in = lstm_inputs({2, 2});
  const LstmStates s = lstm_layer(in[0], in[1], in[2], in[3], {2, 2});
  s.h.mul_(2);
  expect_error([&] { s.h.sum().backward(); }, {"lstm", "has been written since"});
}

}  // namespace
}  // namespace taper::testing
