// argmax and argmin: pieces of each output's elements on warps or threads, then the pieces.
#include "taper/core/functors.h"
#include "taper/cuda/reduce_plan.cuh"

namespace taper::cuda {
namespace {

// Elements that a team looks at. The order in which pieces are joined does not matter (ArgMax in
// core/reducers.h), so they need not be the blocks of a sum.
constexpr Index kPiece = 2048;

// The best element so far, and its index along the reduced dims; -1 for none.
template <class T> struct Best {
  T value = T(0);
  Index index = -1;
};

template <class R, class T> __device__ void consider(Best<T>& best, const Best<T>& other) {
  if (other.index < 0) return;
  const bool ties =
      !R::is_better(other.value, best.value) && !R::is_better(best.value, other.value);
  if (best.index < 0 || (ties ? other.index < best.index : R::is_better(other.value, best.value))) {
    best = other;
  }
}

// What a team's members found, joined: member 0 has the result.
template <class R, class Team, class T> __device__ Best<T> join_team(Best<T> best) {
  for (int step = static_cast<int>(Team::kSize) / 2; step > 0; step /= 2) {
    const auto down = static_cast<unsigned>(step);
    const Best<T> other{__shfl_down_sync(~0u, best.value, down),
                        __shfl_down_sync(~0u, best.index, down)};
    consider<R>(best, other);
  }
  return best;
}

// found[piece * outputs + output] <- the best of a piece of an output.
template <class R, class Team, class T, class From>
__global__ void find_pieces(
    const From* x, Best<T>* found, ReducePlan plan, Index pieces, Index units) {
  for (Index unit = first_index() / Team::kSize; unit < units; unit += index_step() / Team::kSize) {
    const Index output = unit % plan.outputs, piece = unit / plan.outputs;
    const From* base = x + plan.kept.offset(output);
    Index end = plan.length;
    if (pieces > 1 && end - piece * kPiece > kPiece) end = (piece + 1) * kPiece;
    Best<T> best;
    for (Index i = piece * kPiece + Team::member(); i < end; i += Team::kSize) {
      consider<R>(best, Best<T>{static_cast<T>(base[plan.reduced.offset(i)]), i});
    }
    best = join_team<R, Team>(best);
    if (Team::member() == 0) found[piece * plan.outputs + output] = best;
  }
}

template <class R, class T>
__global__ void join_pieces(Index* indices, const Best<T>* found, Index outputs, Index pieces) {
  for (Index i = first_index(); i < outputs; i += index_step()) {
    Best<T> best;
    for (Index piece = 0; piece < pieces; ++piece) consider<R>(best, found[piece * outputs + i]);
    indices[i] = best.index;
  }
}

template <class R, class T, class From>
void arg_in(const Exec& exec, const View& out, const View& in) {
  const View* const outs[] = {&out};
  const Reduction reduction(in, outs, 1);
  const ReducePlan& plan = reduction.plan;
  if (plan.outputs == 0) return;
  if (plan.length == 0) fail_empty_reduction();
  const Index pieces = (plan.length - 1) / kPiece + 1, units = plan.outputs * pieces;
  auto* found = static_cast<Best<T>*>(exec.scratch(static_cast<size_t>(units) * sizeof(Best<T>)));
  const Index length = plan.length < kPiece ? plan.length : kPiece;
  const bool by_warp = suits_warps(units, length, plan.lies_densely());
  const auto kernel =
      by_warp ? find_pieces<R, WarpTeam, T, From> : find_pieces<R, ThreadTeam, T, From>;
  const Index threads = by_warp ? units * WarpTeam::kSize : units;
  launch_on(exec, blocks_for(threads), kThreads, kernel, in.as<const From>(), found, plan, pieces,
            units);
  const ReduceResults<Index> results(exec, reduction.outs[0], out, plan.outputs);
  launch_on(exec, blocks_for(plan.outputs), kThreads, join_pieces<R, T>, results.data(), found,
            plan.outputs, pieces);
  results.store();
}

// Compared as Compute says; small integers as i32, which warps can shuffle.
template <class R> void arg(const Exec& exec, const View& out, const View& in) {
  visit_dtype(in.dtype, [&](auto type) {
    using From = typename decltype(type)::type;
    using T = std::conditional_t<sizeof(Compute<From>) < 4, std::int32_t, Compute<From>>;
    arg_in<R, T, From>(exec, out, in);
  });
}

}  // namespace

void argmax(const Exec& exec, Out out, In in, int) {
  arg<fn::ArgMax>(exec, out, in);
}

void argmin(const Exec& exec, Out out, In in, int) {
  arg<fn::ArgMin>(exec, out, in);
}

}  // namespace taper::cuda
