// A stable sort of unsigned keys: short lines in shared memory, long ones digit by digit.
#include "taper/cuda/block_scan.cuh"
#include "taper/cuda/radix_sort.cuh"

// Note [Sorting on the device]
// A line of up to kShort keys is sorted by one block, as a bitonic network over (key, item) pairs:
// items differ, so that the order is the stable one. Longer lines are sorted by their lowest digit,
// then the next, and so on. For each digit a line is cut into tiles, one for each block:
//   1. count_digits counts the digits of each tile,
//   2. sum_counts makes of them how many keys of the same digit lie in the tiles before,
//   3. move_keys brings each key to its place. A tile's keys are put in order in shared memory
//      first, so that neighbours are written together.
// Per digit: 3 moves of a key and 2 of an item. Nothing depends on who comes first.
namespace taper::cuda {
namespace {

constexpr int kDigits = 1 << kDigitBits;  // values of a digit
constexpr Index kShort = 2048;
constexpr int kWarps = kThreads / 32;
constexpr int kOwn = 8;                 // keys of a thread
constexpr int kTile = kThreads * kOwn;  // keys of a block
static_assert(kThreads == kDigits, "a thread for each value of a digit");

template <class Key> struct Keys {
  Key* keys;
  std::uint32_t* items;
};

// One pass over long lines. `counts` and `totals` are what sum_counts made; where there are no
// items yet, a key's item is its place.
template <class Key> struct Pass {
  Keys<Key> to, from;
  bool has_items;
  const std::uint32_t *counts, *totals;
  Index lines, n, tiles;
  int shift;
};

template <class Key> __device__ unsigned digit_of(Key key, int shift) {
  return static_cast<unsigned>(key >> shift) & (kDigits - 1);
}

// --- short lines ---

// `size`: n rounded up to a power of two; what is beyond n comes last.
template <class Key>
__global__ void sort_short(Keys<Key> line_keys, Index lines, unsigned n, unsigned size) {
  TAPER_DYNAMIC_SHARED(Key, keys);
  auto* items = reinterpret_cast<std::uint32_t*>(keys + size);
  for (Index line = blockIdx.x; line < lines; line += gridDim.x) {
    for (unsigned i = threadIdx.x; i < size; i += blockDim.x) {
      keys[i] = i < n ? line_keys.keys[line * n + i] : ~Key{0};
      items[i] = i;
    }
    for (unsigned run = 2; run <= size; run *= 2) {
      for (unsigned apart = run / 2; apart > 0; apart /= 2) {
        __syncthreads();
        for (unsigned pair = threadIdx.x; pair < size / 2; pair += blockDim.x) {
          const unsigned low = 2 * pair - pair % apart, high = low + apart;
          const Key a = keys[low], b = keys[high];
          const std::uint32_t item_a = items[low], item_b = items[high];
          const bool falls = a > b || (a == b && item_a > item_b);
          if (falls != ((low & run) == 0)) continue;
          keys[low] = b, keys[high] = a;
          items[low] = item_b, items[high] = item_a;
        }
      }
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) {
      line_keys.keys[line * n + i] = keys[i];
      line_keys.items[line * n + i] = items[i];
    }
    __syncthreads();
  }
}

// --- long lines ---

// counts (lines, digits, tiles)
template <class Key>
__global__ void count_digits(
    const Key* keys, std::uint32_t* counts, Index lines, Index n, Index tiles, int shift) {
  __shared__ std::uint32_t count[kDigits];
  for (Index at = blockIdx.x; at < lines * tiles; at += gridDim.x) {
    const Index line = at / tiles, tile = at % tiles;
    count[threadIdx.x] = 0;
    __syncthreads();
    for (int k = 0; k < kOwn; ++k) {
      const Index i = tile * kTile + k * Index{kThreads} + threadIdx.x;
      if (i < n) atomicAdd(&count[digit_of(keys[line * n + i], shift)], 1u);
    }
    __syncthreads();
    counts[(line * kDigits + threadIdx.x) * tiles + tile] = count[threadIdx.x];
  }
}

// A block for each digit of each line: counts becomes what lies in the tiles before, totals (lines,
// digits) what lies in all.
__global__ void sum_counts(std::uint32_t* counts, std::uint32_t* totals, Index rows, Index tiles) {
  __shared__ std::uint32_t sums[kWarps];
  for (Index row = blockIdx.x; row < rows; row += gridDim.x) {
    const std::uint32_t total = sum_before_each(counts + row * tiles, tiles, sums);
    if (threadIdx.x == 0) totals[row] = total;
  }
}

// One tile in shared memory.
template <class Key> struct Tile {
  std::uint32_t standing[kWarps][kDigits];  // of the next key of a digit, for each warp
  std::uint32_t places[kDigits];            // in the line, less the place in the tile
  std::uint32_t sums[kWarps];
  Key keys[kTile];
  std::uint32_t items[kTile];
};

// The lanes of the warp whose digit is this one's, among those that have one.
__device__ inline unsigned peers_of(unsigned digit, bool has_one) {
  unsigned peers = __ballot_sync(~0u, has_one);
  for (int bit = 0; bit < kDigitBits; ++bit) {
    const unsigned set = __ballot_sync(~0u, digit >> bit & 1);
    peers &= (digit >> bit & 1) != 0 ? set : ~set;
  }
  return peers;
}

// Among the keys of its digit and warp, how many come before each of this thread's keys. A warp
// has kOwn * 32 keys that follow each other, 32 at a time.
template <class Key>
__device__ void rank_keys(
    Tile<Key>& tile, const Key (&keys)[kOwn], int shift, Index left, std::uint32_t (&ranks)[kOwn]) {
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int k = 0; k < kOwn; ++k) {
    const unsigned digit = digit_of(keys[k], shift);
    const bool has_one = Index{warp * kOwn + static_cast<unsigned>(k)} * 32 + lane < left;
    const unsigned peers = peers_of(digit, has_one);
    const auto before = static_cast<std::uint32_t>(__popc(peers & ((1u << lane) - 1)));
    ranks[k] = has_one ? tile.standing[warp][digit] + before : 0;
    __syncwarp();
    if (has_one && peers >> lane == 1) tile.standing[warp][digit] = ranks[k] + 1;  // the last peer
    __syncwarp();
  }
}

// After the ranks: where each digit begins in the tile, for each warp, and in the line. A thread
// for each digit.
template <class Key>
__device__ void place_digits(Tile<Key>& tile, std::uint32_t total, std::uint32_t in_tiles_before) {
  const unsigned digit = threadIdx.x;
  std::uint32_t count = 0;
  for (int warp = 0; warp < kWarps; ++warp) {
    const std::uint32_t own = tile.standing[warp][digit];
    tile.standing[warp][digit] = count;
    count += own;
  }
  const std::uint32_t in_tile = stand_in_block(count, tile.sums).before;
  const std::uint32_t in_line = stand_in_block(total, tile.sums).before;
  for (int warp = 0; warp < kWarps; ++warp) tile.standing[warp][digit] += in_tile;
  tile.places[digit] = in_line + in_tiles_before - in_tile;
}

template <class Key> __global__ void __launch_bounds__(kThreads) move_keys(Pass<Key> pass) {
  __shared__ Tile<Key> tile;
  for (Index at = blockIdx.x; at < pass.lines * pass.tiles; at += gridDim.x) {
    const Index line = at / pass.tiles, tile_number = at % pass.tiles;
    const Index begin = line * pass.n + tile_number * kTile;
    const Index left = pass.n - tile_number * kTile;
    const Index first = Index{threadIdx.x / 32} * kOwn * 32 + threadIdx.x % 32;
    for (int warp = 0; warp < kWarps; ++warp) tile.standing[warp][threadIdx.x] = 0;
    Key keys[kOwn];
    std::uint32_t ranks[kOwn];
    for (int k = 0; k < kOwn; ++k) {
      keys[k] = first + k * 32 < left ? pass.from.keys[begin + first + k * 32] : Key{0};
    }
    __syncthreads();
    rank_keys(tile, keys, pass.shift, left, ranks);
    __syncthreads();
    const Index row = line * kDigits + threadIdx.x;
    place_digits(tile, pass.totals[row], pass.counts[row * pass.tiles + tile_number]);
    __syncthreads();
    for (int k = 0; k < kOwn; ++k) {
      const Index i = first + k * 32;
      if (i >= left) continue;
      const unsigned digit = digit_of(keys[k], pass.shift);
      const std::uint32_t place = tile.standing[threadIdx.x / 32][digit] + ranks[k];
      tile.keys[place] = keys[k];
      tile.items[place] = pass.has_items ? pass.from.items[begin + i]
                                         : static_cast<std::uint32_t>(tile_number * kTile + i);
    }
    __syncthreads();
    for (Index i = threadIdx.x; i < kTile && i < left; i += kThreads) {
      const Key key = tile.keys[i];
      const std::uint32_t place =
          tile.places[digit_of(key, pass.shift)] + static_cast<std::uint32_t>(i);
      pass.to.keys[line * pass.n + place] = key;
      pass.to.items[line * pass.n + place] = tile.items[i];
    }
    __syncthreads();
  }
}

unsigned grid_of(Index blocks) {
  return static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks);
}

template <class T> T* scratch_of(const Exec& exec, Index count) {
  return static_cast<T*>(exec.scratch(static_cast<size_t>(count) * sizeof(T)));
}

// Places in a line are numbers of 32 bits.
Index checked_length(Index n) {
  TAPER_CHECK(n <= 0xffffffff, "cannot sort ", n, " elements together, only 4294967295");
  return n;
}

template <class Key>
void launch_short(const Exec& exec, const Keys<Key>& keys, Index lines, Index n) {
  unsigned size = 2;
  while (size < n) size *= 2;
  const unsigned threads = size / 2 < 32 ? 32 : size / 2 < kThreads ? size / 2 : kThreads;
  const DeviceGuard guard(exec.device.index());
  launch({grid_of(lines), threads, size * (sizeof(Key) + sizeof(std::uint32_t)),
          stream_of(exec.device, exec.stream), exec.device.index()},
         sort_short<Key>, keys, lines, static_cast<unsigned>(n), size);
}

}  // namespace

template <class Key>
KeySorter<Key>::KeySorter(const Exec& exec, Index lines, Index n)
    : exec_(exec),
      n_(checked_length(n)),
      tiles_((n - 1) / kTile + 1),
      keys_(scratch_of<Key>(exec, lines * n)),
      items_(scratch_of<std::uint32_t>(exec, lines * n)) {
  if (n <= kShort) return;
  other_keys_ = scratch_of<Key>(exec, lines * n);
  other_items_ = scratch_of<std::uint32_t>(exec, lines * n);
  counts_ = scratch_of<std::uint32_t>(exec, lines * kDigits * tiles_);
  totals_ = scratch_of<std::uint32_t>(exec, lines * kDigits);
}

template <class Key> void KeySorter<Key>::sort(Index lines, int first_digit, int last_digit) {
  if (n_ <= kShort) return launch_short(exec_, Keys<Key>{keys_, items_}, lines, n_);
  for (int digit = first_digit; digit < last_digit; ++digit) {
    sort_by_digit(lines, digit, digit > first_digit);
  }
}

template <class Key> void KeySorter<Key>::sort_by_digit(Index lines, int digit, bool has_items) {
  const int shift = digit * kDigitBits;
  const Pass<Key> pass{{other_keys_, other_items_},
                       {keys_, items_},
                       has_items,
                       counts_,
                       totals_,
                       lines,
                       n_,
                       tiles_,
                       shift};
  const unsigned grid = grid_of(lines * tiles_);
  launch_on(exec_, grid, kThreads, count_digits<Key>, keys_, counts_, lines, n_, tiles_, shift);
  const auto threads =
      static_cast<unsigned>(tiles_ < kThreads ? (tiles_ + 31) / 32 * 32 : kThreads);
  launch_on(exec_, grid_of(lines * kDigits), threads, sum_counts, counts_, totals_, lines * kDigits,
            tiles_);
  launch_on(exec_, grid, kThreads, move_keys<Key>, pass);
  std::swap(keys_, other_keys_);
  std::swap(items_, other_items_);
}

template class KeySorter<std::uint32_t>;
template class KeySorter<std::uint64_t>;

}  // namespace taper::cuda
