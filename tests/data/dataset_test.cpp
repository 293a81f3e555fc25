// Datasets and transforms: what a batch holds, and how examples change on their way.
#include "taper/data/dataset.h"

#include <array>
#include <deque>

#include "taper/data/data_loader.h"
#include "taper/tests/autograd/ops_testing.h"

namespace taper::testing {
namespace {

using data::Example;
using data::datasets::TensorDataset;
namespace transforms = data::transforms;

using Indices = std::vector<std::size_t>;

// Ten examples: data (2) = {i, -i}, target i.
TensorDataset ten() {
  const Tensor i = arange(10, kFloat32);
  return {stack({i, i.neg()}, 1), arange(10, kInt64)};
}

struct Squares : data::Dataset<Squares> {
  Example<> get(std::size_t i) override {
    return {tensor({static_cast<double>(i * i)}), tensor(static_cast<std::int64_t>(i))};
  }

  std::optional<std::size_t> size() const override { return 5; }
};

TEST(Dataset, GetAndBatch) {
  Squares set;
  EXPECT_EQ(values(set.get(3).data), (Numbers{9}));
  const auto batch = set.get_batch(Indices{4, 0});
  ASSERT_EQ(batch.size(), 2U);
  EXPECT_EQ(values(batch[0].data), (Numbers{16}));
  EXPECT_EQ(batch[1].target.item().to_int(), 0);
}

TEST(Dataset, TensorRows) {
  TensorDataset set = ten();
  EXPECT_EQ(set.size(), 10U);
  EXPECT_EQ(values(set.get(3).data), (Numbers{3, -3}));
  EXPECT_EQ(set.get(3).target.dim(), 0);
  expect_error([] { TensorDataset(zeros({3, 2}), zeros({4})); }, {"(3, 2)", "(4)"});
  expect_error([] { TensorDataset(zeros({}), zeros({})); }, {"()"});
}

TEST(Dataset, StackMakesOneBatch) {
  // By rows at once, and one by one behind another transform: the same.
  auto rows = ten().map(transforms::Stack<>());
  auto singles = ten().map([](Example<> e) { return e; }).map(transforms::Stack<>());
  auto squares = Squares().map(transforms::Stack<>());
  const Example<> a = rows.get_batch(Indices{7, 2, 2}), b = singles.get_batch(Indices{7, 2, 2});
  EXPECT_TRUE(a.data.sizes() == IntArrayRef({3, 2}));
  EXPECT_EQ(values(a.data), (Numbers{7, -7, 2, -2, 2, -2}));
  EXPECT_EQ(values(a.data), values(b.data));
  EXPECT_EQ(values(a.target), (Numbers{7, 2, 2}));
  EXPECT_EQ(values(b.target), values(a.target));
  EXPECT_EQ(values(squares.get_batch(Indices{1, 4}).data), (Numbers{1, 16}));
  EXPECT_EQ(rows.size(), 10U);
}

TEST(Dataset, MapKeepsTheOrderOfTransforms) {
  auto set =
      ten().map([](Example<> e) { return Example<>(e.data + 1, e.target); }).map([](Example<> e) {
        return Example<>(e.data * 10, e.target);
      });
  EXPECT_EQ(values(set.get(2).data), (Numbers{30, -10}));
  EXPECT_EQ(values(set.get_batch(Indices{2})[0].data), (Numbers{30, -10}));
  auto sums = ten().map([](const Example<>& e) { return e.data.sum().item().to_double(); });
  EXPECT_EQ(sums.get_batch(Indices{1, 2}), (Numbers{0, 0}));  // to another type
  TensorDataset kept = ten();
  auto copy = kept.map(transforms::Stack<>());  // an lvalue is copied, and stays
  EXPECT_EQ(copy.dataset().size(), kept.size());
}

TEST(Dataset, Lambda) {
  const float shift = 5;
  auto set = ten().map(transforms::Lambda<Example<>>(
      [shift](Example<> e) { return Example<>(e.data + shift, e.target); }));
  EXPECT_EQ(values(set.get(1).data), (Numbers{6, 4}));
  auto sums = ten().map(transforms::Lambda<Example<>, double>(
      [](const Example<>& e) { return e.data.sum().item().to_double(); }));
  EXPECT_EQ(sums.get_batch(Indices{1, 2}), (Numbers{0, 0}));
}

TEST(Dataset, NormalizeByNumber) {
  auto set = ten().map(transforms::Normalize<>(0.5, 0.25));
  EXPECT_EQ(values(set.get(2).data), (Numbers{6, -10}));
  EXPECT_EQ(set.get(2).data.dtype(), kFloat32);
  EXPECT_EQ(values(ten().get(2).data), (Numbers{2, -2}));  // the source is not written to
}

TEST(Dataset, NormalizeByChannel) {
  const Tensor x = sample({3, 2, 4}, 1);
  const Example<> e = transforms::Normalize<>({1., 2., 3.}, {2., 4., 8.})({x, tensor(1)});
  for (std::int64_t c = 0; c < 3; ++c) {
    expect_close(e.data.select(0, c),
                 (x.select(0, c) - (static_cast<double>(c) + 1)) / static_cast<double>(2 << c));
  }
  EXPECT_EQ(e.target.item().to_int(), 1);
  expect_error([] { transforms::Normalize<>({1., 2.}, {1.}); }, {"2 means", "1 deviations"});
}

// As LibTorch's, whose means and deviations are f32.
TEST(Dataset, NormalizeMakesBytesFloat) {
  const Tensor x = tensor({{10, 20}, {30, 40}}, kUInt8);
  const Example<> one = transforms::Normalize<>(0.5, 0.5)({x, tensor(1)});
  EXPECT_EQ(one.data.dtype(), kFloat32);
  EXPECT_EQ(values(one.data), (Numbers{19, 39, 59, 79}));
  const Example<> each = transforms::Normalize<>({0.5, 30.}, {0.5, 10.})({x, tensor(1)});
  EXPECT_EQ(each.data.dtype(), kFloat32);
  EXPECT_EQ(values(each.data), (Numbers{19, 39, 0, 1}));
}

TEST(Dataset, AnyRange) {
  const auto first_of = [](auto range) {
    auto loader = data::make_data_loader<data::samplers::SequentialSampler>(std::move(range), 2);
    return (*loader->begin())[1];
  };
  EXPECT_EQ(first_of(std::vector<int>{3, 4, 5}), 4);
  EXPECT_EQ(first_of(std::deque<std::string>{"a", "b"}), "b");
  EXPECT_EQ(first_of(std::array<double, 2>{1, 2}), 2);
}

// A sampler of the user's may be wrong about the size.
TEST(Dataset, IndexOutOfRange) {
  const std::vector<int> range{1, 2, 3};
  auto loader = data::make_data_loader(range, data::samplers::SequentialSampler(4), 2);
  auto it = loader->begin();
  expect_error([&] { ++it; }, {"example 3", "3"});
  expect_error([] { ten().get_batch(Indices{1, 10}); }, {"example 10"});
}

// What fails says for which example, in the dataset and in what is done to it.
TEST(Dataset, ErrorsNameTheExample) {
  struct Fragile : data::Dataset<Fragile> {
    Example<> get(std::size_t i) override {
      if (i == 3) throw std::out_of_range("no file 3.png");
      return {zeros({2}), tensor(0)};
    }

    std::optional<std::size_t> size() const override { return 5; }
  };

  Fragile set;
  expect_error([&] { set.get_batch(Indices{1, 3}); }, {"example 3", "no file 3.png"});
  auto reshaped = ten().map([](Example<> e) { return Example<>(e.data.view({3}), e.target); });
  expect_error([&] { reshaped.get_batch(Indices{8}); }, {"example 8", "dataset_test.cpp:"});
  try {
    set.get_batch(Indices{3});
    FAIL();
  } catch (const std::exception& e) {  // the cause is kept
    EXPECT_THROW(std::rethrow_if_nested(e), std::out_of_range);
  }
}

TEST(Dataset, Glyphs) {
  const TensorDataset a = data::datasets::glyphs(20, 3), b = data::datasets::glyphs(20, 3);
  EXPECT_TRUE(a.data().sizes() == IntArrayRef({20, 1, 28, 28}));
  EXPECT_EQ(values(a.data()), values(b.data()));
  EXPECT_NE(values(a.data()), values(data::datasets::glyphs(20, 4).data()));
  for (const double v : values(a.data())) ASSERT_TRUE(v >= 0 && v <= 1) << v;
  for (const double v : values(a.targets())) ASSERT_TRUE(v >= 0 && v < 10) << v;
}

}  // namespace
}  // namespace taper::testing
