// x.index({...}): each kind of index, where indexed dims go, writes, views and gradients.
#include "taper/autograd/ops/index.h"
#include "taper/tests/autograd/ops_support.h"

namespace taper {
namespace {

using indexing::Ellipsis;
using indexing::None;
using indexing::Slice;

Tensor cube() {
  return arange(24, kFloat64).reshape({2, 3, 4});
}

bool is_view_of(const Tensor& view, const Tensor& x) {
  return view.is_alias_of(x) && !view.is_same(x);
}

TEST(Index, NumbersSlicesAndNoneMakeViews) {
  const Tensor x = cube();
  EXPECT_EQ(values(x.index({1, 2})), (Numbers{20, 21, 22, 23}));
  EXPECT_EQ(x.index({1, -1}).storage_offset(), 20);
  EXPECT_EQ(values(x.index({Slice(), 0, Slice(1, 3)})), (Numbers{1, 2, 13, 14}));
  EXPECT_EQ(shape(x.index({"...", 0})), (Shape{2, 3}));
  EXPECT_EQ(shape(x.index({Ellipsis, Slice(None, None, 2)})), (Shape{2, 3, 2}));
  EXPECT_EQ(shape(x.index({None, 0, None, "...", None})), (Shape{1, 1, 3, 4, 1}));
  EXPECT_EQ(shape(x.index({Slice(5, 9)})), (Shape{0, 3, 4}));
  const Tensor back = x.index({Slice(), Slice(), Slice(None, None, -1)});
  EXPECT_EQ(back.stride(2), -1);
  EXPECT_EQ(values(back.index({0, 0})), (Numbers{3, 2, 1, 0}));
  EXPECT_EQ(values(arange(5).index({Slice(3, 0, -2)})), (Numbers{3, 1}));
  for (const Tensor& v : {x.index({1}), x.index({Slice()}), x.index({"..."}), x[0], back,
                          x.index(ArrayRef<TensorIndex>())}) {
    EXPECT_TRUE(is_view_of(v, x));
  }
  EXPECT_EQ(x[1][2][3].item<double>(), 23);
}

TEST(Index, TensorsIndexTogether) {
  const Tensor x = cube();
  EXPECT_EQ(shape(x.index({i64({0, 1, 1})})), (Shape{3, 3, 4}));
  EXPECT_EQ(values(x.index({i64({0, 1}), i64({2, -1}), i64({3, 0})})), (Numbers{11, 20}));
  EXPECT_EQ(values(x.index({i64({{0}, {1}}), i64({0, 2}), 1})), (Numbers{1, 9, 13, 21}));
  EXPECT_EQ(values(x[i64({1})]), values(x[1]));
  EXPECT_EQ(shape(x.index({zeros({0}, kInt64)})), (Shape{0, 3, 4}));
  EXPECT_EQ(values(x.index({i64(1), 0, i64(2)})), Numbers{14});
  EXPECT_TRUE(is_view_of(x.index({i64(1)}), x));
}

TEST(Index, IndexedDimsGoWhereTheyWereOrToTheFront) {
  const Tensor x = numbers({2, 3, 4, 5});
  const Tensor i = i64({{0, 1}, {2, 1}, {0, 0}}), j = i64({1, 3});  // (3, 2) and (2)
  const Tensor together = x.index({Slice(), i, j});
  ASSERT_EQ(shape(together), (Shape{2, 3, 2, 5}));
  const Tensor apart = x.index({Slice(), i, Slice(), j});
  ASSERT_EQ(shape(apart), (Shape{3, 2, 2, 4}));
  const Tensor split_by_none = x.index({i64({0, 1}), None, i64({1, 2})});
  ASSERT_EQ(shape(split_by_none), (Shape{2, 1, 4, 5}));
  for (const std::int64_t a : {0, 1, 2}) {
    for (const std::int64_t b : {0, 1}) {
      const auto at_i = i.index({a, b}).item<std::int64_t>(), at_j = j[b].item<std::int64_t>();
      EXPECT_EQ(values(together.index({1, a, b})), values(x.index({1, at_i, at_j})));
      EXPECT_EQ(values(apart.index({a, b, 1})), values(x.index({1, at_i, Slice(), at_j})));
    }
  }
  EXPECT_EQ(shape(x.index({0, Slice(), j, j})), (Shape{3, 2}));
  EXPECT_EQ(shape(x.index({0, Slice(), j})), (Shape{3, 2, 5}));  // the 0 is no tensor
}

TEST(Index, MasksStandForWhatIsTrue) {
  const Tensor x = cube();
  const Tensor mask = f64({1, 0, 1}).to(kBool);
  EXPECT_EQ(shape(x.index({Slice(), mask})), (Shape{2, 2, 4}));
  EXPECT_EQ(values(x.index({0, mask, 1})), (Numbers{1, 9}));
  EXPECT_EQ(values(x.index({x > 20})), (Numbers{21, 22, 23}));
  EXPECT_EQ(shape(x.index({x.index({Slice(), Slice(), 0}) > 4})), (Shape{4, 4}));
  EXPECT_EQ(shape(x.index({"...", f64({1, 1, 0, 1}).to(kBool)})), (Shape{2, 3, 3}));
  EXPECT_EQ(shape(x.index({true})), (Shape{1, 2, 3, 4}));
  EXPECT_EQ(shape(x.index({false})), (Shape{0, 2, 3, 4}));
  EXPECT_EQ(shape(x.index({tensor(true)})), (Shape{1, 2, 3, 4}));
  EXPECT_EQ(shape(f64(3).index({f64(3) > 4})), (Shape{0}));
  EXPECT_EQ(values(x.masked_select(x.lt(2))), (Numbers{0, 1}));
  EXPECT_EQ(values(f64({{1}, {2}}).masked_select(f64({1, 0}).to(kBool))), (Numbers{1, 2}));
  EXPECT_EQ(values(f64({{0, 3}, {4, 0}}).nonzero()), (Numbers{0, 1, 1, 0}));
  EXPECT_EQ(shape(f64(3).nonzero()), (Shape{1, 0}));
  EXPECT_EQ(shape(zeros({2, 3}).nonzero()), (Shape{0, 2}));
}

TEST(Index, RefusesWhatDoesNotFit) {
  const Tensor x = cube();
  EXPECT_TRUE(contains(message_of([&] { x.index({2}); }), "index 2 is out of range for dim 0"));
  EXPECT_TRUE(contains(message_of([&] { x.index({i64({2})}); }),
                       "index: index 2 is out of range for dim 0 of size 2"));
  EXPECT_TRUE(contains(message_of([&] { x.index({0, 0, 0, 0}); }), "4 indices are too many"));
  EXPECT_TRUE(contains(message_of([&] { x.index({"...", "..."}); }), "only once"));
  EXPECT_TRUE(contains(message_of([&] { x.index({"all"}); }), "\"...\""));
  EXPECT_TRUE(contains(message_of([&] { x.index({Slice(None, None, 0)}); }), "must not be 0"));
  EXPECT_TRUE(contains(message_of([&] { x.index({f64({1})}); }), "integers or bools"));
  EXPECT_TRUE(contains(message_of([&] {
                         x.index({f64({1, 0, 1}).to(kBool)});
                       }),
                       "a mask of shape (3) does not fit"));
  EXPECT_TRUE(contains(message_of([&] {
                         x.index({i64({0, 1}), i64({0, 1, 2})});
                       }),
                       "do not broadcast"));
}

TEST(Index, SendsGradientsBack) {
  const Tensor i = i64({{0, 1}, {1, 1}}), j = i64({2, 0});
  const auto with = [&](std::vector<TensorIndex> indices) {
    const auto f = [=](const std::vector<Tensor>& in) { return in[0].index(indices); };
    check_derivatives(f, {variable({2, 3, 4})});
  };
  with({1, Slice(None, None, -2)});
  with({i});
  with({Slice(), j});
  with({i, j, 3});
  with({i, Slice(1, 3), j});
  with({None, Slice(), j, j});
  with({numbers({2, 3}) > 0});
  with({Slice(), numbers({3}) > 0, 1});
}

TEST(Index, WritesInPlace) {
  const Tensor x = zeros({2, 3}, kFloat64);
  x.index_put_({0, 1}, 5);
  x.index_put_({1}, f64({1, 2, 3}));
  EXPECT_EQ(values(x), (Numbers{0, 5, 0, 1, 2, 3}));
  x.index_put_({x > 2}, -1);
  EXPECT_EQ(values(x), (Numbers{0, -1, 0, 1, 2, -1}));
  x.index_put_({Slice(), i64({2, 0})}, f64({{7, 8}, {9, 10}}));
  EXPECT_EQ(values(x), (Numbers{8, -1, 7, 10, 2, 9}));
  x.index_put_({"...", Slice(None, None, -1)}, f64({{1, 2, 3}}));
  EXPECT_EQ(values(x), (Numbers{3, 2, 1, 3, 2, 1}));
  x[0] = 4;
  x[1][2] = f64(6);
  EXPECT_EQ(values(x), (Numbers{4, 4, 4, 3, 2, 6}));
  x.index_put_({i64({0}), i64({-1})}, 0.5f);
  EXPECT_EQ(x[0][2].item<double>(), 0.5);
  x.index_put_({x < 0}, 3);  // nothing is true
  x.index_put_({Slice(0, 0)}, 3);
  EXPECT_EQ(x[0][0].item<double>(), 4);
  x.index_put_({0}, x[1]);  // from its own elements
  EXPECT_EQ(values(x), (Numbers{3, 2, 6, 3, 2, 6}));
  EXPECT_TRUE(contains(message_of([&] { x.index_put_({0}, f64({1, 2})); }), "(2)"));
  EXPECT_TRUE(contains(message_of([&] { x.index_put_({i64({0, 1})}, f64({1, 2})); }), "(2)"));
}

TEST(Index, WritesHaveGradients) {
  const Tensor j = i64({2, 0});
  const auto with = [&](std::vector<TensorIndex> indices, const Shape& sizes) {
    const auto f = [=](const std::vector<Tensor>& in) {
      const Tensor y = in[0] * 1;
      y.index_put_(indices, in[1]);
      return y * y;
    };
    check_derivatives(f, {variable({2, 3, 4}), variable(sizes, 2)});
  };
  with({1, Slice(None, None, -2)}, {2, 4});
  with({j.slice(0, 1, 2)}, {1, 3, 4});
  with({Slice(), j}, {2, 2, 4});
  with({Slice(), j}, {4});
  with({Slice(), j}, {1, 2, 2, 1});
  with({i64({0, 1}), Slice(), j}, {2, 3});
  with({Slice(), numbers({3}) > 0, 1}, {1});
  with({i64({0, 1}), j, 3}, {});
  const Tensor own = zeros({2}, kFloat64);
  own.index_put_({i64({1})}, leaf({2.}));
  EXPECT_TRUE(own.requires_grad());
}

TEST(Index, PutMakesANewTensor) {
  const Tensor x = zeros({2, 3}, kFloat64);
  const Tensor i = i64({0, 1, 0}), j = i64({1, 2, 1});
  EXPECT_EQ(values(index_put(x, {i, j}, f64({1, 2, 3}), true)), (Numbers{0, 4, 0, 0, 0, 2}));
  EXPECT_EQ(values(index_put(x, {i64({1})}, 5)), (Numbers{0, 0, 0, 5, 5, 5}));
  EXPECT_EQ(values(index_put(x, {x.eq(0)}, 2)), Numbers(6, 2));
  EXPECT_EQ(values(x), Numbers(6));
  for (const bool accumulate : {false, true}) {
    const auto f = [&](const std::vector<Tensor>& in) {
      return index_put(in[0], {i64({0, 1}), j.slice(0, 0, 2)}, in[1], accumulate);
    };
    check_derivatives(f, {variable({2, 3}), variable({2}, 2)});
    check_derivatives(f, {variable({2, 3}), variable({}, 2)});
  }
  const auto twice = [&](const std::vector<Tensor>& in) {
    return index_put(in[0], {i, j}, in[1], true);
  };
  check_derivatives(twice, {variable({2, 3}), variable({3}, 2)});
}

}  // namespace
}  // namespace taper
