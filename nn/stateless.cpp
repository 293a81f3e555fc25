// Modules without parameters: each calls the function of the same name.
#include "taper/nn/stateless.h"

#include <ostream>

#include "taper/autograd/ops/shape.h"

namespace taper::nn {
namespace {

template <class Options> const char* inplace(const Options& options) {
  return options.inplace() ? ", inplace=true" : "";
}

}  // namespace

void ReLUImpl::pretty_print(std::ostream& out) const {
  out << "ReLU(" << (options.inplace() ? "inplace=true" : "") << ')';
}

Tensor ReLUImpl::forward(const TensorArg& x) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  return functional::relu(*x, options);
}

void ReLU6Impl::pretty_print(std::ostream& out) const {
  out << "ReLU6(" << (options.inplace() ? "inplace=true" : "") << ')';
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

void LeakyReLUImpl::pretty_print(std::ostream& out) const {
  out << "LeakyReLU(negative_slope=" << str(options.negative_slope()) << inplace(options) << ')';
}

Tensor LeakyReLUImpl::forward(const TensorArg& x) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  return functional::leaky_relu(*x, options);
}

void ELUImpl::pretty_print(std::ostream& out) const {
  out << "ELU(alpha=" << str(options.alpha()) << inplace(options) << ')';
}

Tensor ELUImpl::forward(const TensorArg& x) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  return functional::elu(*x, options);
}

void SoftplusImpl::pretty_print(std::ostream& out) const {
  out << "Softplus(beta=" << str(options.beta()) << ", threshold=" << str(options.threshold())
      << ')';
}

Tensor SoftplusImpl::forward(const TensorArg& x) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  return functional::softplus(*x, options);
}

void HardtanhImpl::pretty_print(std::ostream& out) const {
  out << "Hardtanh(min_val=" << str(options.min_val()) << ", max_val=" << str(options.max_val())
      << inplace(options) << ')';
}

Tensor HardtanhImpl::forward(const TensorArg& x) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  return functional::hardtanh(*x, options);
}

void SoftmaxImpl::pretty_print(std::ostream& out) const {
  out << "Softmax(dim=" << options.dim() << ')';
}

Tensor SoftmaxImpl::forward(const TensorArg& x) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  return functional::softmax(*x, options);
}

void LogSoftmaxImpl::pretty_print(std::ostream& out) const {
  out << "LogSoftmax(dim=" << options.dim() << ')';
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

void MaxPool2dImpl::pretty_print(std::ostream& out) const {
  out << "MaxPool2d(kernel_size=" << listed(options.kernel_size())
      << ", stride=" << listed(options.stride()) << ", padding=" << listed(options.padding())
      << ", dilation=" << listed(options.dilation()) << ", ceil_mode=" << str(options.ceil_mode())
      << ')';
}

Tensor MaxPool2dImpl::forward(const TensorArg& x) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  return functional::max_pool2d(*x, options);
}

void AvgPool2dImpl::pretty_print(std::ostream& out) const {
  out << "AvgPool2d(kernel_size=" << listed(options.kernel_size())
      << ", stride=" << listed(options.stride()) << ", padding=" << listed(options.padding())
      << ')';
}

Tensor AvgPool2dImpl::forward(const TensorArg& x) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  return functional::avg_pool2d(*x, options);
}

void AdaptiveAvgPool2dImpl::pretty_print(std::ostream& out) const {
  out << "AdaptiveAvgPool2d(output_size=" << listed(options.output_size()) << ')';
}

Tensor AdaptiveAvgPool2dImpl::forward(const TensorArg& x) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  return functional::adaptive_avg_pool2d(*x, options);
}

void FlattenImpl::pretty_print(std::ostream& out) const {
  out << "Flatten(start_dim=" << options.start_dim() << ", end_dim=" << options.end_dim() << ')';
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
