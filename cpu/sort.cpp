// A stable sort along one dim, by merging or by digits. 16 bytes an element move 2 to 16 times.
#include "taper/core/functors_order.h"
#include "taper/cpu/elementwise.h"
#include "taper/cpu/lines.h"
#include "taper/cpu/parallel.h"

namespace taper::cpu {
inline namespace TAPER_ISA {
namespace {

constexpr std::int64_t kRun = 16;      // sorted by insertion
constexpr std::int64_t kRadix = 1024;  // lines from here on are sorted by digits
constexpr std::int64_t kWave = std::int64_t{1}
                               << 20;     // elements whose keys are in memory at a time
constexpr int kDigits = 8, kDigit = 256;  // of a key, and values of one

struct Item {
  std::uint64_t key;
  std::int64_t index;  // along the dim
};

std::int64_t smaller(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}

void insertion_sort(Item* items, std::int64_t n) {
  for (std::int64_t i = 1; i < n; ++i) {
    const Item item = items[i];
    std::int64_t k = i;
    for (; k > 0 && item.key < items[k - 1].key; --k) items[k] = items[k - 1];
    items[k] = item;
  }
}

// Merges from[0, middle) and from[middle, n); of equals the left one comes first.
void merge(Item* to, const Item* from, std::int64_t middle, std::int64_t n) {
  std::int64_t left = 0, right = middle;
  while (left < middle && right < n) {
    const bool take_right = from[right].key < from[left].key;
    *to++ = from[take_right ? right : left];
    right += take_right;
    left += !take_right;
  }
  while (left < middle) *to++ = from[left++];
  while (right < n) *to++ = from[right++];
}

// Merges the sorted runs of `width` pairwise, from one buffer to the other.
void merge_runs(Item* to, const Item* from, std::int64_t width, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += 2 * width) {
    const std::int64_t size = smaller(2 * width, n - i);
    merge(to + i, from + i, smaller(width, size), size);
  }
}

// Both sorts are stable and leave their result in `items`.
void merge_sort(Item* items, Item* other, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += kRun) insertion_sort(items + i, smaller(kRun, n - i));
  for (std::int64_t width = kRun; width < n; width *= 4) {
    merge_runs(other, items, width, n);
    merge_runs(items, other, 2 * width, n);
  }
}

TAPER_INLINE std::uint64_t digit(std::uint64_t key, int d) {
  return key >> (8 * d) & (kDigit - 1);
}

// By the lowest digit first; digits that all keys share are passed over.
void radix_sort(Item* items, Item* other, std::int64_t n) {
  std::int64_t counts[kDigits][kDigit] = {};
  for (std::int64_t i = 0; i < n; ++i) {
    for (int d = 0; d < kDigits; ++d) ++counts[d][digit(items[i].key, d)];
  }
  Item *from = items, *to = other;
  for (int d = 0; d < kDigits; ++d) {
    if (counts[d][digit(items[0].key, d)] == n) continue;
    std::int64_t first = 0;
    for (int k = 0; k < kDigit; ++k) {
      const std::int64_t count = counts[d][k];
      counts[d][k] = first;
      first += count;
    }
    for (std::int64_t i = 0; i < n; ++i) to[counts[d][digit(from[i].key, d)]++] = from[i];
    Item* sorted = to;
    to = from;
    from = sorted;
  }
  if (from != items) __builtin_memcpy(items, from, static_cast<std::size_t>(n) * sizeof(Item));
}

template <class T>
void load_keys(
    Item* items, const std::byte* base, std::int64_t step, std::int64_t n, bool descending) {
  for (std::int64_t i = 0; i < n; ++i) {
    const T x = *reinterpret_cast<const T*>(base + i * step);
    items[i] = {fn::unsigned_sort_key(x, descending), i};
  }
}

// Writes the values that the sorted items stand for, and their indices.
template <class T>
void store_line(const Lines& lines, const LineCursor& cursor, const Item* items) {
  const std::int64_t to = lines.operands[0].step, from = lines.operands[2].step;
  std::byte *values = cursor.base(0), *indices = cursor.base(1);
  const std::byte* in = cursor.base(2);
  for (std::int64_t i = 0; i < lines.length; ++i) {
    *reinterpret_cast<T*>(values + i * to) =
        *reinterpret_cast<const T*>(in + items[i].index * from);
    *reinterpret_cast<std::int64_t*>(indices + i * lines.operands[1].step) = items[i].index;
  }
}

template <class T>
void sort_line(
    const Lines& lines, const LineCursor& cursor, Item* items, Item* other, bool descending) {
  const std::int64_t n = lines.length;
  load_keys<T>(items, cursor.base(2), lines.operands[2].step, n, descending);
  if (n < kRadix) merge_sort(items, other, n);
  else radix_sort(items, other, n);
  store_line<T>(lines, cursor, items);
}

using SortLine = void (*)(const Lines&, const LineCursor&, Item*, Item*, bool);

}  // namespace

void sort(const Exec& exec, Out values, Out indices, In in, int dim, bool descending) {
  const View* const views[] = {&values, &indices, &in};
  const Lines lines = lines_along(dim, views, 3);
  const std::int64_t n = lines.length;
  if (n == 0 || lines.count == 0) return;
  const SortLine sort_one = visit_dtype(
      in.dtype, [](auto type) -> SortLine { return sort_line<typename decltype(type)::type>; });
  const std::int64_t wave = smaller(lines.count, n < kWave ? kWave / n : 1);
  const auto bytes = static_cast<std::size_t>(wave * n) * sizeof(Item);
  Item* items = static_cast<Item*>(exec.scratch(bytes));
  Item* other = static_cast<Item*>(exec.scratch(bytes));
  for (std::int64_t first = 0; first < lines.count; first += wave) {
    const std::int64_t count = smaller(wave, lines.count - first);
    parallel_for(count, grain_of(16 * n), [&](std::int64_t begin, std::int64_t end) {
      LineCursor cursor(lines, first + begin);
      for (std::int64_t i = begin; i < end; ++i, cursor.next()) {
        sort_one(lines, cursor, items + i * n, other + i * n, descending);
      }
    });
  }
}

}  // namespace TAPER_ISA
}  // namespace taper::cpu
