// Moves elements by index tensors: gather and scatter in all their forms, and nonzero.
#include "taper/core/functors.h"
#include "taper/cuda/block_scan.cuh"
#include "taper/cuda/index_walk.cuh"
#include "taper/cuda/lanes.cuh"
#include "taper/cuda/radix_sort.cuh"

// Note [Indexed moves on the device]
// A plain side is walked and an indexed side is addressed, as in cpu/index.cpp, Note [Indexed
// moves]. A gather gives a thread to each element. A scatter promises an order for places that are
// reached several times: the last writer wins, sums come in the order of the source. So its rows,
// the positions that have an index of their own, are first sorted by where they lead, stably: those
// of one place then stand together, in the order of the source, and one thread adds them all, or
// writes the last of them. The columns, dims along which the index stays the same, share what was
// sorted. So the bits are those of the CPU; allow_atomic_adds() gives them up for the time of the
// sort.
// Bytes beyond the CPU's: 20 a row for each digit that it takes to tell places apart.
namespace taper::cuda {
namespace {

struct Place {
  Index plain = 0, indexed = 0, target = 0;
};

// How a kernel walks: Number is 32 bits wide where all numbers allow it, and kMost is 1 or
// kMaxDims index tensors.
template <class Number_, int kMost_> struct Width {
  using Number = Number_;
  static constexpr int kMost = kMost_;
};

// Where element `i` of the dims is, in row-major order; without what the indices add.
template <class W> __device__ Place place_in(const Side& side, Index i) {
  Place place;
  auto rest = static_cast<typename W::Number>(i);
  for (int d = side.ndim - 1; d >= 0; --d) {
    const auto size = static_cast<typename W::Number>(side.sizes[d]);
    const auto at = static_cast<Index>(d > 0 ? rest % size : rest);
    rest /= size;
    place.plain += at * side.plain[d];
    place.indexed += at * side.indexed[d];
  }
  return place;
}

template <class W> __device__ Place place_of_row(const Rows& rows, Index row) {
  const int indices = W::kMost == 1 ? 1 : rows.indices;
  Index at_index[W::kMost] = {};
  Place place;
  auto rest = static_cast<typename W::Number>(row);
  for (int d = rows.ndim - 1; d >= 0; --d) {
    const auto size = static_cast<typename W::Number>(rows.sizes[d]);
    const auto at = static_cast<Index>(d > 0 ? rest % size : rest);
    rest /= size;
    place.plain += at * rows.plain[d];
    place.indexed += at * rows.indexed[d];
    place.target += at * rows.target[d];
    for (int k = 0; k < W::kMost; ++k) {  // unrolled: at_index stays in registers
      if (k < indices) at_index[k] += at * rows.index_strides[k][d];
    }
  }
  for (int k = 0; k < W::kMost; ++k) {
    if (k >= indices) break;
    Index value = rows.index[k][at_index[k]];
    if (value < 0) value += rows.extents[k];
    place.indexed += value * rows.steps[k];
    place.target += value * rows.targets[k];
  }
  return place;
}

template <class Word, class W>
__global__ void gather_elements(Word* plain, const Word* indexed, Rows rows) {
  for (Index i = first_index(); i < rows.count; i += index_step()) {
    const Place place = place_of_row<W>(rows, i);
    plain[place.plain] = indexed[place.indexed];
  }
}

template <class Key, class W> __global__ void number_targets(Key* keys, Rows rows) {
  for (Index i = first_index(); i < rows.count; i += index_step()) {
    keys[i] = static_cast<Key>(place_of_row<W>(rows, i).target);
  }
}

// For the first of the sorted rows that lead to one place: how many there are; for the others: 0.
template <class Key> __global__ void measure_runs(std::uint32_t* runs, const Key* keys, Index n) {
  for (Index i = first_index(); i < n; i += index_step()) {
    const Key key = keys[i];
    runs[i] = 0;
    if (i > 0 && keys[i - 1] == key) continue;
    const auto is_same = [&](Index at) { return at < n && keys[at] == key; };
    Index last = i, step = 1;
    for (; is_same(last + step); step *= 2) last += step;
    for (; step > 0; step /= 2) {
      if (is_same(last + step)) last += step;
    }
    runs[i] = static_cast<std::uint32_t>(last - i + 1);
  }
}

// The rows of a scatter, sorted by where they lead.
struct Sorted {
  const std::uint32_t *rows, *runs;
};

// What one thread does: a column of the `run` sorted rows from `first` on, if there are any.
struct Member {
  Index first, run, column;
};

template <class W> __device__ Member member_of(const Sorted& sorted, const Side& columns, Index i) {
  const auto number = static_cast<typename W::Number>(i);
  const auto count = static_cast<typename W::Number>(columns.count);
  const auto first = static_cast<Index>(number / count);
  return {first, sorted.runs[first], static_cast<Index>(number % count)};
}

template <class Word, class W>
__global__ void put_last(Word* indexed, const Word* plain, Rows rows, Side columns, Sorted sorted) {
  for (Index i = first_index(); i < rows.count * columns.count; i += index_step()) {
    const Member own = member_of<W>(sorted, columns, i);
    if (own.run == 0) continue;
    const Place row = place_of_row<W>(rows, sorted.rows[own.first + own.run - 1]);
    const Place column = place_in<W>(columns, own.column);
    indexed[row.indexed + column.indexed] = plain[row.plain + column.plain];
  }
}

// Several elements are on their way at a time: only the sums wait for each other.
template <class E, class W>
__global__ void add_runs(E* indexed, const E* plain, Rows rows, Side columns, Sorted sorted) {
  using T = Compute<E>;
  constexpr Index kAhead = 8;
  for (Index i = first_index(); i < rows.count * columns.count; i += index_step()) {
    const Member own = member_of<W>(sorted, columns, i);
    if (own.run == 0) continue;
    const Place row = place_of_row<W>(rows, sorted.rows[own.first]);
    const Place column = place_in<W>(columns, own.column);
    E* to = indexed + row.indexed + column.indexed;
    E sum = *to;  // rounded at each step, as if it were written there
    for (Index k = 0; k < own.run; k += kAhead) {
      E ahead[kAhead];
      for (Index a = 0; a < kAhead; ++a) {
        if (k + a >= own.run) break;
        const Index from = place_in<W>(rows, sorted.rows[own.first + k + a]).plain;
        ahead[a] = plain[from + column.plain];
      }
      for (Index a = 0; a < kAhead; ++a) {
        if (k + a >= own.run) break;
        sum = static_cast<E>(fn::Add{}(static_cast<T>(sum), static_cast<T>(ahead[a])));
      }
    }
    *to = sum;
  }
}

template <class E, class W> __global__ void add_atomically(E* indexed, const E* plain, Rows rows) {
  for (Index i = first_index(); i < rows.count; i += index_step()) {
    const Place place = place_of_row<W>(rows, i);
    atomicAdd(indexed + place.indexed, plain[place.plain]);
  }
}

// Calls fn with the Width that walks `numel` elements by `indices` index tensors.
template <class Fn> void visit_width(Index numel, int indices, const Fn& fn) {
  if (numel > 0x7fffffff) return fn(Width<std::uint64_t, kMaxDims>{});
  if (indices > 1) return fn(Width<std::uint32_t, kMaxDims>{});
  fn(Width<std::uint32_t, 1>{});
}

// Every place of a gather's output is written once, so that any order will do.
void gather_by(const Exec& exec, const View& plain, const View& indexed, const IndexWalk& walk) {
  walk.check(exec);
  if (walk.numel() == 0) return;
  const Rows rows = walk.all();
  visit_word(element_size(plain.dtype), [&](auto type) {
    using Word = typename decltype(type)::type;
    visit_width(rows.count, rows.indices, [&](auto width) {
      launch_on(exec, blocks_for(rows.count), kThreads, gather_elements<Word, decltype(width)>,
                plain.as<Word>(), indexed.as<const Word>(), rows);
    });
  });
}

template <class Key> Sorted sort_rows(const Exec& exec, const Rows& rows, Index targets) {
  KeySorter<Key> sorter(exec, 1, rows.count);
  const unsigned blocks = blocks_for(rows.count);
  visit_width(rows.count, rows.indices, [&](auto width) {
    launch_on(exec, blocks, kThreads, number_targets<Key, decltype(width)>, sorter.keys(), rows);
  });
  int digits = 1;
  while (digits * kDigitBits < 64 && (targets - 1) >> (digits * kDigitBits) != 0) ++digits;
  sorter.sort(1, 0, digits);
  auto* runs = static_cast<std::uint32_t*>(exec.scratch(static_cast<size_t>(rows.count) * 4));
  launch_on(exec, blocks, kThreads, measure_runs<Key>, runs, sorter.keys(), rows.count);
  return {sorter.items(), runs};
}

template <class E>
void add_by_atomics(const Exec& exec, const View& indexed, const View& plain, const Rows& rows) {
  visit_width(rows.count, rows.indices, [&](auto width) {
    launch_on(exec, blocks_for(rows.count), kThreads, add_atomically<E, decltype(width)>,
              indexed.as<E>(), plain.as<const E>(), rows);
  });
}

void scatter_by(
    const Exec& exec, const View& indexed, const View& plain, const IndexWalk& walk, bool add) {
  walk.check(exec);
  if (walk.numel() == 0) return;
  if (add && atomic_adds_allowed()) {
    if (plain.dtype == kFloat32) return add_by_atomics<float>(exec, indexed, plain, walk.all());
    if (plain.dtype == kFloat64) return add_by_atomics<double>(exec, indexed, plain, walk.all());
  }
  const Rows rows = walk.rows();
  const Side columns = walk.columns();
  const Sorted sorted = walk.target_count() <= Index{1} << 32
                            ? sort_rows<std::uint32_t>(exec, rows, walk.target_count())
                            : sort_rows<std::uint64_t>(exec, rows, walk.target_count());
  const unsigned blocks = blocks_for(walk.numel());
  visit_width(walk.numel(), rows.indices, [&](auto width) {
    using W = decltype(width);
    if (add) {
      visit_dtype(plain.dtype, [&](auto type) {
        using E = typename decltype(type)::type;
        launch_on(exec, blocks, kThreads, add_runs<E, W>, indexed.as<E>(), plain.as<const E>(),
                  rows, columns, sorted);
      });
    } else {
      visit_word(element_size(plain.dtype), [&](auto type) {
        using Word = typename decltype(type)::type;
        launch_on(exec, blocks, kThreads, put_last<Word, W>, indexed.as<Word>(),
                  plain.as<const Word>(), rows, columns, sorted);
      });
    }
  });
}

// --- what is not zero ---

constexpr Index kChunk = 32 * kThreads;  // elements of a block

// For elements of one size; `shift` is 1 for floats, where -0 is zero and NaN is not.
template <class U> __device__ bool is_set(U x, int shift) {
  return static_cast<U>(x << shift) != 0;
}

// The number of elements of a chunk that are set, for all threads of the block.
template <class U>
__device__ Index count_chunk(const U* x, Index first, Index n, int shift, Index* sums) {
  const Index end = n - first < kChunk ? n : first + kChunk;
  Index count = 0;
  for (Index i = first + threadIdx.x; i < end; i += kThreads) count += is_set(x[i], shift);
  return stand_in_block(count, sums).total;
}

template <class U>
__global__ void count_all(const U* x, Index n, int shift, unsigned long long* total) {
  __shared__ Index sums[kThreads / 32];
  Index count = 0;
  for (Index first = blockIdx.x * kChunk; first < n; first += gridDim.x * kChunk) {
    count += count_chunk(x, first, n, shift, sums);
  }
  if (threadIdx.x == 0) atomicAdd(total, static_cast<unsigned long long>(count));
}

template <class U> __global__ void count_chunks(const U* x, Index n, int shift, Index* counts) {
  __shared__ Index sums[kThreads / 32];
  for (Index chunk = blockIdx.x; chunk * kChunk < n; chunk += gridDim.x) {
    const Index count = count_chunk(x, chunk * kChunk, n, shift, sums);
    if (threadIdx.x == 0) counts[chunk] = count;
  }
}

__global__ void sum_chunks(Index* counts, Index chunks) {
  __shared__ Index sums[kThreads / 32];
  sum_before_each(counts, chunks, sums);
}

// Coordinate d of row r goes to to[r * row_step + d * step].
struct Coordinates {
  Index* to;
  Index row_step, step;
  Dims x;
};

template <class U>
__global__ void write_nonzero(
    Coordinates rows, const U* x, Index n, int shift, const Index* first_rows) {
  __shared__ Index sums[kThreads / 32];
  for (Index chunk = blockIdx.x; chunk * kChunk < n; chunk += gridDim.x) {
    Index row = first_rows[chunk];
    for (Index first = chunk * kChunk; first < n && first < (chunk + 1) * kChunk;
         first += kThreads) {
      Index i = first + threadIdx.x;
      const bool set = i < n && is_set(x[i], shift);
      const Standing<Index> standing = stand_in_block(Index{set}, sums);
      Index* to = rows.to + (row + standing.before) * rows.row_step;
      for (int d = rows.x.ndim - 1; set && d >= 0; --d) {
        to[d * rows.step] = i % rows.x.sizes[d];
        i /= rows.x.sizes[d];
      }
      row += standing.total;
    }
  }
}

// Blocks for n elements in chunks.
unsigned chunk_blocks(Index n) {
  const Index chunks = (n + kChunk - 1) / kChunk;
  return static_cast<unsigned>(chunks < kMostBlocks ? chunks : kMostBlocks);
}

}  // namespace

void gather(const Exec& exec, Out out, In x, In index, int dim) {
  gather_by(exec, out, x, IndexWalk::along(out, x, index, dim, true));
}

void scatter(const Exec& exec, InOut out, In index, In src, int dim) {
  scatter_by(exec, out, src, IndexWalk::along(src, out, index, dim, true), false);
}

void scatter_add(const Exec& exec, InOut out, In index, In src, int dim) {
  scatter_by(exec, out, src, IndexWalk::along(src, out, index, dim, true), true);
}

void index_select(const Exec& exec, Out out, In x, In index, int dim) {
  gather_by(exec, out, x, IndexWalk::along(out, x, index, dim, false));
}

void index_add(const Exec& exec, InOut out, In index, In src, int dim) {
  scatter_by(exec, out, src, IndexWalk::along(src, out, index, dim, false), true);
}

void index(const Exec& exec, Out out, In x, InList indices) {
  gather_by(exec, out, x, IndexWalk::together(out, x, indices));
}

void index_put(const Exec& exec, InOut x, In src, InList indices, bool accumulate) {
  scatter_by(exec, x, src, IndexWalk::together(src, x, indices), accumulate);
}

void count_nonzero(const Exec& exec, Out count, In x) {
  const DeviceGuard guard(exec.device.index());
  TAPER_CUDA_CHECK(
      cudaMemsetAsync(count.data, 0, sizeof(Index), stream_of(exec.device, exec.stream)));
  const Index n = x.layout->numel();
  visit_word(element_size(x.dtype), [&](auto type) {
    using U = typename decltype(type)::type;
    launch_on(exec, chunk_blocks(n), kThreads, count_all<U>, static_cast<const U*>(dense(exec, x)),
              n, int{is_floating_point(x.dtype)}, count.as<unsigned long long>());
  });
}

// Reads x twice: once to know where each chunk's rows begin.
void nonzero(const Exec& exec, Out rows, In x) {
  const Index n = x.layout->numel(), chunks = (n + kChunk - 1) / kChunk;
  if (chunks == 0) return;
  auto* first = static_cast<Index*>(exec.scratch(static_cast<size_t>(chunks) * sizeof(Index)));
  const Coordinates to{rows.as<Index>(), rows.layout->strides[0], rows.layout->strides[1],
                       Dims(*x.layout)};
  visit_word(element_size(x.dtype), [&](auto type) {
    using U = typename decltype(type)::type;
    const auto* from = static_cast<const U*>(dense(exec, x));
    const int shift = is_floating_point(x.dtype);
    const unsigned blocks = chunk_blocks(n);
    launch_on(exec, blocks, kThreads, count_chunks<U>, from, n, shift, first);
    launch_on(exec, 1, kThreads, sum_chunks, first, chunks);
    launch_on(exec, blocks, kThreads, write_nonzero<U>, to, from, n, shift, first);
  });
}

}  // namespace taper::cuda
