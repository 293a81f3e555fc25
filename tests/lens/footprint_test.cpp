// Which bytes views take and share, against sets of bytes.
#include "taper/autograd/lens/footprint.h"

#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace taper::lens {
namespace {

using Bytes = std::set<std::uintptr_t>;

Bytes bytes_one_by_one(const View& view) {
  Bytes all;
  const Layout& layout = *view.layout;
  const std::int64_t size = element_size(view.dtype), n = layout.numel();
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t rest = i, at = 0;
    for (int d = layout.ndim - 1; d >= 0; --d) {
      at += rest % layout.sizes[d] * layout.strides[d];
      rest /= layout.sizes[d];
    }
    const std::uintptr_t first =
        reinterpret_cast<std::uintptr_t>(view.data) + static_cast<std::uintptr_t>(at * size);
    for (std::int64_t b = 0; b < size; ++b) all.insert(first + static_cast<std::uintptr_t>(b));
  }
  return all;
}

bool share(const Bytes& a, const Bytes& b) {
  for (const std::uintptr_t byte : a) {
    if (b.count(byte) != 0) return true;
  }
  return false;
}

struct Drawn {
  Layout layout;
  View view;
};

// A view of a storage of some hundred elements: sliced, turned, stretched, or of any strides.
void draw(Drawn& v, std::mt19937_64& random, std::byte* storage) {
  const auto below = [&](int n) { return static_cast<std::int64_t>(random() % std::uint64_t(n)); };
  Layout layout = contiguous_layout({2 + below(5), 2 + below(5), 2 + below(4)});
  if (below(2) == 0) layout = transpose_layout(layout, below(3), below(3));
  for (int d = 0; d < 3; ++d) {
    const std::int64_t step = 1 + below(3);
    layout = slice_layout(layout, d, below(2), 2 + below(5), below(6) == 0 ? -step : step);
    if (below(8) == 0 && layout.sizes[d] != 0) layout.strides[d] = below(8);
  }
  if (below(3) == 0 && layout.sizes[1] > 0) layout = select_layout(layout, 1, 0);
  constexpr DType kTypes[] = {DType::kUInt8, DType::kFloat16, DType::kFloat32, DType::kInt64};
  const DType dtype = kTypes[random() % 4];
  const std::int64_t first = layout.offset * element_size(dtype) + 4 * below(12);
  layout.offset = 0;
  v.layout = layout;
  v.view = View{storage + first, &v.layout, dtype};
}

TEST(Footprints, AgreeWithSetsOfBytes) {
  std::mt19937_64 random(1);
  std::vector<std::byte> storage(1 << 14);
  int met = 0, apart_within = 0, covered = 0;
  for (int i = 0; i < 20000; ++i) {
    Drawn a, b;
    draw(a, random, storage.data() + 4096);
    draw(b, random, storage.data() + 4096);
    const Bytes in_a = bytes_one_by_one(a.view), in_b = bytes_one_by_one(b.view);
    const Footprint fa = footprint(a.view), fb = footprint(b.view);
    ASSERT_EQ(fa.begin == fa.end, in_a.empty());
    if (in_a.empty() || in_b.empty()) continue;
    ASSERT_EQ(fa.begin, *in_a.begin());
    ASSERT_EQ(fa.end, *in_a.rbegin() + 1);
    const bool really = share(in_a, in_b);
    ASSERT_EQ(meet(fa, fb), really) << str(a.layout) << " and " << str(b.layout);
    ASSERT_EQ(meet(fb, fa), really) << str(a.layout) << " and " << str(b.layout);
    met += really;
    apart_within += !really && fa.begin < fb.end && fb.begin < fa.end;
    if (!covers(fa, fb)) continue;
    ++covered;
    for (const std::uintptr_t byte : in_b) ASSERT_EQ(in_a.count(byte), 1u);
  }
  EXPECT_GT(met, 1000);
  EXPECT_GT(apart_within, 1000);
  EXPECT_GT(covered, 20);
}

// As long as memory is, the number of steps does not grow with it.
TEST(Footprints, LargeViewsThatInterleaveAreApart) {
  const Layout whole = contiguous_layout({100'003, 1001, 3});
  const auto columns = [&](std::int64_t from) { return slice_layout(whole, 1, from, 1001, 2); };
  const auto at = [](const Layout& layout) {
    return footprint(View{reinterpret_cast<void*>(4 * (1024 + layout.offset)), &layout});
  };
  const Layout even = columns(0), odd = columns(1), last = select_layout(whole, 1, 1000);
  EXPECT_FALSE(meet(at(even), at(odd)));
  EXPECT_FALSE(meet(at(odd), at(last)));
  EXPECT_TRUE(meet(at(even), at(last)));
  EXPECT_TRUE(covers(at(whole), at(even)));
  EXPECT_FALSE(covers(at(even), at(whole)));
}

}  // namespace
}  // namespace taper::lens
