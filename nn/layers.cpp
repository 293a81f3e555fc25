// Modules with parameters: how they begin, and what they compute.
#include "taper/nn/layers.h"

#include <cmath>
#include <ostream>

#include "taper/autograd/ops/create.h"
#include "taper/autograd/ops/matmul.h"

namespace taper::nn {
namespace {

const char* truth(bool b) {
  return b ? "true" : "false";
}

// Weight and bias uniform in +-1 / sqrt(fan in); zero when there is nothing to multiply.
void fill_by_fan_in(const Tensor& weight, const Tensor& bias) {
  const auto [fan_in, fan_out] = init::calculate_fan_in_and_fan_out(weight);
  const double bound = fan_in == 0 ? 0 : 1 / std::sqrt(fan_in);
  init::uniform_(weight, -bound, bound);
  if (bias.defined()) init::uniform_(bias, -bound, bound);
}

// A weight that nobody sees until reset_parameters has filled it. A constructor does not know the
// user's line; ours would mislead.
Tensor raw(IntArrayRef sizes) {
  return empty(sizes, {}, Loc());
}

const char* name_of(Activation activation) {
  switch (activation) {
    case Activation::kNone: return "none";
    case Activation::kRelu: return "relu";
    case Activation::kGelu: return "gelu";
    case Activation::kGeluTanh: return "gelu_tanh";
  }
  return "";
}

}  // namespace

LinearImpl::LinearImpl(const LinearOptions& options_in) : options(options_in) {
  TAPER_CHECK(options.in_features() >= 0 && options.out_features() >= 0,
              "Linear: the numbers of features must not be negative, got ", options.in_features(),
              " and ", options.out_features());
  reset();
}

void LinearImpl::reset() {
  weight = register_parameter("weight", raw({options.out_features(), options.in_features()}));
  bias = register_parameter("bias", options.bias() ? raw({options.out_features()}) : Tensor());
  reset_parameters();
}

void LinearImpl::reset_parameters() {
  fill_by_fan_in(weight, bias);
}

void LinearImpl::pretty_print(std::ostream& out) const {
  out << "Linear(in_features=" << options.in_features()
      << ", out_features=" << options.out_features() << ", bias=" << truth(options.bias());
  if (options.activation() != Activation::kNone)
    out << ", activation=" << name_of(options.activation());
  out << ')';
}

Tensor LinearImpl::forward(const TensorArg& x) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  return taper::linear(*x, weight, bias, options.activation());
}

Conv2dImpl::Conv2dImpl(const Conv2dOptions& options_in) : options(options_in) {
  TAPER_CHECK(options.in_channels() >= 0 && options.out_channels() >= 0,
              "Conv2d: the numbers of channels must not be negative, got ", options.in_channels(),
              " and ", options.out_channels());
  TAPER_CHECK(options.groups() > 0 && options.in_channels() % options.groups() == 0 &&
                  options.out_channels() % options.groups() == 0,
              "Conv2d: ", options.in_channels(), " and ", options.out_channels(),
              " channels must be multiples of the ", options.groups(), " groups");
  reset();
}

void Conv2dImpl::reset() {
  weight = register_parameter("weight",
                              raw({options.out_channels(), options.in_channels() / options.groups(),
                                   options.kernel_size()[0], options.kernel_size()[1]}));
  bias = register_parameter("bias", options.bias() ? raw({options.out_channels()}) : Tensor());
  reset_parameters();
}

void Conv2dImpl::reset_parameters() {
  fill_by_fan_in(weight, bias);
}

void Conv2dImpl::pretty_print(std::ostream& out) const {
  const auto differs = [](const ExpandingArray<2>& a, std::int64_t usual) {
    return a[0] != usual || a[1] != usual;
  };
  out << "Conv2d(" << options.in_channels() << ", " << options.out_channels()
      << ", kernel_size=" << listed(options.kernel_size())
      << ", stride=" << listed(options.stride());
  if (options.padding().rule() != PaddingRule::kNumbers) {
    out << ", padding=" << (options.padding().rule() == PaddingRule::kSame ? "'same'" : "'valid'");
  } else if (differs(options.padding().numbers(), 0)) {
    out << ", padding=" << listed(options.padding().numbers());
  }
  if (differs(options.dilation(), 1)) out << ", dilation=" << listed(options.dilation());
  if (options.groups() != 1) out << ", groups=" << options.groups();
  if (!options.bias()) out << ", bias=false";
  out << ')';
}

Tensor Conv2dImpl::forward(const TensorArg& x) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  return functional::conv2d(*x, weight,
                            functional::Conv2dFuncOptions()
                                .bias(bias)
                                .stride(options.stride())
                                .padding(options.padding())
                                .dilation(options.dilation())
                                .groups(options.groups()));
}

EmbeddingImpl::EmbeddingImpl(const EmbeddingOptions& options_in) : options(options_in) {
  TAPER_CHECK(options.num_embeddings() >= 0 && options.embedding_dim() >= 0,
              "Embedding: the numbers of rows and of features must not be negative, got ",
              options.num_embeddings(), " and ", options.embedding_dim());
  if (const auto pad = options.padding_idx()) {
    const std::int64_t n = options.num_embeddings();
    TAPER_CHECK(*pad >= -n && *pad < n, "Embedding: padding_idx ", *pad, " is out of range for ", n,
                " rows");
    options.padding_idx(*pad < 0 ? *pad + n : *pad);
  }
  reset();
}

void EmbeddingImpl::reset() {
  weight = register_parameter("weight", raw({options.num_embeddings(), options.embedding_dim()}));
  reset_parameters();
}

void EmbeddingImpl::reset_parameters() {
  init::normal_(weight);
  if (options.padding_idx()) init::zeros_(weight.detach().select(0, *options.padding_idx()));
}

void EmbeddingImpl::pretty_print(std::ostream& out) const {
  out << "Embedding(num_embeddings=" << options.num_embeddings()
      << ", embedding_dim=" << options.embedding_dim();
  if (options.padding_idx()) out << ", padding_idx=" << *options.padding_idx();
  out << ')';
}

Tensor EmbeddingImpl::forward(const TensorArg& index) {
  const Call call(index.loc);
  const ModuleScope scope(*this);
  return functional::embedding(
      *index, weight, functional::EmbeddingFuncOptions().padding_idx(options.padding_idx()));
}

LayerNormImpl::LayerNormImpl(LayerNormOptions options_in) : options(std::move(options_in)) {
  reset();
}

void LayerNormImpl::reset() {
  const bool affine = options.elementwise_affine();
  weight = register_parameter("weight", affine ? raw(options.normalized_shape()) : Tensor());
  bias = register_parameter("bias", affine ? raw(options.normalized_shape()) : Tensor());
  reset_parameters();
}

void LayerNormImpl::reset_parameters() {
  if (!options.elementwise_affine()) return;
  init::ones_(weight);
  init::zeros_(bias);
}

void LayerNormImpl::pretty_print(std::ostream& out) const {
  out << "LayerNorm(" << listed(options.normalized_shape()) << ", eps=" << str(options.eps())
      << ", elementwise_affine=" << truth(options.elementwise_affine()) << ')';
}

Tensor LayerNormImpl::forward(const TensorArg& x) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  return functional::layer_norm(*x, functional::LayerNormFuncOptions(options.normalized_shape())
                                        .weight(weight)
                                        .bias(bias)
                                        .eps(options.eps()));
}

template <class D>
BatchNormImplBase<D>::BatchNormImplBase(const BatchNormOptions& options_in) : options(options_in) {
  BatchNormImplBase::reset();
}

template <class D> void BatchNormImplBase<D>::reset() {
  const std::int64_t n = options.num_features();
  weight = this->register_parameter("weight", options.affine() ? raw({n}) : Tensor());
  bias = this->register_parameter("bias", options.affine() ? raw({n}) : Tensor());
  const bool track = options.track_running_stats();
  running_mean = this->register_buffer("running_mean", track ? raw({n}) : Tensor());
  running_var = this->register_buffer("running_var", track ? raw({n}) : Tensor());
  num_batches_tracked =
      this->register_buffer("num_batches_tracked", track ? scalar_tensor(0, kInt64) : Tensor());
  reset_parameters();
}

template <class D> void BatchNormImplBase<D>::reset_running_stats() {
  if (!options.track_running_stats()) return;
  running_mean.zero_();
  running_var.fill_(1);
  num_batches_tracked.zero_();
}

template <class D> void BatchNormImplBase<D>::reset_parameters() {
  reset_running_stats();
  if (!options.affine()) return;
  init::ones_(weight);
  init::zeros_(bias);
}

template <class D> void BatchNormImplBase<D>::pretty_print(std::ostream& out) const {
  out << this->name() << '(' << options.num_features() << ", eps=" << str(options.eps())
      << ", momentum=" << (options.momentum() ? str(*options.momentum()) : "None")
      << ", affine=" << truth(options.affine())
      << ", track_running_stats=" << truth(options.track_running_stats()) << ')';
}

template <class D> Tensor BatchNormImplBase<D>::normalised(const Tensor& x) {
  const bool track = this->is_training() && options.track_running_stats();
  double momentum = options.momentum().value_or(0);
  if (track && !options.momentum()) momentum = 1 / (num_batches_tracked.item<double>() + 1);
  const Tensor y =
      functional::batch_norm(x, running_mean, running_var,
                             functional::BatchNormFuncOptions()
                                 .weight(weight)
                                 .bias(bias)
                                 .training(this->is_training() || !options.track_running_stats())
                                 .momentum(momentum)
                                 .eps(options.eps()));
  if (track) num_batches_tracked.add_(1);
  return y;
}

template class BatchNormImplBase<BatchNorm1dImpl>;
template class BatchNormImplBase<BatchNorm2dImpl>;

Tensor BatchNorm1dImpl::forward(const TensorArg& x) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  TAPER_CHECK((x->dim() == 2 || x->dim() == 3) && x->size(1) == options.num_features(),
              "BatchNorm1d: expected (N, ", options.num_features(), ") or (N, ",
              options.num_features(), ", L), got ", x->sizes());
  return normalised(*x);
}

Tensor BatchNorm2dImpl::forward(const TensorArg& x) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  TAPER_CHECK(x->dim() == 4 && x->size(1) == options.num_features(), "BatchNorm2d: expected (N, ",
              options.num_features(), ", H, W), got ", x->sizes());
  return normalised(*x);
}

namespace {

void check_dropout(const char* name, const DropoutOptions& o) {
  TAPER_CHECK(o.p() >= 0 && o.p() <= 1, name, ": p must lie in [0, 1], got ", o.p());
}

void print_dropout(std::ostream& out, const char* name, const DropoutOptions& o) {
  out << name << "(p=" << str(o.p()) << ", inplace=" << truth(o.inplace()) << ')';
}

functional::DropoutFuncOptions dropout_options(const DropoutOptions& o, bool training) {
  return functional::DropoutFuncOptions().p(o.p()).training(training).inplace(o.inplace());
}

}  // namespace

DropoutImpl::DropoutImpl(const DropoutOptions& options_in) : options(options_in) {
  check_dropout("Dropout", options);
}

void DropoutImpl::pretty_print(std::ostream& out) const {
  print_dropout(out, "Dropout", options);
}

Tensor DropoutImpl::forward(const TensorArg& x) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  return functional::dropout(*x, dropout_options(options, is_training()));
}

Dropout2dImpl::Dropout2dImpl(const Dropout2dOptions& options_in) : options(options_in) {
  check_dropout("Dropout2d", options);
}

void Dropout2dImpl::pretty_print(std::ostream& out) const {
  print_dropout(out, "Dropout2d", options);
}

Tensor Dropout2dImpl::forward(const TensorArg& x) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  return functional::dropout2d(*x, dropout_options(options, is_training()));
}

}  // namespace taper::nn
