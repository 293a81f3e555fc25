// Attention of the CUDA column, and its gradients, give the bits of the CPU column.
#include "taper/tests/cuda/parity.h"

namespace taper::cuda {
namespace {

constexpr DType kFloating[] = {kFloat64, kFloat32, kFloat16, kBFloat16};
constexpr Lie kOutputLies[] = {Lie::kRowMajor, Lie::kReversed, Lie::kGaps, Lie::kBackwards};

enum class Masked { kNot, kBool, kAdded, kCausal };

constexpr Masked kEveryMask[] = {Masked::kNot, Masked::kBool, Masked::kAdded, Masked::kCausal};

struct Sizes4 {
  std::vector<std::int64_t> batch;
  std::int64_t queries, keys, depth, columns;

  std::vector<std::int64_t> of(std::initializer_list<std::int64_t> last) const {
    std::vector<std::int64_t> all = batch;
    all.insert(all.end(), last);
    return all;
  }
};

// All operands of one problem.
struct Problem {
  Twin q, k, v, y, stats, grad, dq, dk, dv, seen, added;

  Problem(DType dtype, const Sizes4& s, size_t lie, Random& random)
      : q(dtype, lay(kEveryLie[lie], s.of({s.queries, s.depth})), random),
        k(dtype, lay(kEveryLie[(lie + 1) % 6], s.of({s.keys, s.depth})), random),
        v(dtype, lay(kEveryLie[(lie + 2) % 6], s.of({s.keys, s.columns})), random),
        y(dtype, lay(kOutputLies[lie % 4], s.of({s.queries, s.columns})), random),
        stats(dtype == kFloat64 ? kFloat64 : kFloat32,
              lay(kOutputLies[(lie + 1) % 4], s.of({s.queries, 2})),
              random),
        grad(dtype, lay(kEveryLie[(lie + 3) % 6], s.of({s.queries, s.columns})), random),
        dq(dtype, lay(kOutputLies[(lie + 1) % 4], s.of({s.queries, s.depth})), random),
        dk(dtype, lay(kOutputLies[(lie + 2) % 4], s.of({s.keys, s.depth})), random),
        dv(dtype, lay(kOutputLies[(lie + 3) % 4], s.of({s.keys, s.columns})), random),
        seen(kBool, lay(kEveryLie[(lie + 4) % 6], s.of({s.queries, s.keys})), random),
        added(dtype, lay(kEveryLie[(lie + 5) % 6], s.of({s.queries, s.keys})), random) {}

  void tame(Random& random) {
    for (Twin* twin : {&q, &k, &v, &grad}) twin->tame(random);
    added.fill([&] {
      constexpr double kFew[] = {-std::numeric_limits<double>::infinity(), -1e308, -1e9, 1e4};
      const auto pick = random() % 9;
      return pick < 4 ? kFew[pick] : std::normal_distribution<double>(0, 1)(random);
    });
  }

  // With `parts`, also where some of the gradients are not asked for.
  void check_all(Masked masked, bool parts) {
    if (masked == Masked::kBool) check_with(in(seen), false, parts);
    else if (masked == Masked::kAdded) check_with(in(added), false, parts);
    else check_with(In{}, masked == Masked::kCausal, parts);
  }

 private:
  template <class Mask> void check_with(const Mask& mask, bool causal, bool parts) {
    check(&Kernels::attention, y, As<Out>{stats}, in(q), in(k), in(v), mask, causal, kScale);
    compare(stats);
    const auto backward = [&](const auto& to_k, const auto& to_v) {
      check(&Kernels::attention_grad, dq, to_k, to_v, in(grad), in(q), in(k), in(v), in(y),
            in(stats), mask, causal, kScale);
      compare(dk);
      compare(dv);
    };
    backward(As<Out>{dk}, As<Out>{dv});
    if (!parts) return;
    backward(As<Out>{dk}, Out{});
    backward(Out{}, As<Out>{dv});
    backward(Out{}, Out{});
  }

  static constexpr double kScale = 0.3;
};

void check_attention(DType dtype, const Sizes4& sizes, size_t lie, bool odd_values) {
  Random random(lie * 97 + static_cast<size_t>(sizes.queries * 31 + sizes.keys));
  for (const Masked masked : kEveryMask) {
    SCOPED_TRACE(str(dtype, " ", sizes.queries, " queries, ", sizes.keys, " keys, ", sizes.depth,
                     " and ", sizes.columns, " columns, lie ", lie, ", mask ",
                     static_cast<int>(masked)));
    Problem problem(dtype, sizes, lie, random);
    if (!odd_values) problem.tame(random);
    problem.check_all(masked, sizes.queries * sizes.keys < 100);
  }
}

TEST(ParityAttention, EveryDTypeAndEveryLie) {
  for (const DType dtype : kFloating) {
    for (size_t lie = 0; lie < 6; ++lie) check_attention(dtype, {{2, 2}, 5, 9, 6, 7}, lie, false);
  }
}

TEST(ParityAttention, InfinitiesAndNan) {
  for (const DType dtype : kFloating) {
    check_attention(dtype, {{2, 1, 2}, 3, 70, 2, 3}, 0, true);
    check_attention(dtype, {{4}, 66, 2, 2, 2}, 1, true);
  }
}

TEST(ParityAttention, Shapes) {
  const Sizes4 shapes[] = {{{}, 1, 1, 1, 1},  {{2}, 3, 4, 0, 5}, {{2}, 3, 4, 5, 0},
                           {{0}, 3, 4, 5, 6}, {{2}, 0, 4, 5, 6}, {{}, 65, 66, 17, 9}};
  for (const Sizes4& sizes : shapes) {
    for (const DType dtype : kFloating) check_attention(dtype, sizes, 0, false);
  }
}

TEST(ParityAttention, ManyTilesAndStripsOfColumns) {
  const Sizes4 shapes[] = {{{3}, 64, 64, 64, 64},
                           {{}, 1, 200, 5, 9},
                           {{}, 130, 1, 33, 2},
                           {{2}, 7, 129, 8, 130},
                           {{}, 70, 70, 140, 4}};
  for (const Sizes4& sizes : shapes) check_attention(kFloat32, sizes, 1, false);
  check_attention(kFloat64, {{}, 7, 129, 8, 130}, 0, false);
  check_attention(kBFloat16, {{}, 7, 129, 8, 130}, 0, false);
}

}  // namespace
}  // namespace taper::cuda
