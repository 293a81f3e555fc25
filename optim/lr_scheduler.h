// Learning-rate schedules: the rate as a pure function of the step, times each group's base rate.
#pragma once
#include <cmath>
#include <vector>

#include "taper/optim/optimizer.h"

namespace taper::optim {

// After each step() every group's lr is its base lr times factor(number of steps so far).
class LRScheduler {
 public:
  virtual ~LRScheduler() = default;
  LRScheduler(const LRScheduler&) = delete;
  LRScheduler& operator=(const LRScheduler&) = delete;

  // Pure: depends on the step count alone, so a resumed run only needs the number.
  virtual double factor(std::int64_t step) const = 0;

  void step() { set_step(step_ + 1); }

  std::int64_t step_count() const { return step_; }

  // Jumps to a step, as when a run is resumed.
  void set_step(std::int64_t step) {
    step_ = step;
    auto& groups = optimizer_.param_groups();
    for (std::size_t g = 0; g < groups.size(); ++g) {
      if (g == base_.size()) base_.push_back(groups[g].options().get_lr());  // added since
      groups[g].options().set_lr(base_[g] * factor(step_));
    }
  }

 protected:
  explicit LRScheduler(Optimizer& optimizer) : optimizer_(optimizer) {
    for (const auto& g : optimizer.param_groups()) base_.push_back(g.options().get_lr());
  }

 private:
  Optimizer& optimizer_;
  std::vector<double> base_;
  std::int64_t step_ = 0;
};

// gamma^(step / step_size), the division rounded down.
class StepLR final : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, std::int64_t step_size, double gamma = 0.1, Loc loc = Loc::current())
      : LRScheduler(optimizer), step_size_(step_size), gamma_(gamma) {
    const Call call(loc);
    TAPER_CHECK(step_size > 0, "StepLR: step_size must be positive, got ", step_size);
    set_step(0);
  }

  double factor(std::int64_t step) const override {
    return std::pow(gamma_, static_cast<double>(step / step_size_));
  }

 private:
  std::int64_t step_size_;
  double gamma_;
};

// Rises linearly over `warmup` steps, then falls along half a cosine (Loshchilov and Hutter 2017)
// to min_factor at step `total`, and stays there.
class WarmupCosineLR final : public LRScheduler {
 public:
  WarmupCosineLR(Optimizer& optimizer,
                 std::int64_t warmup,
                 std::int64_t total,
                 double min_factor = 0,
                 Loc loc = Loc::current())
      : LRScheduler(optimizer), warmup_(warmup), total_(total), min_factor_(min_factor) {
    const Call call(loc);
    TAPER_CHECK(warmup >= 0 && total > warmup, "WarmupCosineLR: needs 0 <= warmup < total, got ",
                warmup, " and ", total);
    set_step(0);
  }

  double factor(std::int64_t step) const override {
    if (step < warmup_) return static_cast<double>(step + 1) / static_cast<double>(warmup_ + 1);
    if (step >= total_) return min_factor_;
    const double progress =
        static_cast<double>(step - warmup_) / static_cast<double>(total_ - warmup_);
    return min_factor_ +
           (1 - min_factor_) * 0.5 * (1 + std::cos(progress * 3.14159265358979323846));
  }

 private:
  std::int64_t warmup_, total_;
  double min_factor_;
};

}  // namespace taper::optim
