// The rules of every view, against examples and against the addresses of all elements.
#include "taper/core/base/layout.h"

#include <limits>

#include <gtest/gtest.h>

#include "taper/autograd/ops/create.h"
#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/index.h"
#include "taper/autograd/ops/shape.h"
#include "taper/core/base/error.h"

namespace taper {
namespace {

using List = std::vector<std::int64_t>;

Layout layout_of(const List& sizes, const List& strides, std::int64_t offset = 0) {
  Layout out = contiguous_layout(sizes);
  for (std::size_t d = 0; d < strides.size(); ++d) out.strides[d] = strides[d];
  out.offset = offset;
  return out;
}

// sizes (2, 3, 4), strides (12, 4, 1).
const Layout kX = contiguous_layout({2, 3, 4});

void expect_layout(const Layout& got,
                   const List& sizes,
                   const List& strides,
                   std::int64_t offset = 0) {
  EXPECT_EQ(got.shape().vec(), sizes);
  EXPECT_EQ(got.steps().vec(), strides);
  EXPECT_EQ(got.offset, offset);
}

TEST(Layout, ViewCutsOldDimsIntoRuns) {
  EXPECT_FALSE(view_layout(transpose_layout(kX, 1, 2), {2, 12}));
  expect_layout(*view_layout(transpose_layout(kX, 0, 1), {3, 2, 2, 2}), {3, 2, 2, 2},
                {4, 12, 2, 1});
  const Layout every_other = slice_layout(kX, 2, {}, {}, 2);
  expect_layout(every_other, {2, 3, 2}, {12, 4, 2});
  expect_layout(*view_layout(every_other, {2, 6}), {2, 6}, {12, 2});
  expect_layout(*view_layout(every_other, {6, 2}), {6, 2}, {4, 2});
  const Layout wide = expand_layout(contiguous_layout({2, 1, 4}), {2, 5, 4});
  EXPECT_FALSE(view_layout(wide, {2, 20}));
  const Layout column = expand_layout(slice_layout(kX, 2, 0, 1, 1), {2, 3, 4});
  expect_layout(*view_layout(column, {6, 4}), {6, 4}, {4, 0});
}

TEST(Layout, ViewOfNoElements) {
  const Layout none = contiguous_layout({0, 3});
  expect_layout(*view_layout(none, {3, 0}), {3, 0}, {1, 1});
  expect_layout(*view_layout(none, {0}), {0}, {1});
  expect_layout(*view_layout(layout_of({0, 3}, {7, 2}), {0, 3}), {0, 3}, {7, 2});
  EXPECT_THROW(infer_sizes({-1, 0}, 0), Error);
  EXPECT_THROW(infer_sizes({2, 0}, 6), Error);
  EXPECT_EQ(IntArrayRef(infer_sizes({0, 5}, 0)).vec(), (List{0, 5}));
}

TEST(Layout, ViewOfOneElement) {
  expect_layout(*view_layout(Layout(), {1, 1}), {1, 1}, {1, 1});
  expect_layout(*view_layout(layout_of({1, 1}, {9, 5}, 4), {}), {}, {}, 4);
}

TEST(Layout, InferredSizes) {
  EXPECT_EQ(IntArrayRef(infer_sizes({4, -1}, 12)).vec(), (List{4, 3}));
  EXPECT_THROW(infer_sizes({-1, -1}, 12), Error);
  EXPECT_THROW(infer_sizes({5, -1}, 12), Error);
  EXPECT_THROW(infer_sizes({-2, 6}, 12), Error);
  EXPECT_THROW(infer_sizes({3, 5}, 12), Error);
  EXPECT_THROW(infer_sizes({std::int64_t{1} << 32, std::int64_t{1} << 32}, 0), Error);
}

TEST(Layout, SlicesClamp) {
  expect_layout(slice_layout(kX, 0, 5, 9, 1), {0, 3, 4}, {12, 4, 1}, 24);  // one past the end
  expect_layout(slice_layout(kX, 0, -100, 2, 1), {2, 3, 4}, {12, 4, 1});
  expect_layout(slice_layout(kX, 1, 1, 100, 1), {2, 2, 4}, {12, 4, 1}, 4);
  expect_layout(slice_layout(kX, 2, 3, 1, 1), {2, 3, 0}, {12, 4, 1}, 3);
  expect_layout(slice_layout(kX, 2, {}, {}, 3), {2, 3, 2}, {12, 4, 3});
  expect_layout(slice_layout(kX, 2, -3, -1, 1), {2, 3, 2}, {12, 4, 1}, 1);
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  expect_layout(slice_layout(kX, 2, 0, most, most / 2), {2, 3, 1}, {12, 4, most / 2});
  EXPECT_EQ(slice_layout(kX, 1, 0, 3, most).sizes[1], 1);
  EXPECT_THROW(slice_layout(kX, 0, 0, 2, 0), Error);
  EXPECT_THROW(slice_layout(kX, 3, 0, 2, 1), Error);
  EXPECT_THROW(slice_layout(Layout(), 0, 0, 2, 1), Error);
}

TEST(Layout, NegativeStepsWalkBackwards) {
  expect_layout(slice_layout(kX, 2, {}, {}, -1), {2, 3, 4}, {12, 4, -1}, 3);
  expect_layout(slice_layout(kX, 2, {}, {}, -3), {2, 3, 2}, {12, 4, -3}, 3);
  expect_layout(slice_layout(kX, 2, 2, 0, -1), {2, 3, 2}, {12, 4, -1}, 2);
  expect_layout(slice_layout(kX, 2, 2, {}, -1), {2, 3, 3}, {12, 4, -1}, 2);
  expect_layout(slice_layout(kX, 2, 100, -100, -2), {2, 3, 2}, {12, 4, -2}, 3);
  EXPECT_EQ(slice_layout(kX, 2, 0, 3, -1).sizes[2], 0);
  EXPECT_EQ(slice_layout(contiguous_layout({0}), 0, {}, {}, -1).sizes[0], 0);
}

// Python's own rule, one index at a time.
List python_slice(std::int64_t n,
                  std::optional<std::int64_t> start,
                  std::optional<std::int64_t> stop,
                  std::int64_t step) {
  const auto place = [n](std::int64_t i) { return i < 0 ? i + n : i; };
  std::int64_t i = start ? place(*start) : (step > 0 ? 0 : n - 1);
  const std::int64_t end = stop ? place(*stop) : (step > 0 ? n : -1);
  while (step > 0 && i < 0) i = 0;
  if (step < 0 && i > n - 1) i = n - 1;
  List out;
  for (; step > 0 ? i < end && i < n : i > end && i >= 0; i += step) out.push_back(i);
  return out;
}

TEST(Layout, SlicesAreThoseOfPython) {
  std::vector<std::optional<std::int64_t>> bounds{std::nullopt};
  for (std::int64_t b = -6; b <= 6; ++b) bounds.emplace_back(b);
  for (std::int64_t n = 0; n <= 4; ++n) {
    const Layout x = contiguous_layout({n});
    for (const auto& start : bounds) {
      for (const auto& stop : bounds) {
        for (const std::int64_t step : {-5, -2, -1, 1, 2, 3, 7}) {
          const Layout got = slice_layout(x, 0, start, stop, step);
          List places;
          for (std::int64_t i = 0; i < got.sizes[0]; ++i) {
            places.push_back(got.offset + i * got.strides[0]);
          }
          ASSERT_EQ(places, python_slice(n, start, stop, step))
              << "n " << n << " start " << start.value_or(99) << " stop " << stop.value_or(99)
              << " step " << step;
        }
      }
    }
  }
}

TEST(Layout, SelectsAndNewDims) {
  expect_layout(select_layout(select_layout(kX, 0, 1), 0, -1), {4}, {1}, 20);
  EXPECT_THROW(select_layout(kX, 1, 3), Error);
  EXPECT_THROW(select_layout(kX, 1, -4), Error);
  expect_layout(unsqueeze_layout(kX, 1), {2, 1, 3, 4}, {12, 12, 4, 1});
  expect_layout(unsqueeze_layout(kX, -1), {2, 3, 4, 1}, {12, 4, 1, 1});
  expect_layout(squeeze_layout(layout_of({1, 2, 1}, {9, 4, 7}), std::nullopt), {2}, {4});
  expect_layout(squeeze_layout(layout_of({1, 2, 1}, {9, 4, 7}), 0), {2, 1}, {4, 7});
  expect_layout(squeeze_layout(kX, 0), {2, 3, 4}, {12, 4, 1});
}

TEST(Layout, WindowsAndDiagonals) {
  expect_layout(unfold_layout(kX, 2, 3, 1), {2, 3, 2, 3}, {12, 4, 1, 1});
  EXPECT_TRUE(may_overlap_itself(unfold_layout(kX, 2, 3, 1)));
  EXPECT_FALSE(may_overlap_itself(unfold_layout(kX, 2, 2, 2)));
  const Layout plane = contiguous_layout({3, 4});
  expect_layout(diagonal_layout(plane, 0, 0, 1), {3}, {5});
  expect_layout(diagonal_layout(plane, 1, 0, 1), {3}, {5}, 1);
  expect_layout(diagonal_layout(plane, -2, 0, 1), {1}, {5}, 8);
  EXPECT_EQ(diagonal_layout(plane, 4, 0, 1).sizes[0], 0);
  EXPECT_EQ(diagonal_layout(plane, -9, 0, 1).sizes[0], 0);
  expect_layout(diagonal_layout(kX, 0, 1, 2), {2, 3}, {12, 5});
  expect_layout(diagonal_layout(kX, 0, 2, 0), {3, 2}, {4, 13});
}

TEST(Layout, Stretching) {
  expect_layout(expand_layout(contiguous_layout({3, 1}), {2, 3, 4}), {2, 3, 4}, {0, 1, 0});
  expect_layout(expand_layout(contiguous_layout({3, 1}), {-1, 4}), {3, 4}, {1, 0});
  expect_layout(expand_layout(contiguous_layout({1}), {0}), {0}, {0});
  EXPECT_THROW(expand_layout(kX, {3, 4}), Error);
  EXPECT_THROW(expand_layout(kX, {2, 3, 5}), Error);
  EXPECT_EQ(IntArrayRef(broadcast_sizes({2, 1}, {3})).vec(), (List{2, 3}));
  EXPECT_EQ(IntArrayRef(broadcast_sizes({0, 1}, {1, 5})).vec(), (List{0, 5}));
  EXPECT_EQ(IntArrayRef(broadcast_sizes({}, {2})).vec(), (List{2}));
  EXPECT_THROW(broadcast_sizes({0}, {2}), Error);
}

TEST(Layout, ContiguityIgnoresSizesOfOne) {
  EXPECT_TRUE(layout_of({2, 1, 3}, {3, 77, 1}).is_contiguous());
  EXPECT_TRUE(layout_of({1, 1}, {0, 5}).is_contiguous());
  EXPECT_TRUE(layout_of({0, 3}, {5, 7}).is_contiguous());
  EXPECT_TRUE(layout_of({3, 0}, {5, 7}).is_contiguous());
  EXPECT_TRUE(Layout().is_contiguous());
  EXPECT_FALSE(layout_of({2, 3}, {4, 1}).is_contiguous());
  EXPECT_FALSE(layout_of({2, 3}, {0, 1}).is_contiguous());
  EXPECT_FALSE(layout_of({3}, {-1}, 2).is_contiguous());
  const Layout nhwc = contiguous_layout({2, 3, 4, 5}, MemoryFormat::kChannelsLast);
  expect_layout(nhwc, {2, 3, 4, 5}, {60, 1, 15, 3});
  EXPECT_TRUE(is_channels_last(nhwc));
  EXPECT_FALSE(nhwc.is_contiguous());
  EXPECT_TRUE(is_channels_last(contiguous_layout({2, 1, 4, 4})));  // both at once
  EXPECT_FALSE(is_channels_last(contiguous_layout({2, 3, 4})));
}

TEST(Layout, NumbersOf64Bits) {
  const std::int64_t huge = std::int64_t{1} << 32;
  EXPECT_THROW(contiguous_layout({huge, huge}), Error);
  EXPECT_EQ(checked_numel({huge, huge >> 2}), std::int64_t{1} << 62);
  EXPECT_THROW(checked_numel({0, huge, huge}), Error);
  EXPECT_EQ(checked_numel({0, huge}), 0);
  EXPECT_THROW(checked_numel({2, -1}), Error);
  EXPECT_THROW(contiguous_layout({1, 1, 1, 1, 1, 1, 1, 1, 1}), Error);
  EXPECT_THROW(extent(layout_of({4}, {huge << 30})), Error);
  EXPECT_THROW(extent(layout_of({1}, {1}, std::numeric_limits<std::int64_t>::max())), Error);
  EXPECT_THROW(extent(layout_of({2, 2}, {huge << 30, huge << 30})), Error);
}

TEST(Layout, Extents) {
  const Extent e = extent(slice_layout(kX, 2, {}, {}, -1));
  EXPECT_EQ(e.begin, 0);
  EXPECT_EQ(e.end, 24);
  EXPECT_EQ(extent(contiguous_layout({0, 4})).end, 0);
  EXPECT_EQ(extent(layout_of({}, {}, 7)).begin, 7);
}

TEST(Layout, DenseCopiesKeepTheOrderOfStrides) {
  expect_layout(dense_like(transpose_layout(kX, 0, 2)), {4, 3, 2}, {1, 4, 12});
  expect_layout(dense_like(slice_layout(kX, 2, {}, {}, 2)), {2, 3, 2}, {6, 2, 1});
  expect_layout(dense_like(expand_layout(contiguous_layout({3, 1}), {3, 4})), {3, 4}, {4, 1});
  EXPECT_TRUE(is_dense(transpose_layout(kX, 0, 2)));
  EXPECT_FALSE(is_dense(slice_layout(kX, 2, {}, {}, 2)));
}

TEST(Layout, CoalescingKeepsTheElements) {
  Layout a = contiguous_layout({2, 3, 1, 4}), b = slice_layout(kX, 2, {}, {}, 1);
  Layout* alone[] = {&a};
  coalesce(alone, 1);
  expect_layout(a, {24}, {1});
  b = transpose_layout(kX, 0, 1);
  Layout c = contiguous_layout({3, 2, 4});
  Layout* both[] = {&b, &c};
  coalesce(both, 2);
  expect_layout(b, {3, 2, 4}, {4, 12, 1});
  expect_layout(c, {3, 2, 4}, {8, 4, 1});
}

TEST(Layout, TensorsFollow) {
  const Tensor x = arange(24).view({2, 3, 4});
  EXPECT_EQ(x[1][-1].storage_offset(), 20);
  EXPECT_EQ(x.narrow(1, 3, 0).sizes().vec(), (List{2, 0, 4}));
  EXPECT_EQ(x.slice(0, 5, 9).storage_offset(), 24);
  EXPECT_TRUE(x.contiguous().is_same(x));
  EXPECT_TRUE(x.reshape({6, 4}).is_alias_of(x));
  EXPECT_FALSE(x.transpose(1, 2).reshape({2, 12}).is_alias_of(x));
  EXPECT_TRUE(x.flatten().is_alias_of(x));
  EXPECT_FALSE(x.flip({0}).is_alias_of(x));
  EXPECT_EQ(x.to(kInt32).view(kFloat16).sizes().vec(), (List{2, 3, 8}));
  EXPECT_EQ(x.as_strided({2, 2}, {1, 1}, 3).strides().vec(), (List{1, 1}));
  EXPECT_THROW(scalar_tensor(1).size(0), Error);
  EXPECT_THROW(scalar_tensor(1).stride(-1), Error);
}

TEST(Layout, HandlesAreSmallAndDescribed) {
  static_assert(sizeof(Tensor) == 8);
  const Tensor x = zeros({2, 3});
  EXPECT_EQ(x.use_count(), 1u);
  const Tensor same = x;
  EXPECT_EQ(x.use_count(), 2u);
  EXPECT_EQ(x.t().storage().use_count(), 2u);
  const Tensor view = x.t();
  view.add_(1);
  const std::string text = view.describe();
  for (const char* part : {"f32 (3, 2) strides (1, 3)", "cpu", "8 bytes", "24 bytes", "version 1",
                           "add at layout_test.cpp:"}) {
    EXPECT_NE(text.find(part), std::string::npos) << "no \"" << part << "\" in: " << text;
  }
  EXPECT_NE(Tensor().describe().find("undefined"), std::string::npos);
}

}  // namespace
}  // namespace taper
