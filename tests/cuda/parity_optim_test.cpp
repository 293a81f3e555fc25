// Steps of Adam, AdamW and SGD over many parameters: the CUDA column gives the CPU column's bits.
#include <deque>

#include "taper/tests/cuda/parity.h"

namespace taper::cuda {
namespace {

using Sizes64 = std::vector<std::int64_t>;

constexpr DType kFloating[] = {kFloat64, kFloat32, kFloat16, kBFloat16};
constexpr Lie kWholeLies[] = {Lie::kRowMajor, Lie::kReversed, Lie::kGaps, Lie::kBackwards};

// One parameter, its gradient and its state.
struct Operands {
  Twin param, grad, first, second, largest;

  Operands(DType dtype, DType state, const Sizes64& sizes, Lie lie, Lie other, Random& random)
      : param(dtype, lay(lie, sizes), random),
        grad(dtype, lay(other, sizes), random),
        first(state, lay(lie, sizes), random),
        second(state, lay(other == Lie::kStretched ? lie : other, sizes), random),
        largest(state, lay(lie, sizes), random) {}

  void tame(Random& random) {
    for (Twin* twin : {&param, &grad, &first}) twin->tame(random);
    for (Twin* twin : {&second, &largest}) {
      twin->fill([&] { return std::uniform_real_distribution<double>(0, 1)(random); });
    }
  }

  void compare_all() const {
    for (const Twin* twin : {&param, &first, &second, &largest}) compare(*twin);
  }
};

template <class V> V on(bool cpu, Twin& twin) {
  return cpu ? twin.on_cpu<V>() : twin.on_cuda<V>();
}

void check_adam(std::deque<Operands>& all, const AdamHyper& hyper, bool amsgrad) {
  const auto run = [&](bool cpu) {
    return [&, cpu](const auto& adam, const Exec& exec) {
      std::vector<AdamParam> params;
      for (Operands& one : all) {
        AdamParam param;
        param.param = on<InOut>(cpu, one.param);
        param.exp_avg = on<InOut>(cpu, one.first);
        param.exp_avg_sq = on<InOut>(cpu, one.second);
        if (amsgrad) param.max_exp_avg_sq = on<InOut>(cpu, one.largest);
        param.grad = on<In>(cpu, one.grad);
        param.step = params.size() % 7 + 1;
        params.push_back(param);
      }
      adam(exec, params, hyper);
    };
  };
  Both<>::run(&Kernels::adam, run(true), run(false));
  for (const Operands& one : all) one.compare_all();
}

void check_sgd(std::deque<Operands>& all, const SgdHyper& hyper) {
  const auto run = [&](bool cpu) {
    return [&, cpu](const auto& sgd, const Exec& exec) {
      std::vector<SgdParam> params;
      for (Operands& one : all) {
        SgdParam param;
        param.param = on<InOut>(cpu, one.param);
        if (hyper.momentum != 0) param.momentum_buffer = on<InOut>(cpu, one.first);
        param.grad = on<In>(cpu, one.grad);
        param.first = params.size() % 3 == 0;
        params.push_back(param);
      }
      sgd(exec, params, hyper);
    };
  };
  Both<>::run(&Kernels::sgd, run(true), run(false));
  for (const Operands& one : all) one.compare_all();
}

// Every kind of step, twice, so that what one writes is what the next one reads.
void check_steps(std::deque<Operands>& all) {
  for (const bool amsgrad : {false, true}) {
    for (const double decay : {0.0, 0.01}) {
      for (const bool decoupled : {false, true}) {
        SCOPED_TRACE(str("adam, amsgrad ", amsgrad, " decay ", decay, " decoupled ", decoupled));
        check_adam(all, {1e-2, 0.9, 0.99, 1e-8, decay, decoupled}, amsgrad);
        check_adam(all, {1e-2, 0.9, 0.99, 1e-8, decay, decoupled}, amsgrad);
      }
    }
  }
  for (const double momentum : {0.0, 0.9}) {
    for (const double decay : {0.0, 0.01}) {
      for (const bool nesterov : {false, true}) {
        SCOPED_TRACE(str("sgd, momentum ", momentum, " decay ", decay, " nesterov ", nesterov));
        check_sgd(all, {0.1, momentum, nesterov ? 0 : 0.2, decay, nesterov});
      }
    }
  }
}

TEST(ParityOptim, EveryPairOfDTypesAndEveryLie) {
  for (const DType dtype : kFloating) {
    for (const DType state : kFloating) {
      Random random(1);
      std::deque<Operands> all;
      for (const Lie lie : kWholeLies) {
        for (const Lie other :
             {Lie::kRowMajor, Lie::kReversed, Lie::kGaps, Lie::kBackwards, Lie::kStretched}) {
          all.emplace_back(dtype, state, Sizes64{3, 5, 7}, lie, other, random);
        }
      }
      SCOPED_TRACE(str(dtype, " with state ", state));
      check_steps(all);  // with infinities and NaN
      for (Operands& one : all) one.tame(random);
      check_steps(all);
    }
  }
}

// Several tables of several chunks, of mixed types; with and without elements.
TEST(ParityOptim, ManyParameters) {
  Random random(2);
  std::deque<Operands> all;
  const Sizes64 shapes[] = {{}, {1}, {0, 4}, {7}, {64, 65}, {4096}, {4097}, {3}, {5, 3000}, {130}};
  for (size_t i = 0; i < 120; ++i) {
    const DType dtype = kFloating[i % 8 < 5 ? 1 : i % 8 - 4];
    all.emplace_back(dtype, i % 3 == 0 ? kFloat32 : dtype, shapes[i % 10], Lie::kRowMajor,
                     i % 11 == 0 ? Lie::kGaps : Lie::kRowMajor, random);
    all.back().tame(random);
  }
  check_steps(all);
  std::deque<Operands> none;
  check_steps(none);
}

}  // namespace
}  // namespace taper::cuda
