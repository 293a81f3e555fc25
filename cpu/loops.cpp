// How the elementwise loop walks its operands and brings them to a row function.
#include "taper/cpu/loops.h"

#include "taper/cpu/move.h"
#include "taper/cpu/parallel.h"

namespace taper::cpu {
namespace {

constexpr std::int64_t kShortRow = 16;  // shorter rows are gathered, many to a block
constexpr std::int64_t kLooked = 2048;  // elements of a row that are looked at as one
constexpr std::int64_t kTile = kTileRows * kTileCols;
static_assert(kTile >= kBlock);

struct Operand : Strided {
  std::int64_t step;  // bytes between neighbours of a row
  bool dense;         // all rows lie without gaps
  bool repeats;       // all rows are the same one
};

// The ways through the elements.
enum class Walk {
  kRows,    // the row function works on whole rows where they lie
  kBlocks,  // blocks of one row
  kGather,  // blocks of many short rows
  kTiles,   // blocks of a piece of a matrix, some operand of which lies transposed
};

struct Plan {
  int count = 0, ndim = 0;
  Walk walk = Walk::kRows;
  int tile_dim = -1;  // the rows of a tile; its columns are the innermost dim
  std::int64_t numel = 1, inner = 1;
  std::int64_t sizes[kMaxDims];
  Operand operands[kMostOperands];
};

std::int64_t magnitude(std::int64_t x) {
  return x < 0 ? -x : x;
}

// The dim along which an operand that has long steps along the innermost one has short ones.
int tile_dim(const Plan& plan) {
  const int last = plan.ndim - 1;
  if (plan.numel < 4 * kTile || plan.inner < kShortRow) return -1;
  for (int k = 1; k < plan.count; ++k) {
    const Operand& operand = plan.operands[k];
    for (int d = 0; d < last; ++d) {
      const std::int64_t step = magnitude(operand.strides[d]);
      if (step > 0 && 4 * step <= magnitude(operand.step) && plan.sizes[d] >= kTileCols) return d;
    }
  }
  return -1;
}

void make_plan(Plan& plan, const Row& row, const View* const* views, int count) {
  Layout layouts[kMostOperands];
  for (int k = 0; k < count; ++k) layouts[k] = *views[k]->layout;
  order_dims(layouts, count);
  plan.count = count;
  plan.ndim = layouts[0].ndim;
  plan.numel = layouts[0].numel();
  for (int d = 0; d < plan.ndim; ++d) plan.sizes[d] = layouts[0].sizes[d];
  if (plan.ndim > 0) plan.inner = plan.sizes[plan.ndim - 1];
  for (int k = 0; k < count; ++k) {
    const Strided view = strided({views[k]->data, &layouts[k], views[k]->dtype});
    const std::int64_t step = plan.ndim == 0 ? view.size : view.strides[plan.ndim - 1];
    plan.operands[k] = {view, step, layouts[k].is_contiguous(), k > 0};
    for (int d = 0; d + 1 < plan.ndim; ++d) {
      if (view.strides[d] != 0) plan.operands[k].repeats = false;
    }
    const bool scalar = k > 0 && step == 0 && row.takes_scalars;
    if (row.convert[k] != nullptr || (step != view.size && !scalar)) plan.walk = Walk::kBlocks;
  }
  plan.tile_dim = tile_dim(plan);
  if (plan.tile_dim >= 0) plan.walk = Walk::kTiles;
  else if (plan.inner < kShortRow && plan.ndim > 1) plan.walk = Walk::kGather;
}

// What each thread does with the output that it has just written.
class Look {
 public:
  Look(const Row& row, const View& out) : dtype_(out.dtype) {
    if (finite_watch == nullptr || row.any_nonfinite == nullptr || !is_floating_point(dtype_))
      return;
    watch_ = finite_watch;
    any_nonfinite_ = row.any_nonfinite;
    watch_->looked_at = out.data;
  }

  explicit operator bool() const { return watch_ != nullptr; }

  void at(const void* x, std::int64_t n) const {
    if (watch_ != nullptr && any_nonfinite_(x, n, dtype_))
      watch_->found.store(true, std::memory_order_relaxed);
  }

 private:
  FiniteWatch* watch_ = nullptr;
  NonfiniteFn any_nonfinite_ = nullptr;
  DType dtype_;
};

// Brings operands to the row function, block by block, through buffers of its own.
class Stage {
 public:
  Stage(const Plan& plan, const Row& row, const Look& look) : plan_(plan), row_(row), look_(look) {}

  void rows(std::int64_t begin, std::int64_t end) {
    Cursor cursor(plan_.ndim, plan_.sizes, begin);
    while (begin < end) {
      const std::int64_t left = cursor.left_in_row();
      std::int64_t n = end - begin < left ? end - begin : left;
      if (look_ && n > kLooked) n = kLooked;
      void* at[kMostOperands];
      unsigned scalars = 0;
      for (int k = 0; k < plan_.count; ++k) {
        at[k] = plan_.operands[k].data + cursor.offset(plan_.operands[k].strides);
        if (plan_.operands[k].step == 0) scalars |= 1U << k;
      }
      row_.run(row_.fn, at, n, scalars);
      look_.at(at[0], n);
      begin += n;
      cursor.advance(n);
    }
  }

  void blocks(std::int64_t begin, std::int64_t end) {
    Cursor cursor(plan_.ndim, plan_.sizes, begin);
    while (begin < end) {
      std::int64_t n = end - begin < kBlock ? end - begin : kBlock;
      if (n > cursor.left_in_row()) n = cursor.left_in_row();
      bring(n, [&](int k, void* buffer) -> std::byte* {
        const Operand& operand = plan_.operands[k];
        if (operand.step == operand.size) return operand.data + cursor.offset(operand.strides);
        if (k > 0) pack(buffer, operand, cursor, n);
        return nullptr;
      });
      if (taken_) unpack(plan_.operands[0], stored_[0], cursor, n);
      begin += n;
      cursor.advance(n);
    }
  }

  // begin is the start of a row.
  void gather(std::int64_t begin, std::int64_t end) {
    Cursor cursor(plan_.ndim, plan_.sizes, begin);
    const std::int64_t most = kBlock / plan_.inner * plan_.inner;
    for (bool first = true; begin < end; first = false) {
      const std::int64_t n = end - begin < most ? end - begin : most;
      bring(n, [&](int k, void* buffer) -> std::byte* {
        const Operand& operand = plan_.operands[k];
        if (operand.dense) return operand.data + begin * operand.size;
        if (k > 0 && (first || !operand.repeats)) pack(buffer, operand, cursor, n);
        return nullptr;
      });
      if (taken_) unpack(plan_.operands[0], stored_[0], cursor, n);
      begin += n;
      cursor.advance(n);
    }
  }

  // [begin, end) counts tiles.
  void tiles(std::int64_t begin, std::int64_t end) {
    const int last = plan_.ndim - 1, d = plan_.tile_dim;
    std::int64_t grid[kMaxDims];
    tile_grid(plan_, grid);
    Cursor cursor(plan_.ndim, grid, begin);
    for (; begin < end; ++begin, cursor.advance(1)) {
      const std::int64_t i = cursor.at[d] * kTileRows, j = cursor.at[last] * kTileCols;
      const std::int64_t rows = plan_.sizes[d] - i < kTileRows ? plan_.sizes[d] - i : kTileRows;
      const std::int64_t cols = plan_.inner - j < kTileCols ? plan_.inner - j : kTileCols;
      const auto tile = [&](int k) {
        const Operand& operand = plan_.operands[k];
        const std::int64_t down = operand.strides[d], across = operand.step;
        std::byte* first = operand.data + cursor.offset(operand.strides) +
                           (kTileRows - 1) * cursor.at[d] * down +
                           (kTileCols - 1) * cursor.at[last] * across;
        return Strided{first, operand.size, {down, across}};
      };
      bring(rows * cols, [&](int k, void* buffer) -> std::byte* {
        if (k > 0) pack_tile(buffer, tile(k), rows, cols);
        return nullptr;
      });
      unpack_tile(tile(0), stored_[0], rows, cols);
    }
  }

  // How many tiles there are along each dim.
  static std::int64_t tile_grid(const Plan& plan, std::int64_t* grid) {
    std::int64_t count = 1;
    for (int d = 0; d < plan.ndim; ++d) {
      const std::int64_t side = d == plan.ndim - 1 ? kTileCols : d == plan.tile_dim ? kTileRows : 1;
      grid[d] = (plan.sizes[d] - 1) / side + 1;
      count *= grid[d];
    }
    return count;
  }

 private:
  // Computes n <= kTile elements. find(k, buffer) says where operand k lies dense, or null if it
  // does not; then inputs are in the buffer, and the output is left in stored_[0].
  template <class Find> void bring(std::int64_t n, const Find& find) {
    void* at[kMostOperands];
    for (int k = 1; k < plan_.count; ++k) {
      at[k] = find(k, stored_[k]);
      if (at[k] == nullptr) at[k] = stored_[k];
      if (row_.convert[k] == nullptr) continue;
      row_.convert[k](computed_[k], at[k], n);
      at[k] = computed_[k];
    }
    std::byte* target = find(0, stored_[0]);
    taken_ = target == nullptr;
    if (taken_) target = stored_[0];
    at[0] = row_.convert[0] != nullptr ? computed_[0] : target;
    row_.run(row_.fn, at, n, 0);
    if (row_.convert[0] != nullptr) row_.convert[0](target, at[0], n);
    look_.at(target, n);
  }

  const Plan& plan_;
  const Row& row_;
  const Look& look_;
  bool taken_ = false;  // the output is in stored_[0]
  alignas(64) std::byte stored_[kMostOperands][kTile * 8];
  alignas(64) std::byte computed_[kMostOperands][kTile * 8];
};

// All operands lie dense and are computed in the type that they are stored in: no plan is needed.
bool is_one_row(const Row& row, const View* const* operands, int count) {
  for (int k = 0; k < count; ++k) {
    if (row.convert[k] != nullptr || !operands[k]->layout->is_contiguous()) return false;
  }
  return true;
}

}  // namespace

void elementwise(const Row& row, const View* const* operands, int count) {
  const std::int64_t grain = grain_of(row.cost);
  const Look look(row, *operands[0]);
  if (is_one_row(row, operands, count)) {
    const std::int64_t numel = operands[0]->layout->numel();
    return parallel_for(numel, grain, [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t most = look ? kLooked : end - begin;
      for (; begin < end; begin += most) {
        const std::int64_t n = end - begin < most ? end - begin : most;
        void* at[kMostOperands];
        for (int k = 0; k < count; ++k) {
          at[k] = operands[k]->as<std::byte>() + begin * element_size(operands[k]->dtype);
        }
        row.run(row.fn, at, n, 0);
        look.at(at[0], n);
      }
    });
  }
  Plan plan;
  make_plan(plan, row, operands, count);
  if (plan.numel == 0) return;
  std::int64_t items = plan.numel, chunk = grain;
  if (plan.walk == Walk::kTiles) {
    std::int64_t grid[kMaxDims];
    items = Stage::tile_grid(plan, grid);
    chunk = grain > kTile ? grain / kTile : 1;
  } else if (plan.walk == Walk::kGather) {
    chunk = grain / plan.inner * plan.inner;
  }
  parallel_for(items, chunk, [&](std::int64_t begin, std::int64_t end) {
    Stage stage(plan, row, look);
    if (plan.walk == Walk::kRows) return stage.rows(begin, end);
    if (plan.walk == Walk::kBlocks) return stage.blocks(begin, end);
    if (plan.walk == Walk::kGather) return stage.gather(begin, end);
    stage.tiles(begin, end);
  });
}

void fail_division_by_zero() {
  fail("division by zero: the divisor, of an integer dtype, holds a 0");
}

}  // namespace taper::cpu
