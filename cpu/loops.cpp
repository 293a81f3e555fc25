// How the elementwise loop walks its operands and brings them to a row function.
#include "taper/cpu/loops.h"

#include "taper/cpu/move.h"
#include "taper/cpu/parallel.h"

namespace taper::cpu {
namespace {

constexpr std::int64_t kShortRow = 16;  // shorter rows are gathered, many to a block

struct Operand : Strided {
  std::int64_t step;  // bytes between neighbours of a row
  bool dense;         // all rows lie without gaps
};

struct Plan {
  int count = 0, ndim = 0;
  bool direct = true;  // the row function can work on whole rows where they lie
  std::int64_t numel = 1, inner = 1;
  std::int64_t sizes[kMaxDims];
  Operand operands[kMostOperands];
};

void make_plan(Plan& plan, const Row& row, const View* const* views, int count) {
  Layout layouts[kMostOperands];
  for (int k = 0; k < count; ++k) layouts[k] = *views[k]->layout;
  order_dims(layouts, count);
  plan.count = count;
  plan.ndim = layouts[0].ndim;
  plan.numel = layouts[0].numel();
  for (int d = 0; d < plan.ndim; ++d) plan.sizes[d] = layouts[0].sizes[d];
  if (plan.ndim > 0) plan.inner = plan.sizes[plan.ndim - 1];
  if (plan.inner < kShortRow && plan.ndim > 1) plan.direct = false;
  for (int k = 0; k < count; ++k) {
    const Strided view = strided({views[k]->data, &layouts[k], views[k]->dtype});
    const std::int64_t step = plan.ndim == 0 ? view.size : view.strides[plan.ndim - 1];
    plan.operands[k] = {view, step, layouts[k].is_contiguous()};
    const bool scalar = k > 0 && step == 0 && row.takes_scalars;
    if (row.convert[k] != nullptr || (step != view.size && !scalar)) plan.direct = false;
  }
}

// Brings operands to the row function, block by block, through buffers of its own.
class Stage {
 public:
  Stage(const Plan& plan, const Row& row) : plan_(plan), row_(row) {}

  void range(std::int64_t begin, std::int64_t end) {
    Cursor cursor(plan_.ndim, plan_.sizes, begin);
    while (begin < end) {
      std::int64_t n = end - begin;
      if (plan_.inner >= kShortRow && n > cursor.left_in_row()) n = cursor.left_in_row();
      if (plan_.direct) {
        direct(cursor, n);
      } else {
        if (n > kBlock) n = kBlock;
        staged(cursor, begin, n);
      }
      begin += n;
      cursor.advance(n);
    }
  }

 private:
  void direct(const Cursor& cursor, std::int64_t n) const {
    void* at[kMostOperands];
    unsigned scalars = 0;
    for (int k = 0; k < plan_.count; ++k) {
      at[k] = plan_.operands[k].data + cursor.offset(plan_.operands[k].strides);
      if (plan_.operands[k].step == 0) scalars |= 1U << k;
    }
    row_.run(row_.fn, at, n, scalars);
  }

  // Where the block lies without gaps, or null.
  static std::byte* dense(const Operand& operand,
                          const Cursor& cursor,
                          std::int64_t first,
                          std::int64_t n) {
    if (operand.dense) return operand.data + first * operand.size;
    if (operand.step != operand.size || n > cursor.left_in_row()) return nullptr;
    return operand.data + cursor.offset(operand.strides);
  }

  void staged(const Cursor& cursor, std::int64_t first, std::int64_t n) {
    void* at[kMostOperands];
    for (int k = 1; k < plan_.count; ++k) {
      const Operand& in = plan_.operands[k];
      at[k] = dense(in, cursor, first, n);
      if (at[k] == nullptr) {
        at[k] = stored_[k];
        pack(at[k], in, cursor, n);
      }
      if (row_.convert[k] == nullptr) continue;
      row_.convert[k](computed_[k], at[k], n);
      at[k] = computed_[k];
    }
    const Operand& out = plan_.operands[0];
    std::byte* target = dense(out, cursor, first, n);
    std::byte* stored = target != nullptr ? target : stored_[0];
    at[0] = row_.convert[0] != nullptr ? computed_[0] : stored;
    row_.run(row_.fn, at, n, 0);
    if (row_.convert[0] != nullptr) row_.convert[0](stored, at[0], n);
    if (target == nullptr) unpack(out, stored, cursor, n);
  }

  const Plan& plan_;
  const Row& row_;
  alignas(64) std::byte stored_[kMostOperands][kBlock * 8];
  alignas(64) std::byte computed_[kMostOperands][kBlock * 8];
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
  if (is_one_row(row, operands, count)) {
    const std::int64_t numel = operands[0]->layout->numel();
    return parallel_for(numel, grain, [&](std::int64_t begin, std::int64_t end) {
      void* at[kMostOperands];
      for (int k = 0; k < count; ++k) {
        at[k] = operands[k]->as<std::byte>() + begin * element_size(operands[k]->dtype);
      }
      row.run(row.fn, at, end - begin, 0);
    });
  }
  Plan plan;
  make_plan(plan, row, operands, count);
  parallel_for(plan.numel, grain,
               [&](std::int64_t begin, std::int64_t end) { Stage(plan, row).range(begin, end); });
}

void fail_division_by_zero() {
  fail("division by zero: the divisor, of an integer dtype, holds a 0");
}

}  // namespace taper::cpu
