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

std::shared_ptr<Module> SequentialImpl::clone(std::optional<Device>) const {
  fail(
      "clone: a Sequential forgets the types of its modules; build a second one, then "
      "load_state_dict(first->state_dict())");
}

}  // namespace taper::nn
