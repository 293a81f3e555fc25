// gather, scatter and their relatives: values, refusals, gradients, and the forms in place.
#include "taper/autograd/ops/index.h"
#include "taper/tests/autograd/ops_support.h"

namespace taper {
namespace {

TEST(Gather, TakesOneElementForEachIndex) {
  const Tensor x = f64({{1, 2, 3}, {4, 5, 6}});
  EXPECT_EQ(values(x.gather(1, i64({{0, 2}, {1, 1}}))), (Numbers{1, 3, 5, 5}));
  EXPECT_EQ(values(x.gather(0, i64({{1, 0, 1}}))), (Numbers{4, 2, 6}));
  EXPECT_EQ(values(x.t().gather(-2, i64({{2, 0}}))), (Numbers{3, 4}));
  EXPECT_EQ(values(f64(7).gather(0, i64(0))), Numbers{7});
  EXPECT_EQ(shape(x.gather(1, zeros({2, 0}, kInt64))), (Shape{2, 0}));
  EXPECT_EQ(values(x.take_along_dim(i64({{2}}), 1)), (Numbers{3, 6}));
  EXPECT_EQ(values(x.take_along_dim(x.argsort(1, true), 1)), (Numbers{3, 2, 1, 6, 5, 4}));
}

TEST(Gather, RefusesWhatDoesNotFit) {
  const Tensor x = zeros({2, 3});
  EXPECT_TRUE(contains(message_of([&] {
                         x.gather(1, i64({{0, 3}}));
                       }),
                       "gather: index 3 is out of range for dim 1 of size 3"));
  EXPECT_TRUE(contains(message_of([&] { x.gather(1, i64({{-1}})); }), "index -1 is out of range"));
  EXPECT_TRUE(contains(message_of([&] { x.gather(0, i64({0})); }),
                       "an index of shape (1) does not fit into (2, 3)"));
  EXPECT_TRUE(contains(message_of([&] { x.gather(0, zeros({1, 4}, kInt64)); }), "does not fit"));
  EXPECT_TRUE(contains(message_of([&] { x.gather(0, zeros({1, 3})); }), "must be i64, got f32"));
  EXPECT_TRUE(contains(message_of([&] {
                         x.scatter(1, i64({{0}}), zeros({1, 1}, kFloat64));
                       }),
                       "must have one dtype"));
  EXPECT_TRUE(contains(message_of([&] {
                         x.scatter(1, zeros({2, 2}, kInt64), zeros({1, 2}));
                       }),
                       "src (1, 2) is smaller than the index (2, 2)"));
  EXPECT_TRUE(contains(message_of([&] {
                         x.index_add(0, i64({0, 1}), zeros({1, 3}));
                       }),
                       "do not fit x (2, 3)"));
  EXPECT_TRUE(contains(message_of([&] { x.index_select(0, i64({{0}})); }), "must have one dim"));
}

TEST(Gather, SendsGradientsBack) {
  const Tensor index = i64({{0, 2}, {1, 1}});
  const auto f = [&](const std::vector<Tensor>& in) { return in[0].gather(1, index); };
  check_derivatives(f, {variable({2, 3})});
  const auto part = [&](const std::vector<Tensor>& in) { return in[0].gather(0, index); };
  check_derivatives(part, {variable({3, 4})});
  const auto along = [](const std::vector<Tensor>& in) {
    return in[0].take_along_dim(i64({{2}, {0}}), 1);
  };
  check_derivatives(along, {variable({1, 3})});
}

TEST(Scatter, WritesAndAdds) {
  const Tensor x = zeros({2, 3}, kFloat64);
  const Tensor index = i64({{0, 2}, {1, 1}}), src = f64({{1, 2}, {3, 4}});
  EXPECT_EQ(values(x.scatter(1, index, src)), (Numbers{1, 0, 2, 0, 4, 0}));
  EXPECT_EQ(values(x.scatter_add(1, index, src)), (Numbers{1, 0, 2, 0, 7, 0}));
  EXPECT_EQ(values(x.scatter(1, index, 9)), (Numbers{9, 0, 9, 0, 9, 0}));
  EXPECT_EQ(values(x), Numbers(6));
  const Tensor large = f64({{1, 2, 8}, {3, 4, 8}, {8, 8, 8}});
  EXPECT_EQ(values(x.scatter(1, index, large)), (Numbers{1, 0, 2, 0, 4, 0}));
  EXPECT_EQ(values(x.scatter_add_(1, index, src)), (Numbers{1, 0, 2, 0, 7, 0}));
  EXPECT_EQ(values(x.scatter_(0, i64({{1, 1, 1}}), 5)), (Numbers{1, 0, 2, 5, 5, 5}));
  EXPECT_EQ(x.version(), 2U);
  EXPECT_EQ(values(zeros({3}, kInt64).scatter(0, i64({1}), 2)), (Numbers{0, 2, 0}));
  EXPECT_EQ(values(f64(1).scatter(0, i64(0), 3)), Numbers{3});
}

TEST(Scatter, SendsGradientsBack) {
  const Tensor index = i64({{0, 2}, {1, 0}});
  const auto write = [&](const std::vector<Tensor>& in) { return in[0].scatter(1, index, in[1]); };
  const auto add = [&](const std::vector<Tensor>& in) {
    return in[0].scatter_add(1, i64({{0, 2}, {1, 1}}), in[1]);
  };
  const auto number = [&](const std::vector<Tensor>& in) { return in[0].scatter(1, index, 3); };
  check_derivatives(write, {variable({2, 3}), variable({2, 2}, 2)});
  check_derivatives(write, {variable({2, 3}), variable({3, 4}, 2)});
  check_derivatives(add, {variable({2, 3}), variable({2, 2}, 2)});
  check_derivatives(number, {variable({2, 3})});
}

TEST(Scatter, InPlaceHasTheSameGradients) {
  const Tensor index = i64({{0, 2}, {1, 0}});
  const auto write = [&](const std::vector<Tensor>& in) {
    const Tensor y = in[0] * 1;
    y.scatter_(1, index, in[1]);
    return y * y;
  };
  const auto through_view = [&](const std::vector<Tensor>& in) {
    const Tensor y = in[0] * 1;
    y.t().scatter_add_(1, i64({{1, 1}}), in[1]);
    return y * y;
  };
  const auto rows = [&](const std::vector<Tensor>& in) {
    const Tensor y = in[0] * 1;
    y.select(0, 1).index_add_(0, i64({2, 0, 2}), in[1]);
    return y * y;
  };
  check_derivatives(write, {variable({2, 3}), variable({2, 2}, 2)});
  check_derivatives(through_view, {variable({2, 3}), variable({1, 2}, 2)});
  check_derivatives(rows, {variable({2, 3}), variable({3}, 2)});
  const Tensor kept = zeros({2, 3}, kFloat64);
  kept.scatter_(1, index, variable({2, 2}));
  EXPECT_TRUE(kept.requires_grad());
  EXPECT_TRUE(contains(message_of([] { variable({2}).scatter_(0, i64({0}), 1); }), "leaf"));
}

TEST(IndexSelect, TakesWholeSlices) {
  const Tensor x = f64({{1, 2}, {3, 4}, {5, 6}});
  EXPECT_EQ(values(x.index_select(0, i64({2, 0, 2}))), (Numbers{5, 6, 1, 2, 5, 6}));
  EXPECT_EQ(values(x.index_select(1, i64(1))), (Numbers{2, 4, 6}));
  EXPECT_EQ(values(x.index_select(-1, i64({1}).to(kInt32))), (Numbers{2, 4, 6}));
  EXPECT_EQ(values(x.index_add(0, i64({1, 1}), f64({{1, 1}, {2, 2}}))),
            (Numbers{1, 2, 6, 7, 5, 6}));
  EXPECT_EQ(values(x.index_fill(0, i64({2, 0}), 7)), (Numbers{7, 7, 3, 4, 7, 7}));
  EXPECT_EQ(values(x.index_fill(1, i64(1), 7)), (Numbers{1, 7, 3, 7, 5, 7}));
  EXPECT_TRUE(contains(message_of([&] { x.index_select(0, i64({3})); }),
                       "index_select: index 3 is out of range for dim 0 of size 3"));
  const auto pick = [](const std::vector<Tensor>& in) {
    return in[0].index_select(1, i64({2, 0, 2}));
  };
  const auto add = [](const std::vector<Tensor>& in) {
    return in[0].index_add(1, i64({2, 0, 2}), in[1]);
  };
  const auto fill = [](const std::vector<Tensor>& in) { return in[0].index_fill(1, i64({2}), 3); };
  check_derivatives(pick, {variable({2, 3})});
  check_derivatives(add, {variable({2, 3}), variable({2, 3}, 2)});
  check_derivatives(fill, {variable({2, 3})});
}

TEST(Embedding, SumsTheGradientsOfARow) {
  const Tensor w = leaf({{1., 2.}, {3., 4.}, {5., 6.}});
  const Tensor index = i64({{1, 1}, {2, 0}});
  const Tensor y = embedding(w, index);
  EXPECT_EQ(shape(y), (Shape{2, 2, 2}));
  EXPECT_EQ(values(y), (Numbers{3, 4, 3, 4, 5, 6, 1, 2}));
  EXPECT_EQ(values(grad_of(y.sum(), w)), (Numbers{1, 1, 2, 2, 1, 1}));
  EXPECT_EQ(values(grad_of(embedding(w, i64({1, 1, 2}), 1).sum(), w)), (Numbers{0, 0, 0, 0, 1, 1}));
  EXPECT_EQ(values(embedding(w, i64(2))), (Numbers{5, 6}));
  const auto f = [&](const std::vector<Tensor>& in) { return embedding(in[0], index, 2); };
  EXPECT_TRUE(gradgradcheck(f, {w}));
  EXPECT_TRUE(contains(message_of([&] { embedding(w, i64({3})); }),
                       "embedding: index 3 is out of range for dim 0 of size 3"));
  EXPECT_TRUE(contains(message_of([&] { embedding(w, i64({-1})); }), "index -1 is out of range"));
}

TEST(OneHot, MarksTheClass) {
  EXPECT_EQ(values(one_hot(i64({1, 0}))), (Numbers{0, 1, 1, 0}));
  EXPECT_EQ(shape(one_hot(i64({{1}, {0}}), 4)), (Shape{2, 1, 4}));
  EXPECT_EQ(one_hot(i64({1})).dtype(), kInt64);
  EXPECT_TRUE(contains(message_of([] { one_hot(i64({5}), 3); }), "index 5 is out of range"));
}

TEST(Gather, KnowsItsShapeOnMeta) {
  const TensorOptions meta = TensorOptions(kFloat).device(kMeta);
  const Tensor x = zeros({4, 3}, meta), index = zeros({2}, meta.dtype(kInt64));
  EXPECT_EQ(shape(embedding(x, index)), (Shape{2, 3}));
  EXPECT_EQ(shape(x.index_select(0, index)), (Shape{2, 3}));
  EXPECT_EQ(shape(x.gather(0, zeros({2, 3}, meta.dtype(kInt64)))), (Shape{2, 3}));
  EXPECT_EQ(shape(x.scatter(0, zeros({2, 3}, meta.dtype(kInt64)), 1)), (Shape{4, 3}));
}

}  // namespace
}  // namespace taper
