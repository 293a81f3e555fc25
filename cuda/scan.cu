// Running sums and products along one dim: a thread for each block of a line, and a chain of them.
#include "taper/core/functors.h"
#include "taper/cuda/lines.cuh"

// Note [Scans on the device]
// The rule (core/reducers.h, Note [Running sums]) makes 256 elements of a line a sequential chain,
// so one thread takes them all. Lines of one block are done in one kernel. For longer ones a first
// kernel finds the total of each block, a second chains the totals to what comes before each block,
// and a third goes over the blocks again: 2 reads and 1 write.
// Threads whose lines lie side by side read memory as it lies. Other lines go through shared
// memory: a warp brings 32 elements of each of its 32 blocks at a time.
namespace taper::cuda {
namespace {

constexpr int kTile = 32;  // blocks of a warp's tile, and elements of each
constexpr unsigned kTileThreads = 128;

// What an element type is scanned in; u64 stands for i64: integers wrap around.
template <class E>
using Scanned = std::conditional_t<std::is_integral_v<E>, std::uint64_t, Compute<E>>;

// The blocks of all lines: block `b` of line `i` is number b * lines + i. Either their totals are
// wanted (`totals`), or all elements, joined to what comes before the block (`before`).
template <class T> struct Blocks {
  Index lines, length, count;  // count: blocks of a line
  const T* before;             // (lines, count); null for single blocks
  T* totals;                   // (lines, count)

  __device__ Index end() const { return lines * count; }

  __device__ Index first(Index number) const { return number / lines * fn::kScanBlock; }

  // Elements of a block.
  __device__ Index size(Index number) const {
    const Index left = length - first(number);
    return left < fn::kScanBlock ? left : fn::kScanBlock;
  }

  __device__ Index place(Index number) const { return number % lines * count + number / lines; }
};

// One block's chain.
template <class R, class T> struct Chain {
  T running, before;
  bool started = false, joins = false;

  __device__ Chain(const Blocks<T>& blocks, Index number) : running(0), before(0) {
    if (blocks.before == nullptr || number < blocks.lines) return;
    before = blocks.before[blocks.place(number)];
    joins = true;
  }

  __device__ T next(T x) {
    running = started ? R::join(running, x) : x;
    started = true;
    return joins ? R::join(before, running) : running;
  }
};

template <class R, class E, class T = Scanned<E>>
__global__ void scan_by_thread(Lined<E> out, Lined<const E> in, Blocks<T> blocks) {
  for (Index i = first_index(); i < blocks.end(); i += index_step()) {
    const Index line = i % blocks.lines, first = blocks.first(i), n = blocks.size(i);
    const E* x = in.line(line) + first * in.step;
    E* y = out.line(line) + first * out.step;
    Chain<R, T> chain(blocks, i);
    for (Index k = 0; k < n; ++k) {
      const T value = chain.next(fn::Cast<T>{}(x[k * in.step]));
      if (blocks.totals == nullptr) y[k * out.step] = fn::Cast<E>{}(value);
    }
    if (blocks.totals != nullptr) blocks.totals[blocks.place(i)] = chain.running;
  }
}

// Calls visit(row, place) for the element of this thread's column in each row of a warp's tile,
// where there is one. `place` and `size` are those of the row that is this thread's own.
template <class Visit>
__device__ void for_each_row(Index place, int size, int column, const Visit& visit) {
  for (int row = 0; row < kTile; ++row) {
    const Index at = __shfl_sync(~0u, place, row);
    if (column < __shfl_sync(~0u, size, row)) visit(row, at);
  }
}

template <class R, class E, class T = Scanned<E>>
__global__ void __launch_bounds__(kTileThreads, 6)
    scan_by_tile(Lined<E> out, Lined<const E> in, Blocks<T> blocks) {
  __shared__ T tiles[kTileThreads / 32][kTile][kTile + 1];
  T(*tile)[kTile + 1] = tiles[threadIdx.x / 32];
  const int lane = static_cast<int>(threadIdx.x % 32);
  for (Index warp = first_index() - lane; warp < blocks.end(); warp += index_step()) {
    const bool mine = warp + lane < blocks.end();
    const Index own = mine ? warp + lane : 0;
    const Index line = own % blocks.lines, first = blocks.first(own);
    const int size = mine ? static_cast<int>(blocks.size(own)) : 0;
    const Index from = in.starts.offset(line) + first * in.step;
    const Index to = out.starts.offset(line) + first * out.step;
    Chain<R, T> chain(blocks, own);
    for (int begin = 0; begin < fn::kScanBlock && begin < blocks.length; begin += kTile) {
      const int column = begin + lane;
      for_each_row(from, size, column, [&](int row, Index at) {
        tile[row][lane] = fn::Cast<T>{}(in.data[at + column * in.step]);
      });
      __syncwarp();
      for (int k = 0; k < kTile && begin + k < size; ++k) tile[lane][k] = chain.next(tile[lane][k]);
      __syncwarp();
      if (blocks.totals == nullptr) {
        for_each_row(to, size, column, [&](int row, Index at) {
          out.data[at + column * out.step] = fn::Cast<E>{}(tile[row][lane]);
        });
      }
      __syncwarp();
    }
    if (mine && blocks.totals != nullptr) blocks.totals[blocks.place(own)] = chain.running;
  }
}

// Replaces the totals of a line's blocks by what comes before each block; a warp for each line.
template <class R, class T> __global__ void chain_totals(T* totals, Index lines, Index count) {
  const Index lane = threadIdx.x % 32;
  for (Index line = first_index() / 32; line < lines; line += index_step() / 32) {
    T before = T(0);
    for (Index first = 0; first < count; first += 32) {
      T* at = totals + line * count + first + lane;
      const bool mine = first + lane < count;
      const T total = mine ? *at : T(0);
      T result = T(0);
      for (int k = 0; k < 32; ++k) {
        if (lane == k) result = before;
        const T next = __shfl_sync(~0u, total, k);
        before = first + k == 0 ? next : R::join(before, next);
      }
      if (mine) *at = result;
    }
  }
}

// Whether neighbouring lines lie closer to each other than the elements of a line.
bool lie_side_by_side(const Layout& others, Index step) {
  const auto magnitude = [](Index x) { return x < 0 ? -x : x; };
  return others.ndim > 0 && magnitude(others.strides[others.ndim - 1]) < magnitude(step);
}

template <class R, class E>
void scan_in(const Exec& exec, const View& out, const View& in, int dim) {
  using T = Scanned<E>;
  const View* const views[] = {&out, &in};
  Layout others[2];
  Index steps[2];
  const Lines lines = take_lines(views, dim, others, steps);
  if (lines.count == 0 || lines.length == 0) return;
  const Lined<E> to{out.as<E>(), Dims(others[0]), steps[0]};
  const Lined<const E> from{in.as<const E>(), Dims(others[1]), steps[1]};
  Blocks<T> blocks{lines.count, lines.length, (lines.length - 1) / fn::kScanBlock + 1, nullptr,
                   nullptr};
  const Index numbers = lines.count * blocks.count;
  const bool by_tile = lines.length >= kTile && !lie_side_by_side(others[1], steps[1]);
  const auto run = [&] {
    if (by_tile) {
      const Index grid = (numbers - 1) / kTileThreads + 1;
      launch_on(exec, static_cast<unsigned>(grid < kMostBlocks ? grid : kMostBlocks), kTileThreads,
                scan_by_tile<R, E>, to, from, blocks);
    } else {
      launch_on(exec, blocks_for(numbers), kThreads, scan_by_thread<R, E>, to, from, blocks);
    }
  };
  if (blocks.count == 1) return run();
  T* totals = static_cast<T*>(exec.scratch(static_cast<size_t>(numbers) * sizeof(T)));
  blocks.totals = totals;
  run();
  launch_on(exec, blocks_for(lines.count * 32), kThreads, chain_totals<R, T>, totals, lines.count,
            blocks.count);
  blocks.before = totals;
  blocks.totals = nullptr;
  run();
}

template <class R> void scan(const Exec& exec, const View& out, const View& in, int dim) {
  TAPER_ASSERT(out.dtype == in.dtype);
  visit_dtype(in.dtype,
              [&](auto type) { scan_in<R, typename decltype(type)::type>(exec, out, in, dim); });
}

}  // namespace

void cumsum(const Exec& exec, Out out, In in, int dim) {
  scan<fn::Sum>(exec, out, in, dim);
}

void cumprod(const Exec& exec, Out out, In in, int dim) {
  scan<fn::Prod>(exec, out, in, dim);
}

}  // namespace taper::cuda
