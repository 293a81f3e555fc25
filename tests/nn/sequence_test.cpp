// Packed and padded sequences: there and back, in any order, with gradients.
#include "taper/nn/sequence.h"

#include "taper/autograd/ops/index.h"
#include "taper/tests/nn/nn_testing.h"

namespace taper::testing {
namespace {

namespace rnn = nn::utils::rnn;

Tensor integers(const std::vector<std::int64_t>& list) {
  return tensor(list);
}

std::vector<std::int64_t> listed(const Tensor& t) {
  const Tensor dense = t.contiguous();
  const auto* p = dense.data_ptr<std::int64_t>();
  return {p, p + dense.numel()};
}

using List = std::vector<std::int64_t>;

TEST(PackedSequence, HoldsStepAfterStepWithoutPadding) {
  const Tensor x = tensor({{11, 21, 31}, {12, 22, 0}, {13, 0, 0}}).unsqueeze(2);  // (T, B, 1)
  const auto packed = rnn::pack_padded_sequence(x, integers({3, 2, 1}));
  EXPECT_EQ(listed(packed.data()), (List{11, 21, 31, 12, 22, 13}));
  EXPECT_EQ(listed(packed.batch_sizes()), (List{3, 2, 1}));
  EXPECT_FALSE(packed.sorted_indices().defined());
  const auto [padded, lengths] = rnn::pad_packed_sequence(packed, false, -1);
  EXPECT_EQ(listed(padded.squeeze(2)), (List{11, 21, 31, 12, 22, -1, 13, -1, -1}));
  EXPECT_EQ(listed(lengths), (List{3, 2, 1}));
}

TEST(PackedSequence, SortsAndComesBackInTheFirstOrder) {
  const Tensor x = sample({4, 5, 2});  // (B, T, 2)
  const List lengths = {2, 5, 1, 4};
  const auto packed = rnn::pack_padded_sequence(x, integers(lengths), true, false);
  EXPECT_EQ(listed(packed.sorted_indices()), (List{1, 3, 0, 2}));
  EXPECT_EQ(listed(packed.unsorted_indices()), (List{2, 0, 3, 1}));
  const auto [padded, back] = rnn::pad_packed_sequence(packed, true, 0, 7);
  ASSERT_TRUE(padded.sizes() == IntArrayRef({4, 7, 2}));
  EXPECT_EQ(listed(back), lengths);
  for (std::int64_t i = 0; i < 4; ++i) {
    const std::int64_t n = lengths[static_cast<std::size_t>(i)];
    EXPECT_TRUE(padded[i].narrow(0, 0, n).equal(x[i].narrow(0, 0, n)));
    EXPECT_TRUE(padded[i].narrow(0, n, 7 - n).eq(0).all().item<bool>());
  }
}

TEST(PackedSequence, PassesGradientsBothWays) {
  const std::vector<Tensor> inputs = {leaf({3, 2, 2}, 1)};
  expect_gradients(
      [](const std::vector<Tensor>& in) {
        const auto packed = rnn::pack_padded_sequence(in[0], integers({1, 3}), false, false);
        return std::get<0>(rnn::pad_packed_sequence(packed));
      },
      inputs);
}

TEST(PackedSequence, IsMadeOfSeparateSequences) {
  const std::vector<Tensor> list = {sample({2, 3}, 1), sample({4, 3}, 2), sample({1, 3}, 3)};
  const Tensor padded = rnn::pad_sequence(list, true, 9);
  ASSERT_TRUE(padded.sizes() == IntArrayRef({3, 4, 3}));
  EXPECT_TRUE(padded[0].narrow(0, 0, 2).equal(list[0]));
  EXPECT_TRUE(padded[0].narrow(0, 2, 2).eq(9).all().item<bool>());
  EXPECT_TRUE(rnn::pad_sequence(list).equal(rnn::pad_sequence(list, true).transpose(0, 1)));
  const auto packed = rnn::pack_sequence(list, false);
  EXPECT_EQ(listed(packed.batch_sizes()), (List{3, 2, 1, 1}));
  EXPECT_TRUE(packed.data()[0].equal(list[1][0]));
  EXPECT_EQ(packed.to(kFloat32).dtype(), kFloat32);
  EXPECT_TRUE(packed.to(kMeta).data().is_meta());
}

TEST(PackedSequence, RefusesWhatDoesNotFit) {
  const Tensor x = sample({4, 2, 3});
  const auto pack = [&](const Tensor& lengths) {
    return [&x, lengths] { rnn::pack_padded_sequence(x, lengths); };
  };
  expect_error(pack(integers({1, 2})), {"must not grow", "(1, 2)", "enforce_sorted"});
  expect_error(pack(integers({5, 2})), {"from 1 to 4", "(5, 2)"});
  expect_error(pack(integers({2, 0})), {"from 1 to 4"});
  expect_error(pack(integers({2, 2, 2})), {"3 lengths for a batch of 2"});
  expect_error(pack(tensor({1.0, 2.0})), {"i64 numbers on the cpu"});
  expect_error(pack(integers({})), {"i64 numbers"});
  expect_error(
      [] {
        rnn::PackedSequence(sample({3, 2}), integers({2, 2}));
      },
      {"need data (4, ...)", "(3, 2)"});
  expect_error([] { rnn::PackedSequence(sample({3, 2}), integers({1, 2})); }, {"not grow"});
  expect_error(
      [] {
        rnn::PackedSequence(sample({3, 2}), integers({2, 1}), integers({0, 5}));
      },
      {"sorted_indices", "below 2"});
  expect_error(
      [] {
        rnn::pad_packed_sequence(rnn::PackedSequence(sample({3, 2}), integers({2, 1})), false, 0,
                                 1);
      },
      {"total_length is 1", "2 steps"});
  expect_error([] { rnn::pad_sequence(std::vector<Tensor>{}); }, {"at least one sequence"});
  expect_error([] { rnn::pad_sequence({sample({2, 3}), sample({2, 4})}); }, {"cat"});
}

}  // namespace
}  // namespace taper::testing
