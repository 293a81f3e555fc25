// What views, copies and functions that make tensors refuse.
#include "taper/tests/errors/refusal.h"

namespace taper::errors {
namespace {

using Shapes = Refusal;

constexpr std::int64_t kHuge = std::int64_t{1} << 32;

TEST_F(Shapes, ViewsHoldTheSameElements) {
  refuses("view", {"(4, 2)", "6"}, [&] { here(), f23.view({4, 2}); });
  refuses("view", {"(-1, -1)"}, [&] { here(), f23.view({-1, -1}); });
  refuses("view", {"(-2, 3)"}, [&] { here(), f23.view({-2, 3}); });
  refuses("view", {"(-1, 4)"}, [&] { here(), f23.view({-1, 4}); });
  refuses("view", {"(-1, 0)"}, [&] { here(), f03.view({-1, 0}); });
  refuses("view", {"(3, 2)", "(6)", "reshape"}, [&] { here(), f23.t().view({6}); });
  refuses("view", {"(4)", "6"}, [&] { here(), f23.view_as(f4); });
  refuses("view", {"9"}, [&] { here(), f.view({1, 1, 1, 1, 1, 1, 1, 1, 1}); });
  refuses("reshape", {"(4, 2)", "6"}, [&] { here(), f23.reshape({4, 2}); });
  refuses("reshape", {"(4, 2)", "6"}, [&] { here(), reshape(f23, {4, 2}); });
  refuses("reshape", {"(-1, -1)"}, [&] { here(), reshape(f23, {-1, -1}); });
  refuses("reshape", {"(4)", "6"}, [&] { here(), f23.reshape_as(f4); });
  refuses("reshape", {"4294967296"}, [&] { here(), f23.reshape({kHuge, kHuge}); });
  refuses("unflatten", {"(2, 2)", "3"}, [&] { here(), f23.unflatten(1, {2, 2}); });
  refuses("unflatten", {"dim 2"}, [&] { here(), f23.unflatten(2, {1, 3}); });
  refuses("flatten", {"1", "0"}, [&] { here(), f23.flatten(1, 0); });
  refuses("flatten", {"dim 2"}, [&] { here(), flatten(f23, 0, 2); });
}

TEST_F(Shapes, TheBitsAsAnotherDtype) {
  refuses("view", {"(2, 3)", "f64"}, [&] { here(), f23.view(kFloat64); });
  refuses("view", {"stride 1", "f64"}, [&] { here(), f24.t().view(kFloat64); });
  const Tensor leaf = ones({2}, requires_grad());
  refuses("view", {"gradient"}, [&] { here(), leaf.view(kInt32); });
}

TEST_F(Shapes, OrdersOfDims) {
  refuses("permute", {"(2, 3)", "(0)"}, [&] { here(), f23.permute({0}); });
  refuses("permute", {"(0, 0)"}, [&] { here(), permute(f23, {0, 0}); });
  refuses("permute", {"dim 2"}, [&] { here(), permute(f23, {0, 2}); });
  refuses("transpose", {"dim 2"}, [&] { here(), f23.transpose(0, 2); });
  refuses("transpose", {"dim -3"}, [&] { here(), transpose(f23, -3, 0); });
  refuses("t", {"(2, 3, 4)"}, [&] { here(), f234.t(); });
  refuses("t", {"(2, 3, 4)"}, [&] { here(), t(f234); });
  refuses("transpose", {"dim -2"}, [&] { here(), f3.mT(); });
  refuses("movedim", {"dim 2"}, [&] { here(), f23.movedim(0, 2); });
  refuses("movedim", {"dim 5"}, [&] { here(), movedim(f23, 5, 0); });
  refuses("squeeze", {"dim 2"}, [&] { here(), f23.squeeze(2); });
  refuses("unsqueeze", {"dim 3"}, [&] { here(), f23.unsqueeze(3); });
  refuses("unsqueeze", {"dim -4"}, [&] { here(), unsqueeze(f23, -4); });
  const Tensor deep = ones({1, 1, 1, 1, 1, 1, 1, 1});
  refuses("unsqueeze", {"8 dims", "9"}, [&] { here(), deep.unsqueeze(0); });
  refuses("unfold", {"8 dims", "9"}, [&] { here(), deep.unfold(0, 1, 1); });
}

TEST_F(Shapes, Stretching) {
  refuses("expand", {"(2, 3)", "(2, 4)"}, [&] { here(), f23.expand({2, 4}); });
  refuses("expand", {"(2, 3)", "(3)"}, [&] { here(), f23.expand({3}); });
  refuses("expand", {"(-1, 2, 3)"}, [&] { here(), f23.expand({-1, 2, 3}); });
  refuses("expand", {"(-2, 3)"}, [&] { here(), f23.expand({-2, 3}); });
  refuses("expand", {"(2, 3)", "(2, 4)"}, [&] { here(), f23.expand_as(f24); });
  refuses("expand", {"(2, 3)", "(2, 4)"}, [&] { here(), f23.broadcast_to({2, 4}); });
  refuses("broadcast_to", {"(2, 3)", "(2, 4)"}, [&] { here(), broadcast_to(f23, {2, 4}); });
  refuses("expand", {"4294967296"}, [&] { here(), f.expand({kHuge, kHuge}); });
  refuses("expand", {"9"}, [&] { here(), f.expand({1, 1, 1, 1, 1, 1, 1, 1, 1}); });
}

TEST_F(Shapes, Parts) {
  refuses("narrow", {"3", "2"}, [&] { here(), f23.narrow(0, 1, 2); });
  refuses("narrow", {"-1"}, [&] { here(), narrow(f23, 0, 0, -1); });
  refuses("narrow", {"4"}, [&] { here(), narrow(f23, 1, 4, 0); });
  refuses("narrow", {"dim 2"}, [&] { here(), f23.narrow(2, 0, 1); });
  refuses("narrow", {"0-dim"}, [&] { here(), f.narrow(0, 0, 1); });
  refuses("select", {"(2, 3)", "3", "dim 1"}, [&] { here(), f23.select(1, 3); });
  refuses("select", {"(2, 3)", "-3", "dim 0"}, [&] { here(), select(f23, 0, -3); });
  refuses("select", {"dim 2"}, [&] { here(), f23.select(2, 0); });
  refuses("select", {"0-dim"}, [&] { here(), f.select(0, 0); });
  refuses("slice", {"step"}, [&] { here(), f23.slice(0, 0, 2, 0); });
  refuses("slice", {"dim 2"}, [&] { here(), f23.slice(2); });
  refuses("slice", {"0-dim"}, [&] { here(), f.slice(); });
  refuses("diagonal", {"(2, 3)", "1 and 1"}, [&] { here(), f23.diagonal(0, 1, 1); });
  refuses("diagonal", {"dim 2"}, [&] { here(), diagonal(f23, 0, 0, 2); });
  refuses("diagonal", {"dim"}, [&] { here(), f3.diagonal(); });
  refuses("unfold", {"4", "3"}, [&] { here(), f23.unfold(1, 4, 1); });
  refuses("unfold", {"step", "0"}, [&] { here(), f23.unfold(1, 2, 0); });
  refuses("unfold", {"-1"}, [&] { here(), f23.unfold(1, -1, 1); });
  refuses("unfold", {"dim 2"}, [&] { here(), f23.unfold(2, 1, 1); });
  refuses("split", {"dim 2"}, [&] { here(), f23.split(1, 2); });
  refuses("split", {"0"}, [&] { here(), f23.split(0); });
  refuses("split", {"-2"}, [&] { here(), split(f23, -2); });
  refuses("split", {"(1, 1)", "3"}, [&] { here(), f23.split({1, 1}, 1); });
  refuses("split", {"(4, -1)"}, [&] { here(), split(f23, {4, -1}, 1); });
  refuses("split", {"0-dim"}, [&] { here(), f.split(1); });
  refuses("chunk", {"0"}, [&] { here(), f23.chunk(0); });
  refuses("chunk", {"dim 2"}, [&] { here(), chunk(f23, 2, 2); });
  refuses("chunk", {"0-dim"}, [&] { here(), chunk(f, 2); });
  refuses("unbind", {"dim 2"}, [&] { here(), f23.unbind(2); });
  refuses("unbind", {"0-dim"}, [&] { here(), unbind(f); });
}

TEST_F(Shapes, AsStridedStaysInItsStorage) {
  refuses("as_strided", {"(2)", "(1, 1)"}, [&] { here(), f23.as_strided({2}, {1, 1}); });
  refuses("as_strided", {"(7)", "6"}, [&] { here(), f23.as_strided({7}, {1}); });
  refuses("as_strided", {"(2)", "6"}, [&] { here(), as_strided(f23, {2}, {6}); });
  refuses("as_strided", {"5"}, [&] { here(), f23.as_strided({2}, {1}, 5); });
  refuses("as_strided", {"-1"}, [&] { here(), f23.as_strided({2}, {1}, -1); });
  refuses("as_strided", {"(-1)"}, [&] { here(), f23.as_strided({2}, {-1}); });
  refuses("as_strided", {"(-2)"}, [&] { here(), f23.as_strided({-2}, {1}); });
  refuses("as_strided", {"4611"}, [&] { here(), f23.as_strided({5}, {kHuge << 30}); });
  refuses("as_strided", {"storage"}, [&] { here(), f23.as_strided({1}, {1}, kHuge << 30); });
}

TEST_F(Shapes, DimsThatDoNotExistShowTheShape) {
  refuses("transpose", {"(2, 3)"}, [&] { here(), f23.transpose(0, 2); });
  refuses("movedim", {"(2, 3)"}, [&] { here(), f23.movedim(0, 2); });
  refuses("unsqueeze", {"(2, 3)"}, [&] { here(), f23.unsqueeze(3); });
  refuses("squeeze", {"(2, 3)"}, [&] { here(), f23.squeeze(2); });
  refuses("select", {"(2, 3)"}, [&] { here(), f23.select(2, 0); });
  refuses("slice", {"(2, 3)"}, [&] { here(), f23.slice(2); });
  refuses("narrow", {"(2, 3)"}, [&] { here(), f23.narrow(2, 0, 1); });
  refuses("narrow", {"(2, 3)"}, [&] { here(), f23.narrow(0, 1, 2); });
  refuses("flatten", {"(2, 3)"}, [&] { here(), f23.flatten(0, 2); });
  refuses("split", {"(2, 3)"}, [&] { here(), f23.split(1, 2); });
  refuses("chunk", {"(2, 3)"}, [&] { here(), f23.chunk(1, 2); });
  refuses("unbind", {"(2, 3)"}, [&] { here(), f23.unbind(2); });
  refuses("diagonal", {"(2, 3)"}, [&] { here(), f23.diagonal(0, 0, 2); });
  refuses("unfold", {"(2, 3)"}, [&] { here(), f23.unfold(1, 4, 1); });
  refuses("flip", {"(2, 3)"}, [&] { here(), f23.flip({2}); });
  refuses("roll", {"(2, 3)"}, [&] { here(), f23.roll({1}, {2}); });
  refuses("permute", {"(2, 3)"}, [&] { here(), f23.permute({0, 2}); });
  refuses("size", {"(2, 3)", "dim 2"}, [&] { here(), f23.size(2); });
  refuses("stride", {"(2, 3)", "dim -3"}, [&] { here(), f23.stride(-3); });
}

TEST_F(Shapes, Joining) {
  refuses("cat", {"at least one"}, [&] { here(), cat(std::vector<Tensor>()); });
  refuses("cat", {"(2, 3)", "(2, 4)"}, [&] { here(), cat({f23, f24}); });
  refuses("cat", {"(2, 3)", "(3)"}, [&] { here(), cat({f23, f3}); });
  refuses("cat", {"dim 2"}, [&] { here(), cat({f23, f23}, 2); });
  refuses("cat", {"0-dim"}, [&] { here(), cat({f, f}); });
  refuses("cat", {"cpu", "meta"}, [&] { here(), cat({f23, m23}); });
  refuses("cat", {nothing}, [&] { here(), cat({f23, none}); });
  refuses("stack", {"at least one"}, [&] { here(), stack(std::vector<Tensor>()); });
  refuses("stack", {"(2, 3)", "(3)"}, [&] { here(), stack({f23, f3}); });
  refuses("stack", {"dim 3"}, [&] { here(), stack({f23, f23}, 3); });
  refuses("stack", {nothing}, [&] { here(), stack({none, f3}); });
}

TEST_F(Shapes, Copies) {
  refuses("clone", {nothing}, [&] { here(), clone(none); });
  refuses("contiguous", {nothing}, [&] { here(), none.contiguous(); });
  refuses("to", {nothing}, [&] { here(), none.to(kFloat64); });
  refuses("contiguous", {"(2, 3)", "4 dims"},
          [&] { here(), f23.contiguous(MemoryFormat::kChannelsLast); });
  refuses("clone", {"(2, 3)", "4 dims"}, [&] { here(), f23.clone(MemoryFormat::kChannelsLast); });
  refuses("repeat", {"(2, 3)", "(2)"}, [&] { here(), f23.repeat({2}); });
  refuses("repeat", {"(-1, 2)"}, [&] { here(), repeat(f23, {-1, 2}); });
  refuses("repeat", {"4294967296"}, [&] { here(), f.repeat({kHuge, kHuge}); });
  refuses("flip", {"(0, 0)"}, [&] { here(), f23.flip({0, 0}); });
  refuses("flip", {"dim 2"}, [&] { here(), flip(f23, 2); });
  refuses("roll", {"(1, 2)", "(0)"}, [&] { here(), roll(f23, {1, 2}, {0}); });
  refuses("roll", {"(1, 2)"}, [&] { here(), f23.roll({1, 2}); });
  refuses("roll", {"dim 2"}, [&] { here(), roll(f23, {1}, {2}); });
  refuses("tril", {"(3)"}, [&] { here(), f3.tril(); });
  refuses("triu", {"(3)"}, [&] { here(), triu(f3); });
  refuses("item", {"(2, 3)"}, [&] { here(), f23.item(); });
  refuses("item", {"(2, 3)"}, [&] { here(), f23.item<float>(); });
  refuses("item", {"(0, 3)"}, [&] { here(), f03.item(); });
  refuses("item", {"meta"}, [&] { here(), m3.select(0, 0).item(); });
  refuses("item", {nothing}, [&] { here(), none.item(); });
  refuses("data_ptr", {"f32", "f64"}, [&] { here(), f23.data_ptr<double>(); });
  refuses("data_ptr", {"i64", "f32"}, [&] { here(), i23.const_data_ptr<float>(); });
  refuses("accessor", {"(2, 3)", "1"}, [&] { here(), f23.accessor<float, 1>(); });
  refuses("accessor", {"f32", "f64"}, [&] { here(), f23.accessor<double, 2>(); });
  refuses("accessor", {"(2, 3)", "meta"}, [&] { here(), m23.accessor<float, 2>(); });
}

TEST_F(Shapes, TensorsFromNothing) {
  refuses("empty", {"(2, -1)"}, [&] { here(), empty({2, -1}); });
  refuses("zeros", {"(-1)"}, [&] { here(), zeros({-1}); });
  refuses("ones", {"(-1)"}, [&] { here(), ones({-1}); });
  refuses("full", {"(-1)"}, [&] { here(), full({-1}, 2); });
  refuses("zeros", {"4294967296"}, [&] { here(), zeros({kHuge, kHuge}); });
  refuses("empty", {"4294967296"}, [&] { here(), empty({kHuge, kHuge}, kMeta); });
  refuses("empty", {"9"}, [&] { here(), empty({1, 1, 1, 1, 1, 1, 1, 1, 1}); });
  refuses("empty", {"bytes"}, [&] { here(), empty({kHuge, kHuge >> 2}, kFloat64); });
  refuses("empty", {"out of memory"}, [&] { here(), empty({kHuge, 4096}, kFloat64); });
  refuses("eye", {"(-1, 2)"}, [&] { here(), eye(-1, 2); });
  refuses("eye", {"4294967296"}, [&] { here(), eye(kHuge); });
  refuses("arange", {"step"}, [&] { here(), arange(0, 3, 0); });
  refuses("arange", {"-3"}, [&] { here(), arange(0, -3, 1); });
  refuses("arange", {"-1"}, [&] { here(), arange(-1); });
  refuses("arange", {"nan"}, [&] { here(), arange(0, std::nan(""), 1); });
  refuses("arange", {"inf"}, [&] { here(), arange(0, HUGE_VAL); });
  refuses("arange", {"1e+30"}, [&] { here(), arange(0, 1e30); });
  refuses("linspace", {"-2"}, [&] { here(), linspace(0, 1, -2); });
  refuses("empty_strided", {"(2)", "(1, 1)"}, [&] { here(), empty_strided({2}, {1, 1}); });
  refuses("empty_strided", {"(-1)"}, [&] { here(), empty_strided({2}, {-1}); });
  refuses("empty_strided", {"64 bits"}, [&] { here(), empty_strided({4}, {kHuge << 30}); });
  refuses("zeros", {"(2, 3)", "4 dims"}, [&] {
    here(), zeros({2, 3}, TensorOptions().memory_format(MemoryFormat::kChannelsLast));
  });
  refuses("zeros", {"i64"}, [&] { here(), zeros({2}, dtype(kInt64).requires_grad(true)); });
  refuses("zeros_like", {nothing}, [&] { here(), zeros_like(none); });
  refuses("ones_like", {nothing}, [&] { here(), ones_like(none); });
  refuses("full_like", {nothing}, [&] { here(), full_like(none, 1); });
  refuses("empty_like", {nothing}, [&] { here(), empty_like(none); });
  float cell = 0;
  refuses("from_blob", {"null"}, [&] { here(), from_blob(nullptr, {2}); });
  refuses("from_blob", {"(-2)"}, [&] { here(), from_blob(&cell, {-2}); });
  refuses("from_blob", {"(1)", "(1, 1)"}, [&] { here(), from_blob(&cell, {1}, {1, 1}, nullptr); });
  refuses("from_blob", {"(-1)"}, [&] { here(), from_blob(&cell, {2}, {-1}, nullptr); });
}

TEST_F(Shapes, RowsOfOneLength) {
  try {
    tensor({{1, 2}, {3}});
    ADD_FAILURE() << "it was not refused";
  } catch (const Error& e) {
    EXPECT_TRUE(contains(e.what(), "(2)")) << e.what();
    EXPECT_TRUE(contains(e.what(), "(1)")) << e.what();
  }
}

}  // namespace
}  // namespace taper::errors
