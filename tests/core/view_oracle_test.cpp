// Views of all small layouts, against an oracle that only knows the addresses of elements.
#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "taper/core/base/error.h"
#include "taper/core/base/layout.h"

namespace taper {
namespace {

using List = std::vector<std::int64_t>;

// Where each element lies, in row-major order of the indices.
List addresses(const Layout& layout) {
  List out;
  const std::int64_t n = layout.numel();
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t rest = i, at = layout.offset;
    for (int d = layout.ndim - 1; d >= 0; --d) {
      at += rest % layout.sizes[d] * layout.strides[d];
      rest /= layout.sizes[d];
    }
    out.push_back(at);
  }
  return out;
}

// The strides that give `sizes` over those addresses, if any do: read off the first step along
// each dim, then tried on all elements. Dims of size 1 give 0.
std::optional<List> strides_over(const List& at, const List& sizes) {
  List strides(sizes.size());
  std::int64_t step = 1;
  for (std::size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] > 1) strides[d] = at[static_cast<std::size_t>(step)] - at[0];
    step *= sizes[d];
  }
  for (std::size_t i = 0; i < at.size(); ++i) {
    auto rest = static_cast<std::int64_t>(i);
    std::int64_t want = at[0];
    for (std::size_t d = sizes.size(); d-- > 0;) {
      want += rest % sizes[d] * strides[d];
      rest /= sizes[d];
    }
    if (want != at[i]) return std::nullopt;
  }
  return strides;
}

// All lists of up to `most` sizes from 1 to 3.
std::vector<List> shapes(std::size_t most) {
  std::vector<List> out{{}};
  for (std::size_t begin = 0, dims = 1; dims <= most; ++dims) {
    const std::size_t end = out.size();
    for (std::size_t i = begin; i < end; ++i) {
      for (std::int64_t s = 1; s <= 3; ++s) {
        out.push_back(out[i]);
        out.back().push_back(s);
      }
    }
    begin = end;
  }
  return out;
}

// All shapes of n elements whose sizes are above 1, and some of those with a 1 somewhere.
void factorise(std::int64_t n, const List& begun, std::vector<List>& out) {
  if (n == 1) {
    out.push_back(begun);
    for (std::size_t at = 0; at <= begun.size(); ++at) {
      out.push_back(begun);
      out.back().insert(out.back().begin() + static_cast<std::ptrdiff_t>(at), 1);
    }
    return;
  }
  for (std::int64_t f = 2; f <= n; ++f) {
    if (n % f != 0) continue;
    List more = begun;
    more.push_back(f);
    factorise(n / f, more, out);
  }
}

// Row-major, every other element, dims swapped, stretched, with gaps, backwards.
std::vector<Layout> layouts_of(const List& sizes) {
  const Layout plain = contiguous_layout(sizes);
  std::vector<Layout> out{plain};
  List doubled = sizes;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    const auto dim = static_cast<std::int64_t>(d);
    doubled[d] = sizes[d] * 2;
    out.push_back(slice_layout(contiguous_layout(doubled), dim, {}, {}, 2));
    out.push_back(slice_layout(contiguous_layout(doubled), dim, 0, sizes[d], 1));
    doubled[d] = sizes[d];
    out.push_back(plain);
    out.back().strides[d] = 0;
    out.push_back(slice_layout(plain, dim, {}, {}, -1));
    for (std::size_t e = d + 1; e < sizes.size(); ++e) {
      List swapped = sizes;
      std::swap(swapped[d], swapped[e]);
      const auto other = static_cast<std::int64_t>(e);
      out.push_back(transpose_layout(contiguous_layout(swapped), dim, other));
    }
  }
  out.push_back(plain);
  for (int d = 0; d < plain.ndim; ++d) out.back().strides[d] = 5 * (d + 1) - 7;
  return out;
}

TEST(ViewOracle, ViewsAreLegalWhenTheAddressesAllowThem) {
  std::size_t allowed = 0, refused = 0;
  for (const List& sizes : shapes(4)) {
    std::vector<List> targets;
    factorise(checked_numel(sizes), {}, targets);
    for (const Layout& in : layouts_of(sizes)) {
      const List at = addresses(in);
      for (const List& target : targets) {
        const std::optional<Layout> got = view_layout(in, target);
        const std::optional<List> want = strides_over(at, target);
        ASSERT_EQ(got.has_value(), want.has_value())
            << str(in, " as ", IntArrayRef(target)) << ": the oracle says "
            << (want ? "yes" : "no");
        (got ? allowed : refused) += 1;
        if (!got) continue;
        ASSERT_EQ(addresses(*got), at) << str(in, " as ", IntArrayRef(target));
        ASSERT_EQ(got->shape().vec(), target);
      }
    }
  }
  EXPECT_GT(allowed, 10'000u);
  EXPECT_GT(refused, 10'000u);
}

TEST(ViewOracle, FactsOfLayoutsAreThoseOfTheirAddresses) {
  for (const List& sizes : shapes(4)) {
    for (const Layout& in : layouts_of(sizes)) {
      const List at = addresses(in);
      List sorted = at;
      std::sort(sorted.begin(), sorted.end());
      const bool apart = std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
      const bool run = apart && sorted.back() - sorted.front() + 1 == in.numel();
      ASSERT_EQ(extent(in).begin, sorted.front()) << str(in);
      ASSERT_EQ(extent(in).end, sorted.back() + 1) << str(in);
      ASSERT_TRUE(apart || may_overlap_itself(in)) << str(in);
      bool backwards = false;
      for (int d = 0; d < in.ndim; ++d) backwards |= in.sizes[d] > 1 && in.strides[d] < 0;
      if (!backwards) {
        ASSERT_EQ(is_dense(in), run) << str(in);
      }
      ASSERT_EQ(in.is_contiguous(), std::is_sorted(at.begin(), at.end()) && run) << str(in);
      ASSERT_TRUE(is_dense(dense_like(in))) << str(in);
      Layout merged = in;
      Layout* list[] = {&merged};
      coalesce(list, 1);
      ASSERT_EQ(addresses(merged), at) << str(in);
    }
  }
}

TEST(ViewOracle, ChainsOfViewsShowTheElementsThatTheySay) {
  const Layout x = contiguous_layout({3, 4, 2});
  for (std::int64_t d = 0; d < 3; ++d) {
    const Layout turned = transpose_layout(x, 0, d);
    for (std::int64_t i = 0; i < turned.sizes[0]; ++i) {
      const List whole = addresses(turned), part = addresses(select_layout(turned, 0, i));
      const auto n = static_cast<std::ptrdiff_t>(part.size());
      const auto first = whole.begin() + static_cast<std::ptrdiff_t>(i) * n;
      ASSERT_EQ(part, List(first, first + n));
    }
  }
  const Layout windows = unfold_layout(x, 1, 2, 1);  // (3, 3, 2, 2)
  for (std::int64_t w = 0; w < 3; ++w) {
    const Layout one = transpose_layout(select_layout(windows, 1, w), 1, 2);
    ASSERT_EQ(addresses(one), addresses(slice_layout(x, 1, w, w + 2, 1)));
  }
}

}  // namespace
}  // namespace taper
