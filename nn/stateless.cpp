// Modules without parameters: each calls the function of the same name.
#include "taper/nn/stateless.h"

#include <ostream>

#include "taper/autograd/ops/shape.h"

namespace taper::nn {

Tensor ReLUImpl::forward(const TensorArg& x) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  return functional::relu(*x, options);
}

Tensor ReLU6Impl::forward(const TensorArg& x) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  return functional::relu6(*x, options);
}

Tensor GELUImpl::forward(const TensorArg& x) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  return functional::gelu(*x, options);
}

Tensor LeakyReLUImpl::forward(const TensorArg& x) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  return functional::leaky_relu(*x, options);
}

Tensor ELUImpl::forward(const TensorArg& x) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  return functional::elu(*x, options);
}

Tensor SoftplusImpl::forward(const TensorArg& x) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  return functional::softplus(*x, options);
}

Tensor HardtanhImpl::forward(const TensorArg& x) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  return functional::hardtanh(*x, options);
}

Tensor SoftmaxImpl::forward(const TensorArg& x) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  return functional::softmax(*x, options);
}

Tensor LogSoftmaxImpl::forward(const TensorArg& x) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  return functional::log_softmax(*x, options);
}

Tensor SiLUImpl::forward(const TensorArg& x) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  return functional::silu(*x);
}

Tensor TanhImpl::forward(const TensorArg& x) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  return x->tanh();
}

Tensor SigmoidImpl::forward(const TensorArg& x) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  return x->sigmoid();
}

Tensor LogSigmoidImpl::forward(const TensorArg& x) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  return functional::logsigmoid(*x);
}

Tensor IdentityImpl::forward(const TensorArg& x) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  return *x;
}

Tensor MaxPool2dImpl::forward(const TensorArg& x) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  return functional::max_pool2d(*x, options);
}

Tensor AvgPool2dImpl::forward(const TensorArg& x) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  return functional::avg_pool2d(*x, options);
}

Tensor AdaptiveAvgPool2dImpl::forward(const TensorArg& x) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  return functional::adaptive_avg_pool2d(*x, options);
}

Tensor FlattenImpl::forward(const TensorArg& x) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  return x->flatten(options.start_dim(), options.end_dim());
}

Tensor CrossEntropyLossImpl::forward(const TensorArg& x, const Tensor& target) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  return functional::cross_entropy(*x, target, options);
}

Tensor NLLLossImpl::forward(const TensorArg& x, const Tensor& target) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  return functional::nll_loss(*x, target, options);
}

Tensor MSELossImpl::forward(const TensorArg& x, const Tensor& target) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  return functional::mse_loss(*x, target, options);
}

Tensor L1LossImpl::forward(const TensorArg& x, const Tensor& target) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  return functional::l1_loss(*x, target, options);
}

Tensor SmoothL1LossImpl::forward(const TensorArg& x, const Tensor& target) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  return functional::smooth_l1_loss(*x, target, options);
}

Tensor HuberLossImpl::forward(const TensorArg& x, const Tensor& target) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  return functional::huber_loss(*x, target, options);
}

Tensor BCELossImpl::forward(const TensorArg& x, const Tensor& target) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  return functional::binary_cross_entropy(*x, target, options);
}

Tensor BCEWithLogitsLossImpl::forward(const TensorArg& x, const Tensor& target) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  return functional::binary_cross_entropy_with_logits(*x, target, options);
}

}  // namespace taper::nn
