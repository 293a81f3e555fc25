// Modules made of modules.
#include "taper/nn/container.h"

namespace taper::nn {

Tensor SequentialImpl::forward(const TensorArg& x) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  TAPER_CHECK(!modules_.empty(), "Sequential: there is no module in it");
  Tensor y = *x;
  for (const AnyModule& m : modules_) y = m.forward(y);
  return y;
}

std::shared_ptr<Module> SequentialImpl::clone(std::optional<Device> device) const {
  const auto copy = std::make_shared<SequentialImpl>();
  const auto names = named_children().keys();
  for (std::size_t i = 0; i < modules_.size(); ++i) {
    copy->push_back(names[i], modules_[i].clone(device));
  }
  copy->copy_from(*this, device);
  return copy;
}

std::shared_ptr<Module> ModuleListImpl::clone(std::optional<Device> device) const {
  const auto copy = std::make_shared<ModuleListImpl>();
  for (const auto& module : list_) copy->push_back(module->clone(device));
  copy->copy_from(*this, device);
  return copy;
}

}  // namespace taper::nn
