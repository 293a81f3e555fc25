// Moves elements by index tensors: gather and scatter in all their forms, and nonzero.
#include <cstring>

#include "taper/cpu/index_check.h"
#include "taper/cpu/kernels.h"
#include "taper/cpu/parallel.h"
#include "taper/cpu/walk.h"

// Note [Indexed moves]
// All of these are one loop. It runs over the indices of a plain side (the output of a gather, the
// source of a scatter); the other side is addressed by the same strides plus, for each index
// tensor, index * step. What differs is the direction, and what happens on arrival. Dims that may
// lead to the same place twice (`ordered`) are walked in row-major order by one thread; the others
// are shared out. So the last writer wins and sums come in the order of the source, whatever the
// number of threads.
namespace taper::cpu {
inline namespace TAPER_ISA {
namespace {

using Index = std::int64_t;

constexpr int kPlain = 0, kIndexed = 1, kFirstIndex = 2;
constexpr int kMostWalked = kFirstIndex + kMaxDims;

// Strides, steps and offsets are in bytes, those of index tensors too.
struct Plan {
  Walk<kMostWalked> walk;
  std::byte* data[kMostWalked];
  int indices = 0;
  Index steps[kMaxDims];    // in the indexed side, for each index tensor
  Index extents[kMaxDims];  // what a negative index wraps around
  bool ordered[kMaxDims] = {};

  Index offset_at(const std::byte* const* index, const Index* index_steps, Index i) const {
    Index sum = 0;
    for (int k = 0; k < indices; ++k) {
      Index value = *reinterpret_cast<const Index*>(index[k] + i * index_steps[k]);
      if (value < 0) value += extents[k];
      sum += value * steps[k];
    }
    return sum;
  }
};

// A run along the last dim: n elements, by steps in bytes.
struct Run {
  std::byte* plain;
  std::byte* indexed;
  Index plain_step, indexed_step, n;
};

// These may stand for any type of their size.
using U8 [[gnu::may_alias]] = std::uint8_t;
using U16 [[gnu::may_alias]] = std::uint16_t;
using U32 [[gnu::may_alias]] = std::uint32_t;
using U64 [[gnu::may_alias]] = std::uint64_t;

template <class U> TAPER_INLINE U& element(std::byte* p) {
  return *reinterpret_cast<U*>(p);
}

struct Gather {
  template <class U> TAPER_INLINE static void one(std::byte* plain, std::byte* indexed) {
    element<U>(plain) = element<U>(indexed);
  }
};

struct Scatter {
  template <class U> TAPER_INLINE static void one(std::byte* plain, std::byte* indexed) {
    element<U>(indexed) = element<U>(plain);
  }
};

struct ScatterAdd {
  template <class T> TAPER_INLINE static void one(std::byte* plain, std::byte* indexed) {
    T& to = element<T>(indexed);
    const T x = element<T>(plain);
    if constexpr (std::is_same_v<T, bool>) {
      to = to || x;
    } else if constexpr (std::is_integral_v<T>) {
      to = static_cast<T>(static_cast<std::uint64_t>(to) + static_cast<std::uint64_t>(x));
    } else {
      to = static_cast<T>(to + x);
    }
  }
};

template <class Move, class T> void move_run(const Run& run) {
  constexpr Index kSize = sizeof(T);
  if (run.plain_step == kSize && run.indexed_step == kSize) {
    if constexpr (std::is_same_v<Move, ScatterAdd>) {
      for (Index i = 0; i < run.n; ++i) {
        Move::template one<T>(run.plain + i * kSize, run.indexed + i * kSize);
      }
    } else {
      const bool in = std::is_same_v<Move, Gather>;
      std::memcpy(in ? run.plain : run.indexed, in ? run.indexed : run.plain,
                  static_cast<std::size_t>(run.n * kSize));
    }
    return;
  }
  for (Index i = 0; i < run.n; ++i) {
    Move::template one<T>(run.plain + i * run.plain_step, run.indexed + i * run.indexed_step);
  }
}

// One run whose elements have an index each.
template <class Move, class T>
void move_each(const Plan& plan,
               const Run& run,
               const std::byte* const* index,
               const Index* index_steps) {
  if (plan.indices == 1) {
    const Index step = plan.steps[0], extent = plan.extents[0];
    for (Index i = 0; i < run.n; ++i) {
      Index value = *reinterpret_cast<const Index*>(index[0] + i * index_steps[0]);
      if (value < 0) value += extent;
      Move::template one<T>(run.plain + i * run.plain_step,
                            run.indexed + i * run.indexed_step + value * step);
    }
    return;
  }
  for (Index i = 0; i < run.n; ++i) {
    Move::template one<T>(
        run.plain + i * run.plain_step,
        run.indexed + i * run.indexed_step + plan.offset_at(index, index_steps, i));
  }
}

// The plan's dims, apart: the shared ones in front of the last, the ordered ones in front of the
// last, and the last, which is cut into pieces when it is shared and there is little else.
struct Split {
  Walk<kMostWalked> shared, ordered;
  Index last[kMostWalked] = {};  // steps along the last dim
  Index length = 1, piece = 1, pieces = 1;
  bool same_index = true;  // along the last dim

  explicit Split(const Plan& plan) {
    const Walk<kMostWalked>& from = plan.walk;
    const int last_dim = from.ndim - 1;
    shared.count = ordered.count = from.count;
    for (int d = 0; d < last_dim; ++d) {
      Walk<kMostWalked>& to = plan.ordered[d] ? ordered : shared;
      to.sizes[to.ndim] = from.sizes[d];
      for (int k = 0; k < from.count; ++k) to.strides[k][to.ndim] = from.strides[k][d];
      ++to.ndim;
    }
    if (last_dim < 0) return;
    length = piece = from.sizes[last_dim];
    for (int k = 0; k < from.count; ++k) last[k] = from.strides[k][last_dim];
    for (int k = kFirstIndex; k < from.count; ++k) same_index = same_index && last[k] == 0;
    if (!plan.ordered[last_dim] && shared.numel() < 32) {
      piece = (length + 31) / 32 < 64 ? 64 : (length + 31) / 32;
      pieces = (length + piece - 1) / piece;
    }
  }
};

template <class Move, class T> void move_indexed(const Plan& plan) {
  if (plan.walk.numel() == 0) return;
  const Split split(plan);
  const Index ordered = split.ordered.numel();
  const Index items = split.shared.numel() * split.pieces;
  parallel_for(items, grain_of(ordered * split.piece), [&](Index begin, Index end) {
    Walk<kMostWalked> shared = split.shared, inner = split.ordered;
    for (Index item = begin; item < end; ++item) {
      shared.seek(item / split.pieces);
      inner.seek(0);
      const Index first = item % split.pieces * split.piece;
      const Index left = split.length - first;
      for (Index i = 0; i < ordered; ++i, inner.next()) {
        std::byte* at[kMostWalked];
        for (int k = 0; k < inner.count; ++k) {
          at[k] = plan.data[k] + shared.offset[k] + inner.offset[k] + first * split.last[k];
        }
        Run run{at[kPlain], at[kIndexed], split.last[kPlain], split.last[kIndexed],
                left < split.piece ? left : split.piece};
        if (split.same_index) {
          run.indexed += plan.offset_at(at + kFirstIndex, split.last + kFirstIndex, 0);
          move_run<Move, T>(run);
        } else {
          move_each<Move, T>(plan, run, at + kFirstIndex, split.last + kFirstIndex);
        }
      }
    }
  });
}

// Calls fn with a null pointer to the type that stands for elements of the dtype's size.
template <class Fn> void visit_size(DType dtype, const Fn& fn) {
  switch (element_size(dtype)) {
    case 1: return fn(static_cast<U8*>(nullptr));
    case 2: return fn(static_cast<U16*>(nullptr));
    case 4: return fn(static_cast<U32*>(nullptr));
    default: return fn(static_cast<U64*>(nullptr));
  }
}

// Gather and Scatter only look at the size of an element.
template <class Move> void move_elements(const Plan& plan, DType dtype) {
  visit_size(dtype,
             [&](auto* type) { move_indexed<Move, std::remove_pointer_t<decltype(type)>>(plan); });
}

void add_elements(const Plan& plan, DType dtype) {
  visit_dtype(dtype,
              [&](auto type) { move_indexed<ScatterAdd, typename decltype(type)::type>(plan); });
}

void add_operand(Plan& plan, const View& view, int first_dim = 0) {
  Walk<kMostWalked>& walk = plan.walk;
  const int k = walk.count++;
  plan.data[k] = view.as<std::byte>();
  const Index size = element_size(view.dtype);
  for (int d = 0; d < view.layout->ndim && first_dim + d < walk.ndim; ++d) {
    walk.strides[k][first_dim + d] = view.layout->strides[d] * size;
  }
}

void set_sizes(Plan& plan, const Layout& layout) {
  plan.walk.ndim = layout.ndim;
  for (int d = 0; d < layout.ndim; ++d) plan.walk.sizes[d] = layout.sizes[d];
}

void add_index(
    Plan& plan, const View& index, const View& indexed, int dim, bool wraps, int first_dim = 0) {
  const Layout& layout = *indexed.layout;
  const Index extent = layout.ndim == 0 ? 1 : layout.sizes[dim];
  check_indices(index, dim, extent, wraps);
  const int k = plan.indices++;
  plan.steps[k] = layout.ndim == 0 ? 0 : layout.strides[dim] * element_size(indexed.dtype);
  plan.extents[k] = extent;
  add_operand(plan, index, first_dim);
}

// For gather and scatter, where `index` has an element for each of the plain side; and, with a 1-d
// index, for index_select and index_add, where the plain side has the sizes.
Plan plan_along(
    const View& plain, const View& indexed, const View& index, int dim, bool one_for_each) {
  Plan plan;
  set_sizes(plan, one_for_each ? *index.layout : *plain.layout);
  add_operand(plan, plain);
  add_operand(plan, indexed);
  if (plan.walk.ndim > 0) plan.walk.strides[kIndexed][dim] = 0;
  add_index(plan, index, indexed, dim, false, one_for_each ? 0 : dim);
  plan.ordered[dim] = true;
  return plan;
}

// For index and index_put: the first indices.size() dims of the indexed side are indexed together,
// its others are the last dims of the plain side.
Plan plan_together(const View& plain, const View& indexed, InList indices) {
  Plan plan;
  set_sizes(plan, *plain.layout);
  add_operand(plan, plain);
  const int together = static_cast<int>(indices.size());
  const int rest = indexed.layout->ndim - together;
  plan.data[plan.walk.count++] = indexed.as<std::byte>();
  for (int d = 0; d < rest; ++d) {
    plan.walk.strides[kIndexed][plan.walk.ndim - rest + d] =
        indexed.layout->strides[together + d] * element_size(indexed.dtype);
  }
  for (int k = 0; k < together; ++k) {
    add_index(plan, indices[static_cast<std::size_t>(k)], indexed, k, true);
  }
  for (int d = 0; d < plan.walk.ndim - rest; ++d) plan.ordered[d] = true;
  return plan;
}

constexpr Index kChunk = kGrain;  // elements that are counted together

// Not zero, for elements of one size; `shift` is 1 for floats, where -0 is zero and NaN is not.
template <class U> TAPER_INLINE bool is_set(const std::byte* p, int shift) {
  return static_cast<U>(*reinterpret_cast<const U*>(p) << shift) != 0;
}

template <class U>
TAPER_INLINE Index count_run(const std::byte* p, Index step, Index n, int shift) {
  Index count = 0;
  if (step == sizeof(U)) {
    for (Index i = 0; i < n; ++i) count += is_set<U>(p + i * Index{sizeof(U)}, shift);
  } else {
    for (Index i = 0; i < n; ++i) count += is_set<U>(p + i * step, shift);
  }
  return count;
}

Walk<1> walk_of(const Layout& layout, Index size) {
  Walk<1> walk;
  walk.ndim = layout.ndim;
  walk.count = 1;
  for (int d = 0; d < layout.ndim; ++d) {
    walk.sizes[d] = layout.sizes[d];
    walk.strides[0][d] = layout.strides[d] * size;
  }
  return walk;
}

// Calls found(chunk, count) for each chunk of kChunk elements in row-major order.
template <class U, class Found> void count_chunks(const View& x, int shift, const Found& found) {
  Layout layout = *x.layout;
  Layout* const layouts[] = {&layout};
  coalesce(layouts, 1);
  Walk<1> rows = walk_of(layout, sizeof(U));
  const Index numel = layout.numel();
  const Index length = rows.ndim > 0 ? rows.sizes[rows.ndim - 1] : 1;
  const Index step = rows.ndim > 0 ? rows.strides[0][rows.ndim - 1] : 0;
  if (rows.ndim > 0) --rows.ndim;
  parallel_for(numel, kChunk, [&](Index begin, Index end) {
    Walk<1> walk = rows;
    Index count = 0;
    walk.seek(begin / length);
    for (Index i = begin; i < end; walk.next()) {
      const Index in_row = i % length;
      const Index n = length - in_row < end - i ? length - in_row : end - i;
      count += count_run<U>(x.as<std::byte>() + walk.offset[0] + in_row * step, step, n, shift);
      i += n;
    }
    found(begin / kChunk, count);
  });
}

// Writes the coordinates of what is set; chunk c's begin at row first[c].
template <class U>
void write_nonzero(const View& rows, const View& x, int shift, const Index* first) {
  const Walk<1> start = walk_of(*x.layout, sizeof(U));
  const Index row_step = rows.layout->strides[0], step = rows.layout->strides[1];
  parallel_for(start.numel(), kChunk, [&](Index begin, Index end) {
    Walk<1> walk = start;
    walk.seek(begin);
    Index* to = rows.as<Index>() + first[begin / kChunk] * row_step;
    for (Index i = begin; i < end; ++i, walk.next()) {
      if (!is_set<U>(x.as<std::byte>() + walk.offset[0], shift)) continue;
      for (int d = 0; d < walk.ndim; ++d) to[d * step] = walk.at[d];
      to += row_step;
    }
  });
}

// Every place of a gather's output is written once: all dims can be shared out.
Plan shared(Plan plan) {
  for (bool& ordered : plan.ordered) ordered = false;
  return plan;
}

}  // namespace

// Bytes: the index once, 2 for each moved byte; 3 for each one added.
void gather(const Exec&, Out out, In x, In index, int dim) {
  move_elements<Gather>(shared(plan_along(out, x, index, dim, true)), out.dtype);
}

void scatter(const Exec&, InOut out, In index, In src, int dim) {
  move_elements<Scatter>(plan_along(src, out, index, dim, true), out.dtype);
}

void scatter_add(const Exec&, InOut out, In index, In src, int dim) {
  add_elements(plan_along(src, out, index, dim, true), out.dtype);
}

void index_select(const Exec&, Out out, In x, In index, int dim) {
  move_elements<Gather>(shared(plan_along(out, x, index, dim, false)), out.dtype);
}

void index_add(const Exec&, InOut out, In index, In src, int dim) {
  add_elements(plan_along(src, out, index, dim, false), out.dtype);
}

void index(const Exec&, Out out, In x, InList indices) {
  move_elements<Gather>(shared(plan_together(out, x, indices)), out.dtype);
}

void index_put(const Exec&, InOut x, In src, InList indices, bool accumulate) {
  const Plan plan = plan_together(src, x, indices);
  if (accumulate) add_elements(plan, x.dtype);
  else move_elements<Scatter>(plan, x.dtype);
}

void count_nonzero(const Exec&, Out count, In x) {
  Index total = 0;
  visit_size(x.dtype, [&](auto* type) {
    using U = std::remove_pointer_t<decltype(type)>;
    count_chunks<U>(x, is_floating_point(x.dtype),
                    [&](Index, Index n) { __atomic_fetch_add(&total, n, __ATOMIC_RELAXED); });
  });
  *count.as<Index>() = total;
}

// Reads x twice: once to know where each chunk's rows begin.
void nonzero(const Exec& exec, Out rows, In x) {
  const Index chunks = (x.layout->numel() + kChunk - 1) / kChunk;
  if (chunks == 0) return;
  auto* first = static_cast<Index*>(exec.scratch(static_cast<std::size_t>(chunks) * sizeof(Index)));
  visit_size(x.dtype, [&](auto* type) {
    using U = std::remove_pointer_t<decltype(type)>;
    const int shift = is_floating_point(x.dtype);
    count_chunks<U>(x, shift, [&](Index chunk, Index n) { first[chunk] = n; });
    for (Index chunk = 0, sum = 0; chunk < chunks; ++chunk) {
      const Index n = first[chunk];
      first[chunk] = sum;
      sum += n;
    }
    write_nonzero<U>(rows, x, shift, first);
  });
}

}  // namespace TAPER_ISA
}  // namespace taper::cpu
