// One step of SGD and Adam: all parameters of a group on one device and dtype in one kernel call.
#include <algorithm>

#include "taper/autograd/grad_mode.h"
#include "taper/core/kernels.h"
#include "taper/core/memory.h"
#include "taper/optim/optimizer.h"

namespace taper::optim {
namespace {

// A parameter that takes part in this step.
struct Work {
  std::size_t index;  // of its state
  Tensor param, grad;
};

void check_gradient(const Tensor& p) {
  TAPER_CHECK(p.grad().sizes() == p.sizes() && p.grad().dtype() == p.dtype() &&
                  p.grad().device() == p.device(),
              "a parameter is ", p.dtype(), " ", p.sizes(), " on ", p.device(), ", its gradient ",
              p.grad().dtype(), " ", p.grad().sizes(), " on ", p.grad().device());
}

// Calls run(works) for each run of neighbours that share a device.
template <class Run> void for_each_device(const std::vector<Work>& works, Run run) {
  for (std::size_t begin = 0; begin < works.size();) {
    std::size_t end = begin + 1;
    while (end < works.size() && works[end].param.device() == works[begin].param.device()) ++end;
    run(ArrayRef<Work>(works.data() + begin, end - begin));
    begin = end;
  }
}

std::vector<Work> works_of(const OptimizerParamGroup& group, std::size_t first_index) {
  std::vector<Work> works;
  works.reserve(group.params().size());
  for (std::size_t i = 0; i < group.params().size(); ++i) {
    const Tensor& p = group.params()[i];
    if (!p.grad().defined()) continue;
    check_gradient(p);
    works.push_back({first_index + i, p, p.grad()});
  }
  return works;
}

// One more step. A graph that captures it counts on at each replay.
Count count_step(const std::shared_ptr<ReplayCount>& steps, Device device) {
  const MovedCount moved = device.is_cuda() ? moved_since_capture(device, steps) : MovedCount{};
  return {++*steps, moved.at};
}

// The line of the step, its name in errors, and no recording.
class Step {
 public:
  Step(const char* name, const Loc& loc) : call_(loc), name_(name), kept_(call_site.op) {
    call_site.op = name;
  }

  ~Step() { call_site.op = kept_; }

  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  void wrote(ArrayRef<Work> works) {
    for (const Work& w : works) w.param.storage()->note_write(name_);
    const Device device = works[0].param.device();
    if (std::find(devices_.begin(), devices_.end(), device) == devices_.end())
      devices_.push_back(device);
  }

  // All is written: for the allocators too a step ends here.
  void finish() const {
    for (const Device device : devices_) memory::end_step(device);
  }

 private:
  Call call_;
  NoGradGuard no_grad_;
  const char* name_;
  const char* kept_;
  SmallVector<Device, 2> devices_;
};

}  // namespace

SGD::SGD(std::vector<OptimizerParamGroup> groups, SGDOptions defaults, Loc loc)
    : Optimizer(std::move(groups), defaults.clone(), loc) {
  const Call call(loc);
  TAPER_CHECK(defaults.lr() >= 0 && defaults.momentum() >= 0 && defaults.weight_decay() >= 0,
              "SGD: lr, momentum and weight_decay must not be negative, got ", defaults.lr(), ", ",
              defaults.momentum(), " and ", defaults.weight_decay());
  TAPER_CHECK(!defaults.nesterov() || (defaults.momentum() > 0 && defaults.dampening() == 0),
              "SGD: nesterov needs a momentum and no dampening, got ", defaults.momentum(), " and ",
              defaults.dampening());
}

void SGD::step(Loc loc) {
  Step step("SGD", loc);
  std::size_t first_index = 0;
  for (const OptimizerParamGroup& group : param_groups()) {
    const auto& o = static_cast<const SGDOptions&>(group.options());
    const SgdHyper hyper{o.lr(), o.momentum(), o.dampening(), o.weight_decay(), o.nesterov()};
    for_each_device(works_of(group, first_index), [&](ArrayRef<Work> works) {
      std::vector<SgdParam> params;
      params.reserve(works.size());
      for (const Work& w : works) {
        State& s = state_of(w.index);
        SgdParam p;
        p.param = w.param.as<InOut>();
        p.grad = w.grad.as<In>();
        count_step(s.step, w.param.device());
        p.first = s.tensors.empty();  // momentum may begin at any step
        if (hyper.momentum != 0) p.momentum_buffer = state_tensor(s, 0, w.param).as<InOut>();
        params.push_back(p);
      }
      const Device device = works[0].param.device();
      kernels_for(device).sgd(Exec(device), params, hyper);
      step.wrote(works);
    });
    first_index += group.params().size();
  }
  step.finish();
}

Adam::Adam(std::vector<OptimizerParamGroup> groups, AdamOptions defaults, Loc loc)
    : Adam(std::move(groups), std::make_unique<AdamOptions>(defaults), false, loc) {}

Adam::Adam(std::vector<OptimizerParamGroup> groups,
           std::unique_ptr<OptimizerOptions> defaults,
           bool decoupled,
           Loc loc)
    : Optimizer(std::move(groups), std::move(defaults), loc), decoupled_(decoupled) {
  const Call call(loc);
  const auto& o = static_cast<const AdamOptions&>(this->defaults());
  const auto [beta1, beta2] = o.betas();
  const char* name = decoupled ? "AdamW" : "Adam";
  TAPER_CHECK(o.lr() >= 0 && o.eps() >= 0 && o.weight_decay() >= 0, name,
              ": lr, eps and weight_decay must not be negative, got ", o.lr(), ", ", o.eps(),
              " and ", o.weight_decay());
  TAPER_CHECK(beta1 >= 0 && beta1 < 1 && beta2 >= 0 && beta2 < 1, name,
              ": betas must lie in [0, 1), got ", beta1, " and ", beta2);
}

void Adam::step(Loc loc) {
  Step step(decoupled_ ? "AdamW" : "Adam", loc);
  std::size_t first_index = 0;
  for (const OptimizerParamGroup& group : param_groups()) {
    const auto& o = static_cast<const AdamOptions&>(group.options());
    const auto [beta1, beta2] = o.betas();
    const AdamHyper hyper{o.lr(), beta1, beta2, o.eps(), o.weight_decay(), decoupled_};
    for_each_device(works_of(group, first_index), [&](ArrayRef<Work> works) {
      std::vector<AdamParam> params;
      params.reserve(works.size());
      for (const Work& w : works) {
        State& s = state_of(w.index);
        AdamParam p;
        p.param = w.param.as<InOut>();
        p.grad = w.grad.as<In>();
        p.exp_avg = state_tensor(s, 0, w.param).as<InOut>();
        p.exp_avg_sq = state_tensor(s, 1, w.param).as<InOut>();
        if (o.amsgrad()) p.max_exp_avg_sq = state_tensor(s, 2, w.param).as<InOut>();
        p.step = count_step(s.step, w.param.device());
        params.push_back(p);
      }
      const Device device = works[0].param.device();
      kernels_for(device).adam(Exec(device), params, hyper);
      step.wrote(works);
    });
    first_index += group.params().size();
  }
  step.finish();
}

}  // namespace taper::optim
