// Groups and state of optimizers; gradient clipping.
#include "taper/optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <typeinfo>

#include "taper/autograd/ops/create.h"
#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/reduce.h"

namespace taper::optim {

Optimizer::Optimizer(std::vector<OptimizerParamGroup> groups,
                     std::unique_ptr<OptimizerOptions> defaults,
                     Loc loc)
    : defaults_(std::move(defaults)) {
  for (OptimizerParamGroup& g : groups) add_param_group(std::move(g), loc);
}

void Optimizer::check_new(const std::vector<Tensor>& params) const {
  const auto is_in = [](const Tensor& p, const Tensor* begin, const Tensor* end) {
    return std::any_of(begin, end, [&](const Tensor& q) { return q.is_same(p); });
  };
  for (const Tensor& p : params) {
    TAPER_CHECK(p.is_leaf(), "optimizer: a parameter of shape ", p.sizes(), " was made by ",
                p.grad_fn(), "; only leaves can be optimized");
    bool twice = is_in(p, params.data(), &p);
    for (const OptimizerParamGroup& g : groups_) {
      twice = twice || is_in(p, g.params().data(), g.params().data() + g.params().size());
    }
    TAPER_CHECK(!twice, "optimizer: a parameter of shape ", p.sizes(), " is given twice");
  }
}

void Optimizer::add_param_group(OptimizerParamGroup group, Loc loc) {
  const Call call(loc);
  check_new(group.params());
  if (!group.has_options()) group.set_options(defaults_->clone());
  const OptimizerOptions &given = group.options(), &own = *defaults_;
  TAPER_CHECK(typeid(given) == typeid(own),
              "optimizer: a group came with the options of another optimizer");
  states_.resize(states_.size() + group.params().size());
  groups_.push_back(std::move(group));
}

void Optimizer::add_parameters(const std::vector<Tensor>& params, Loc loc) {
  const Call call(loc);
  TAPER_CHECK(!groups_.empty(), "optimizer: there is no group to add parameters to");
  TAPER_CHECK(groups_.size() == 1, "optimizer: with several groups use add_param_group()");
  check_new(params);
  std::vector<Tensor>& own = groups_[0].params();
  own.insert(own.end(), params.begin(), params.end());
  states_.resize(own.size());
}

void Optimizer::zero_grad(bool set_to_none, Loc loc) {
  const Call call(loc);
  for (const OptimizerParamGroup& g : groups_) {
    for (const Tensor& p : g.params()) clear_grad(p, set_to_none);
  }
}

std::size_t Optimizer::size() const {
  return states_.size();
}

const Tensor& Optimizer::state_tensor(State& state, std::size_t k, const Tensor& param) {
  if (state.tensors.empty()) state.tensors.resize(state_names().size());
  Tensor& t = state.tensors[k];
  if (!t.defined()) t = zeros_like(param.detach());
  else t = t.to(param.device(), param.dtype());
  return t;
}

OrderedDict<std::string, Tensor> Optimizer::state_dict() const {
  OrderedDict<std::string, Tensor> out;
  const std::vector<std::string> names = state_names();
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const State& s = states_[i];
    out.insert(str(i, ".step"), scalar_tensor(static_cast<std::int64_t>(s.step->load()), kInt64));
    for (std::size_t k = 0; k < s.tensors.size(); ++k) {
      if (s.tensors[k].defined()) out.insert(str(i, ".", names[k]), s.tensors[k]);
    }
  }
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    out.insert(str("group", g, ".lr"), scalar_tensor(groups_[g].options().get_lr(), kFloat64));
  }
  return out;
}

void Optimizer::load_state_dict(const OrderedDict<std::string, Tensor>& state, Loc loc) {
  const Call call(loc);
  const std::vector<std::string> names = state_names();
  std::vector<State> fresh(states_.size());
  std::size_t used = 0, i = 0;
  for (const OptimizerParamGroup& g : groups_) {
    for (const Tensor& p : g.params()) {
      State& s = fresh[i];
      const Tensor* step = state.find(str(i, ".step"));
      TAPER_CHECK(step != nullptr, "load_state_dict: the state has no '", i,
                  ".step'; it was saved for other parameters");
      *s.step = static_cast<std::uint64_t>(step->item().to_int());
      ++used;
      for (std::size_t k = 0; k < names.size(); ++k) {
        const Tensor* t = state.find(str(i, ".", names[k]));
        if (t == nullptr) continue;
        TAPER_CHECK(t->sizes() == p.sizes(), "load_state_dict: ", i, ".", names[k], " has shape ",
                    t->sizes(), ", the parameter ", p.sizes());
        state_tensor(s, k, p).copy_(*t);
        ++used;
      }
      ++i;
    }
  }
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const Tensor* lr = state.find(str("group", g, ".lr"));
    TAPER_CHECK(lr != nullptr, "load_state_dict: the state has no 'group", g, ".lr'");
    ++used;
  }
  TAPER_CHECK(used == state.size(), "load_state_dict: the state has ", state.size(),
              " entries, of which ", used, " belong to this optimizer");
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    groups_[g].options().set_lr(state[str("group", g, ".lr")].item().to_double());
  }
  states_ = std::move(fresh);
}

}  // namespace taper::optim

namespace taper::nn::utils {
namespace {

// Those that have elements: there is no largest of none.
std::vector<Tensor> gradients_of(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> grads;
  for (const Tensor& p : parameters) {
    if (p.grad().defined() && p.grad().numel() > 0) grads.push_back(p.grad());
  }
  return grads;
}

}  // namespace

double clip_grad_norm_(const std::vector<Tensor>& parameters,
                       double max_norm,
                       double norm_type,
                       bool error_if_nonfinite,
                       Loc loc) {
  const Call call(loc);
  const NoGradGuard no_grad;
  TAPER_CHECK(max_norm >= 0, "clip_grad_norm_: max_norm must not be negative, got ", max_norm);
  TAPER_CHECK(norm_type > 0, "clip_grad_norm_: norm_type must be positive, got ", norm_type);
  const std::vector<Tensor> grads = gradients_of(parameters);
  double total = 0;
  for (const Tensor& g : grads) {
    const double norm = g.norm(norm_type).item().to_double();
    if (std::isinf(norm_type)) total = norm > total || std::isnan(norm) ? norm : total;
    else total += std::pow(norm, norm_type);
  }
  if (!std::isinf(norm_type)) total = std::pow(total, 1 / norm_type);
  TAPER_CHECK(!error_if_nonfinite || std::isfinite(total), "clip_grad_norm_: the norm is ", total);
  const double scale = max_norm / (total + 1e-6);
  if (scale < 1 || std::isnan(scale)) {
    for (const Tensor& g : grads) g.mul_(scale);
  }
  return total;
}

void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value, Loc loc) {
  const Call call(loc);
  const NoGradGuard no_grad;
  TAPER_CHECK(clip_value >= 0, "clip_grad_value_: clip_value must not be negative, got ",
              clip_value);
  for (const Tensor& g : gradients_of(parameters)) g.clamp_(-clip_value, clip_value);
}

}  // namespace taper::nn::utils
