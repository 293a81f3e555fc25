// A stable merge sort along one dim. Keys and indices are read and written log2(n / 16) times.
#include "taper/core/functors_order.h"
#include "taper/cpu/elementwise.h"
#include "taper/cpu/lines.h"
#include "taper/cpu/parallel.h"

namespace taper::cpu {
inline namespace TAPER_ISA {
namespace {

constexpr std::int64_t kRun = 16;         // sorted by insertion
constexpr std::int64_t kSegment = 16384;  // sorted by one thread
constexpr std::int64_t kWave = std::int64_t{1}
                               << 20;  // elements whose keys are in memory at a time

struct Item {
  std::int64_t key;
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

// Sorts up to kSegment items; the result is in `items`.
void sort_segment(Item* items, Item* other, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += kRun) insertion_sort(items + i, smaller(kRun, n - i));
  for (std::int64_t width = kRun; width < n; width *= 4) {
    merge_runs(other, items, width, n);
    merge_runs(items, other, 2 * width, n);
  }
}

template <class T>
void load_keys(
    Item* items, const std::byte* base, std::int64_t step, std::int64_t n, bool descending) {
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t key = fn::SortKey{}(*reinterpret_cast<const T*>(base + i * step));
    items[i] = {descending ? ~key : key, i};
  }
}

using LoadKeys = void (*)(Item*, const std::byte*, std::int64_t, std::int64_t, bool);

// Writes the values that the sorted items stand for, and their indices.
void store_line(const Lines& lines, const LineCursor& cursor, const Item* items) {
  const Line &values = lines.operands[0], &indices = lines.operands[1], &in = lines.operands[2];
  for (std::int64_t i = 0; i < lines.length; ++i) {
    __builtin_memcpy(cursor.base(0) + i * values.step, cursor.base(2) + items[i].index * in.step,
                     static_cast<std::size_t>(values.starts.size));
    *reinterpret_cast<std::int64_t*>(cursor.base(1) + i * indices.step) = items[i].index;
  }
}

// Sorts the lines [begin, end), whose items fit into the two buffers.
void sort_wave(const Lines& lines,
               std::int64_t begin,
               std::int64_t end,
               Item* items,
               Item* other,
               LoadKeys load,
               bool descending) {
  const std::int64_t n = lines.length, count = end - begin;
  parallel_for(count, grain_of(n), [&](std::int64_t b, std::int64_t e) {
    LineCursor cursor(lines, begin + b);
    for (std::int64_t i = b; i < e; ++i, cursor.next())
      load(items + i * n, cursor.base(2), lines.operands[2].step, n, descending);
  });
  const std::int64_t segments = (n - 1) / kSegment + 1;
  parallel_for(
      count * segments, grain_of(8 * smaller(n, kSegment)), [&](std::int64_t b, std::int64_t e) {
        for (std::int64_t i = b; i < e; ++i) {
          const std::int64_t first = i % segments * kSegment, at = i / segments * n + first;
          sort_segment(items + at, other + at, smaller(kSegment, n - first));
        }
      });
  for (std::int64_t width = kSegment; width < n; width *= 2) {
    const std::int64_t pairs = (n - 1) / (2 * width) + 1;
    parallel_for(count * pairs, 1, [&](std::int64_t b, std::int64_t e) {
      for (std::int64_t i = b; i < e; ++i) {
        const std::int64_t first = i % pairs * 2 * width, at = i / pairs * n + first;
        const std::int64_t size = smaller(2 * width, n - first);
        merge(other + at, items + at, smaller(width, size), size);
      }
    });
    Item* merged = other;
    other = items;
    items = merged;
  }
  parallel_for(count, grain_of(2 * n), [&](std::int64_t b, std::int64_t e) {
    LineCursor cursor(lines, begin + b);
    for (std::int64_t i = b; i < e; ++i, cursor.next()) store_line(lines, cursor, items + i * n);
  });
}

}  // namespace

void sort(const Exec& exec, Out values, Out indices, In in, int dim, bool descending) {
  const View* const views[] = {&values, &indices, &in};
  const Lines lines = lines_along(dim, views, 3);
  if (lines.length == 0 || lines.count == 0) return;
  const LoadKeys load = visit_dtype(
      in.dtype, [](auto type) -> LoadKeys { return load_keys<typename decltype(type)::type>; });
  const std::int64_t most = lines.length < kWave ? kWave / lines.length : 1;
  const std::int64_t wave = smaller(lines.count, most);
  const auto bytes = static_cast<std::size_t>(wave * lines.length) * sizeof(Item);
  Item* items = static_cast<Item*>(exec.scratch(bytes));
  Item* other = static_cast<Item*>(exec.scratch(bytes));
  for (std::int64_t i = 0; i < lines.count; i += wave) {
    sort_wave(lines, i, smaller(i + wave, lines.count), items, other, load, descending);
  }
}

}  // namespace TAPER_ISA
}  // namespace taper::cpu
