// Optimizer: groups of parameters with options, per-parameter state, and the step that changes
// them.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "taper/autograd/grad_mode.h"
#include "taper/core/base/ordered_dict.h"
#include "taper/core/cuda_graph.h"
#include "taper/core/tensor.h"

namespace taper::optim {

// Base of SGDOptions, AdamOptions, ...
class OptimizerOptions {
 public:
  virtual ~OptimizerOptions() = default;
  virtual std::unique_ptr<OptimizerOptions> clone() const = 0;
  virtual double get_lr() const = 0;
  virtual void set_lr(double lr) = 0;
};

// Parameters that share options. A group without options takes the optimizer's.
class OptimizerParamGroup {
 public:
  OptimizerParamGroup(std::vector<Tensor> params)  // NOLINT(google-explicit-constructor)
      : params_(std::move(params)) {}

  OptimizerParamGroup(std::vector<Tensor> params, std::unique_ptr<OptimizerOptions> options)
      : params_(std::move(params)), options_(std::move(options)) {}

  OptimizerParamGroup(const OptimizerParamGroup& other)
      : params_(other.params_),
        options_(other.options_ == nullptr ? nullptr : other.options_->clone()) {}

  OptimizerParamGroup(OptimizerParamGroup&&) = default;
  OptimizerParamGroup& operator=(OptimizerParamGroup&&) = default;

  bool has_options() const { return options_ != nullptr; }

  OptimizerOptions& options() const { return *options_; }

  void set_options(std::unique_ptr<OptimizerOptions> options) { options_ = std::move(options); }

  std::vector<Tensor>& params() { return params_; }

  const std::vector<Tensor>& params() const { return params_; }

 private:
  std::vector<Tensor> params_;
  std::unique_ptr<OptimizerOptions> options_;
};

// The state of a parameter follows its identity: module.to(device, dtype) after the optimizer was
// made is fine, the state moves along at the next step.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Changes the parameters that have a gradient. Not recorded; raises their versions.
  virtual void step(Loc loc = Loc::current()) = 0;
  // Calls f() -> loss with recording on, then step(). Returns the loss.
  template <class F> Tensor step(F closure, Loc loc = Loc::current());

  void zero_grad(bool set_to_none = true, Loc loc = Loc::current());
  // Parameters must be leaves, and none may come twice. Options must be of this optimizer's kind.
  void add_param_group(OptimizerParamGroup group, Loc loc = Loc::current());
  void add_parameters(const std::vector<Tensor>& params, Loc loc = Loc::current());

  std::vector<OptimizerParamGroup>& param_groups() { return groups_; }

  const std::vector<OptimizerParamGroup>& param_groups() const { return groups_; }

  const OptimizerOptions& defaults() const { return *defaults_; }

  std::size_t size() const;  // parameters in all groups

  // Everything that a resumed run needs: per parameter "0.exp_avg", "0.step", ..., and per group
  // "group0.lr". The tensors are shared, not copied.
  OrderedDict<std::string, Tensor> state_dict() const;
  // Copies it back; the parameters must be the same in number and shape.
  void load_state_dict(const OrderedDict<std::string, Tensor>& state, Loc loc = Loc::current());

 protected:
  Optimizer(std::vector<OptimizerParamGroup> groups,
            std::unique_ptr<OptimizerOptions> defaults,
            Loc loc);

  // What is kept for one parameter.
  struct State {
    std::shared_ptr<ReplayCount> step = std::make_shared<ReplayCount>(0);
    std::vector<Tensor> tensors;  // in the order of state_names(); undefined until needed
  };

  virtual std::vector<std::string> state_names() const = 0;
  State& state_of(std::size_t index) { return states_[index]; }
  // State tensor k, zeros like the parameter at first use, with the parameter's device and dtype.
  const Tensor& state_tensor(State& state, std::size_t k, const Tensor& param);

 private:
  void check_new(const std::vector<Tensor>& params) const;

  std::vector<OptimizerParamGroup> groups_;
  std::unique_ptr<OptimizerOptions> defaults_;
  std::vector<State> states_;  // in the order of parameters through the groups
};

// A set of options with LibTorch's chained setters: Options(0.1).momentum(0.9).
class SGDOptions : public OptimizerOptions {
 public:
  SGDOptions(double lr) : lr_(lr) {}  // NOLINT: SGD(params, 0.1)

  double lr() const { return lr_; }
  double momentum() const { return momentum_; }
  double dampening() const { return dampening_; }
  double weight_decay() const { return weight_decay_; }
  bool nesterov() const { return nesterov_; }

  SGDOptions& lr(double v) { return lr_ = v, *this; }
  SGDOptions& momentum(double v) { return momentum_ = v, *this; }
  SGDOptions& dampening(double v) { return dampening_ = v, *this; }
  SGDOptions& weight_decay(double v) { return weight_decay_ = v, *this; }
  SGDOptions& nesterov(bool v) { return nesterov_ = v, *this; }

  std::unique_ptr<OptimizerOptions> clone() const override {
    return std::make_unique<SGDOptions>(*this);
  }
  double get_lr() const override { return lr_; }
  void set_lr(double lr) override { lr_ = lr; }

 private:
  double lr_, momentum_ = 0, dampening_ = 0, weight_decay_ = 0;
  bool nesterov_ = false;
};

// g += weight_decay w;  v = momentum v + (1 - dampening) g (v = g at first);
// w -= lr (nesterov ? g + momentum v : v).  Sutskever et al. 2013, in PyTorch's form.
class SGD final : public Optimizer {
 public:
  SGD(std::vector<OptimizerParamGroup> groups, SGDOptions defaults, Loc loc = Loc::current());
  SGD(std::vector<Tensor> params, SGDOptions defaults, Loc loc = Loc::current())
      : SGD(std::vector<OptimizerParamGroup>{std::move(params)}, defaults, loc) {}

  using Optimizer::step;
  void step(Loc loc = Loc::current()) override;

 protected:
  std::vector<std::string> state_names() const override { return {"momentum_buffer"}; }
};

using Betas = std::tuple<double, double>;

class AdamOptions : public OptimizerOptions {
 public:
  AdamOptions(double lr = 1e-3) : lr_(lr) {}  // NOLINT

  double lr() const { return lr_; }
  Betas betas() const { return betas_; }
  double eps() const { return eps_; }
  double weight_decay() const { return weight_decay_; }
  bool amsgrad() const { return amsgrad_; }

  AdamOptions& lr(double v) { return lr_ = v, *this; }
  AdamOptions& betas(Betas v) { return betas_ = v, *this; }
  AdamOptions& eps(double v) { return eps_ = v, *this; }
  AdamOptions& weight_decay(double v) { return weight_decay_ = v, *this; }
  AdamOptions& amsgrad(bool v) { return amsgrad_ = v, *this; }

  std::unique_ptr<OptimizerOptions> clone() const override {
    return std::make_unique<AdamOptions>(*this);
  }
  double get_lr() const override { return lr_; }
  void set_lr(double lr) override { lr_ = lr; }

 protected:
  double lr_;
  Betas betas_{0.9, 0.999};
  double eps_ = 1e-8, weight_decay_ = 0;
  bool amsgrad_ = false;
};

// The same with AdamW's default decay, 0.01.
class AdamWOptions : public AdamOptions {
 public:
  AdamWOptions(double lr = 1e-3) : AdamOptions(lr) { weight_decay_ = 1e-2; }

  using AdamOptions::betas, AdamOptions::eps, AdamOptions::lr, AdamOptions::weight_decay,
      AdamOptions::amsgrad;
  AdamWOptions& lr(double v) { return lr_ = v, *this; }
  AdamWOptions& betas(Betas v) { return betas_ = v, *this; }
  AdamWOptions& eps(double v) { return eps_ = v, *this; }
  AdamWOptions& weight_decay(double v) { return weight_decay_ = v, *this; }
  AdamWOptions& amsgrad(bool v) { return amsgrad_ = v, *this; }

  std::unique_ptr<OptimizerOptions> clone() const override {
    return std::make_unique<AdamWOptions>(*this);
  }
};

// Kingma and Ba 2015: m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;
// w -= lr m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps).
class Adam : public Optimizer {
 public:
  explicit Adam(std::vector<OptimizerParamGroup> groups,
                AdamOptions defaults = AdamOptions(),
                Loc loc = Loc::current());
  explicit Adam(std::vector<Tensor> params,
                AdamOptions defaults = AdamOptions(),
                Loc loc = Loc::current())
      : Adam(std::vector<OptimizerParamGroup>{std::move(params)}, defaults, loc) {}

  using Optimizer::step;
  void step(Loc loc = Loc::current()) override;

 protected:
  Adam(std::vector<OptimizerParamGroup> groups,
       std::unique_ptr<OptimizerOptions> defaults,
       bool decoupled,
       Loc loc);
  std::vector<std::string> state_names() const override {
    return {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"};
  }

 private:
  bool decoupled_ = false;  // weight decay outside the moments
};

// Loshchilov and Hutter 2019: Adam with w -= lr weight_decay w beside the step.
class AdamW final : public Adam {
 public:
  explicit AdamW(std::vector<OptimizerParamGroup> groups,
                 AdamWOptions defaults = AdamWOptions(),
                 Loc loc = Loc::current())
      : Adam(std::move(groups), std::make_unique<AdamWOptions>(defaults), true, loc) {}
  explicit AdamW(std::vector<Tensor> params,
                 AdamWOptions defaults = AdamWOptions(),
                 Loc loc = Loc::current())
      : AdamW(std::vector<OptimizerParamGroup>{std::move(params)}, defaults, loc) {}
};

template <class F> Tensor Optimizer::step(F closure, Loc loc) {
  Tensor loss;
  {
    const AutoGradMode recording(true);
    loss = closure();
  }
  step(loc);
  return loss;
}

}  // namespace taper::optim

namespace taper::nn::utils {

// Scales the gradients so that their common norm is at most max_norm; returns the norm before.
// One pass to measure and one to scale. error_if_nonfinite: throws instead of scaling by NaN.
double clip_grad_norm_(const std::vector<Tensor>& parameters,
                       double max_norm,
                       double norm_type = 2,
                       bool error_if_nonfinite = false,
                       Loc loc = Loc::current());
void clip_grad_value_(const std::vector<Tensor>& parameters,
                      double clip_value,
                      Loc loc = Loc::current());

}  // namespace taper::nn::utils
