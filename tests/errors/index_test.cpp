// What indexing, gather, scatter and embedding refuse.
#include "taper/tests/errors/refusal.h"

namespace taper::errors {
namespace {

using namespace indexing;
using Indexing = Refusal;

TEST_F(Indexing, NumbersAndSlices) {
  refuses("index", {"(2, 3)", "2", "dim 0"}, [&] { here(), f23[2]; });
  refuses("index", {"-3", "dim 0"}, [&] { here(), f23[-3]; });
  refuses("index", {"()"}, [&] { here(), f[0]; });
  refuses("index", {"(2, 3)", "3"}, [&] { here(), f23.index({0, 0, 0}); });
  refuses("index", {"3", "dim 1", "size 3"}, [&] { here(), f23.index({0, 3}); });
  refuses("index", {"once"}, [&] { here(), f23.index({"...", 0, "..."}); });
  refuses("index", {"..."}, [&] { here(), f23.index({"..", 0}); });
  refuses("slice", {"step"}, [&] { here(), f23.index({Slice(None, None, 0)}); });
  refuses("index", {nothing}, [&] { here(), none.index({0}); });
  refuses("index", {nothing}, [&] { here(), none[0]; });
  refuses("index", {nothing}, [&] { here(), f23.index({none}); });
}

TEST_F(Indexing, IndexTensors) {
  const Tensor five = tensor({0, 5}), low = tensor({0, -4});
  refuses("index", {"f32"}, [&] { here(), f23.index({f3}); });
  refuses("index", {"(2)", "(3)"}, [&] { here(), f23.index({i2, i3}); });
  refuses("index", {"2", "(3)"}, [&] { here(), f3.index({b23}); });
  refuses("index", {"(3)", "(2, 3)"}, [&] { here(), f23.index({b3}); });
  refuses("index", {"5", "dim 0", "size 2", "(2, 3)"}, [&] { here(), f23.index({five}); });
  refuses("index", {"5", "dim 0"}, [&] { here(), f23[five]; });
  refuses("index", {"5", "dim 1", "size 3"}, [&] { here(), f23.index({Slice(), five}); });
  refuses("index", {"-4", "dim 1", "size 3"}, [&] { here(), f23.index({Slice(), low}); });
  refuses("index", {"5", "dim 1", "size 3"}, [&] { here(), f23.index({0, five}); });
  refuses("index", {"5", "dim 2", "size 4"}, [&] { here(), f234.index({"...", five}); });
  refuses("index", {"5", "dim 1", "size 3"}, [&] { here(), f234.index({None, 0, five}); });
  refuses("index", {"5", "dim 2", "size 4"}, [&] { here(), f234.index({i2, 0, five}); });
  refuses("index", {"5", "dim 2", "size 4"}, [&] { here(), f234.index({i2, Slice(), five}); });
  refuses("index", {"5", "dim 2"}, [&] { here(), f234.index({b23, five.slice(0, 1)}); });
}

TEST_F(Indexing, IndexPut) {
  const Tensor five = tensor({0, 5});
  refuses("index_put", {"(4)"}, [&] { here(), f23.index_put_({0}, f4); });
  refuses("index_put", {"(2, 4)"}, [&] { here(), f23.index_put_({i2}, f24); });
  refuses("index_put", {"5", "dim 0"}, [&] { here(), f23.index_put_({five}, 1); });
  refuses("index_put", {"5", "dim 1"}, [&] { here(), f23.index_put_({Slice(), five}, 1); });
  refuses("index_put", {"5", "dim 0"}, [&] { here(), index_put(f23, {five}, f23); });
  refuses("index_put", {"(3)", "(2, 3)"}, [&] { here(), index_put(f23, {b3}, f); });
  refuses("index_put", {"3", "(2, 3)"}, [&] { here(), index_put(f23, {i2, i2, i2}, f); });
  refuses("index_put", {"f32"}, [&] { here(), index_put(f23, {f3}, f); });
  refuses("copy_", {"(3)", "(4)"}, [&] { here(), f23[0] = f4; });
  refuses("index_put", {nothing}, [&] { here(), f23.index_put_({0}, none); });
}

TEST_F(Indexing, Gather) {
  const Tensor five = tensor({{0, 5}}), low = tensor({{0, -1}});
  refuses("gather", {"5", "dim 0", "size 2"}, [&] { here(), f23.gather(0, five); });
  refuses("gather", {"5", "dim 1", "size 3"}, [&] { here(), gather(f23, 1, five); });
  refuses("gather", {"-1", "dim 1", "size 3"}, [&] { here(), gather(f23, 1, low); });
  refuses("gather", {"(3)", "(2, 3)"}, [&] { here(), gather(f23, 0, i3); });
  refuses("gather", {"(2, 3)", "(1)"}, [&] { here(), gather(f3.slice(0, 0, 1), 0, i23); });
  refuses("gather", {"f32"}, [&] { here(), gather(f23, 0, f23); });
  refuses("gather", {"dim 2"}, [&] { here(), f23.gather(2, i23); });
  refuses("gather", {nothing}, [&] { here(), gather(f23, 0, none); });
  refuses("gather", {nothing}, [&] { here(), gather(none, 0, i23); });
  refuses("gather", {"cpu", "meta"}, [&] { here(), gather(f23, 0, m23.to(kInt64)); });
  refuses("take_along_dim", {"(2, 3)", "(3)"}, [&] { here(), take_along_dim(f23, i3, 0); });
  refuses("take_along_dim", {"5", "dim 1"}, [&] { here(), f23.take_along_dim(five, 1); });
  refuses("take_along_dim", {"dim 2"}, [&] { here(), f23.take_along_dim(i23, 2); });
}

TEST_F(Indexing, Scatter) {
  const Tensor five = tensor({{0, 5}});
  refuses("scatter", {"5", "dim 1"}, [&] { here(), scatter(f23, 1, five, 1); });
  refuses("scatter", {"5", "dim 1"}, [&] { here(), f23.scatter(1, five, f23); });
  refuses("scatter_", {"5", "dim 1"}, [&] { here(), f23.scatter_(1, five, f23); });
  refuses("scatter", {"f32", "f64"}, [&] { here(), scatter(f23, 0, i23, d23); });
  refuses("scatter", {"(2, 3)", "(3)"}, [&] { here(), scatter(f23, 0, i23, f3); });
  refuses("scatter", {"dim 2"}, [&] { here(), scatter(f23, 2, i23, f23); });
  refuses("scatter", {"f32"}, [&] { here(), scatter(f23, 0, f23, f23); });
  refuses("scatter_add", {"5", "dim 1"}, [&] { here(), scatter_add(f23, 1, five, f23); });
  refuses("scatter_add", {"5", "dim 1"}, [&] { here(), f23.scatter_add(1, five, f23); });
  refuses("scatter_add_", {"5", "dim 1"}, [&] { here(), f23.scatter_add_(1, five, f23); });
  refuses("scatter_add", {"f32", "f64"}, [&] { here(), scatter_add(f23, 0, i23, d23); });
  refuses("scatter", {nothing}, [&] { here(), scatter(f23, 0, none, f23); });
}

TEST_F(Indexing, WholeSlices) {
  const Tensor five = tensor({0, 5});
  refuses("index_select", {"5", "dim 1", "size 3"}, [&] { here(), f23.index_select(1, five); });
  refuses("index_select", {"(2, 3)"}, [&] { here(), index_select(f23, 0, i23); });
  refuses("index_select", {"f32"}, [&] { here(), index_select(f23, 0, f3); });
  refuses("index_select", {"dim 2"}, [&] { here(), index_select(f23, 2, i2); });
  refuses("index_select", {"0-dim"}, [&] { here(), index_select(f, 0, i2); });
  refuses("index_add", {"5", "dim 0"}, [&] { here(), index_add(f23, 0, five, f23); });
  refuses("index_add_", {"5", "dim 0"}, [&] { here(), f23.index_add_(0, five, f23); });
  refuses("index_add", {"(2, 3)", "(3)"}, [&] { here(), f23.index_add(0, i2, f3); });
  refuses("index_add", {"f32", "f64"}, [&] { here(), index_add(f23, 0, i2, d23); });
  refuses("index_fill", {"(2, 3)"}, [&] { here(), index_fill(f23, 0, i23, 1); });
  refuses("index_fill", {"5", "dim 1"}, [&] { here(), f23.index_fill(1, five, 1); });
  refuses("index_fill", {"dim 2"}, [&] { here(), f23.index_fill(2, i2, 1); });
  refuses("masked_select", {"f32"}, [&] { here(), masked_select(f23, f23); });
  refuses("masked_select", {"(2, 3)", "(4)"}, [&] { here(), f4.masked_select(b23); });
  refuses("nonzero", {"meta"}, [&] { here(), nonzero(m23); });
  refuses("nonzero", {"meta"}, [&] { here(), m23.nonzero(); });
}

TEST_F(Indexing, Embedding) {
  const Tensor five = tensor({0, 5}), low = tensor({-1});
  refuses("embedding", {"5", "size 2"}, [&] { here(), embedding(f23, five); });
  refuses("embedding", {"-1"}, [&] { here(), embedding(f23, low); });
  refuses("embedding", {"(3)"}, [&] { here(), embedding(f3, i2); });
  refuses("embedding", {"f32"}, [&] { here(), embedding(f23, f3); });
  refuses("embedding", {"padding_idx", "2"}, [&] { here(), embedding(f23, i2, 2); });
  refuses("embedding", {nothing}, [&] { here(), embedding(f23, none); });
  refuses("one_hot", {"f32"}, [&] { here(), one_hot(f3); });
  refuses("one_hot", {"5"}, [&] { here(), one_hot(five, 3); });
  refuses("one_hot", {"-1"}, [&] { here(), one_hot(low, 3); });
  refuses("one_hot", {"-1"}, [&] { here(), one_hot(tensor({0, -1})); });
  refuses("one_hot", {"(0)"}, [&] { here(), one_hot(empty({0}, kInt64)); });
}

}  // namespace
}  // namespace taper::errors
