// Functions that make tensors from nothing, from numbers, or from foreign memory.
#include "taper/autograd/ops/create.h"

#include <cmath>

#include "taper/autograd/op.h"

namespace taper {
namespace {

Tensor finish(Tensor t, const TensorOptions& options) {
  if (InferenceMode::is_enabled()) t.impl().inference = true;
  if (options.requires_grad()) t.requires_grad_();
  return t;
}

Tensor raw(IntArrayRef sizes, const TensorOptions& options) {
  return make_tensor(contiguous_layout(sizes, options.memory_format()), options.dtype(),
                     options.device());
}

void fill(const Tensor& t, const Scalar& value) {
  const Exec exec(t.device());
  kernels_for(t.device()).fill(exec, t.as<Out>(), value);
}

// options.requires_grad() is refused for integers by requires_grad_, which names the line.
Tensor filled(IntArrayRef sizes, const Scalar& value, const TensorOptions& options) {
  const Tensor t = raw(sizes, options);
  fill(t, value);
  return finish(t, options);
}

TensorOptions like(const Tensor& t, const TensorOptions& options) {
  TensorOptions o = options;
  if (!options.has_dtype()) o = o.dtype(t.dtype());
  if (!options.has_device()) o = o.device(t.device());
  return o;
}

Tensor raw_like(const Tensor& t, const TensorOptions& options) {
  const TensorOptions o = like(t, options);
  return make_tensor(dense_like(t.layout()), o.dtype(), o.device());
}

}  // namespace

Tensor empty(IntArrayRef sizes, TensorOptions options, Loc loc) {
  const Call call(loc);
  return finish(raw(sizes, options), options);
}

Tensor empty_strided(IntArrayRef sizes, IntArrayRef strides, TensorOptions options, Loc loc) {
  const Call call(loc);
  TAPER_CHECK(sizes.size() == strides.size(), "empty_strided: ", sizes, " has ", sizes.size(),
              " dims but ", strides, " has ", strides.size());
  Layout layout = contiguous_layout(sizes);
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    TAPER_CHECK(strides[d] >= 0, "empty_strided: strides must not be negative, got ", strides);
    layout.strides[d] = strides[d];
  }
  return finish(make_tensor(layout, options.dtype(), options.device()), options);
}

Tensor zeros(IntArrayRef sizes, TensorOptions options, Loc loc) {
  const Call call(loc);
  return filled(sizes, 0, options);
}

Tensor ones(IntArrayRef sizes, TensorOptions options, Loc loc) {
  const Call call(loc);
  return filled(sizes, 1, options);
}

Tensor full(IntArrayRef sizes, Scalar value, TensorOptions options, Loc loc) {
  const Call call(loc);
  if (!options.has_dtype() && !value.is_floating_point()) options = options.dtype(value.dtype());
  return filled(sizes, value, options);
}

Tensor scalar_tensor(Scalar value, TensorOptions options, Loc loc) {
  const Call call(loc);
  return filled({}, value, options);
}

Tensor eye(std::int64_t n, TensorOptions options, Loc loc) {
  return eye(n, n, options, loc);
}

Tensor eye(std::int64_t rows, std::int64_t columns, TensorOptions options, Loc loc) {
  const Call call(loc);
  const Tensor t = filled({rows, columns}, 0, options.requires_grad(false));
  fill(t.detach().diagonal(), 1);
  return finish(t, options);
}

namespace {

std::int64_t arange_length(const Scalar& start, const Scalar& end, const Scalar& step) {
  const double s = step.to_double();
  TAPER_CHECK(s != 0 && std::isfinite(s), "arange: the step must be a finite number other than 0");
  const double span = (end.to_double() - start.to_double()) / s;
  TAPER_CHECK(std::isfinite(span) && span >= 0, "arange: ", end, " does not lie from ", start,
              " in the direction of step ", step);
  TAPER_CHECK(span < 0x1p62, "arange: ", span, " numbers are more than 64 bits can count");
  return static_cast<std::int64_t>(std::ceil(span));
}

}  // namespace

Tensor arange(Scalar end, TensorOptions options, Loc loc) {
  return arange(0, end, 1, options, loc);
}

Tensor arange(Scalar start, Scalar end, TensorOptions options, Loc loc) {
  return arange(start, end, 1, options, loc);
}

Tensor arange(Scalar start, Scalar end, Scalar step, TensorOptions options, Loc loc) {
  const Call call(loc);
  const bool real =
      start.is_floating_point() || end.is_floating_point() || step.is_floating_point();
  if (!options.has_dtype() && !real) options = options.dtype(kInt64);
  if (is_integral(options.dtype(), true)) {
    for (Scalar* s : {&start, &end, &step}) *s = s->to<std::int64_t>();
  }
  const Tensor t = raw({arange_length(start, end, step)}, options);
  const Exec exec(t.device());
  kernels_for(t.device()).arange(exec, t.as<Out>(), start, step);
  return finish(t, options);
}

Tensor linspace(Scalar start, Scalar end, std::int64_t steps, TensorOptions options, Loc loc) {
  const Call call(loc);
  TAPER_CHECK(steps >= 0, "linspace: the number of steps must not be negative, got ", steps);
  const double a = start.to_double(), b = end.to_double();
  const double step = steps > 1 ? (b - a) / static_cast<double>(steps - 1) : 0;
  const Tensor t = raw({steps}, options);
  const Exec exec(t.device());
  const Kernels& k = kernels_for(t.device());
  // Each half counts from its own end, so that both ends are exact and the middle symmetric.
  const std::int64_t half = steps / 2;
  const Layout front = slice_layout(t.layout(), 0, 0, steps - half, 1);
  k.arange(exec, make_tensor(t.storage(), front, t.dtype()).as<Out>(), a, step);
  if (half > 0) {
    const Layout back = slice_layout(t.layout(), 0, -1, steps - half - 1, -1);
    k.arange(exec, make_tensor(t.storage(), back, t.dtype()).as<Out>(), b, -step);
  }
  return finish(t, options);
}

Tensor empty_like(const TensorArg& t, TensorOptions options) {
  const Call call(t.loc);
  return finish(raw_like(*t, options), options);
}

Tensor zeros_like(const TensorArg& t, TensorOptions options) {
  const Call call(t.loc);
  return full_like(*t, 0, options);
}

Tensor ones_like(const TensorArg& t, TensorOptions options) {
  const Call call(t.loc);
  return full_like(*t, 1, options);
}

Tensor full_like(const TensorArg& t, Scalar value, TensorOptions options) {
  const Call call(t.loc);
  const Tensor out = raw_like(*t, options);
  fill(out, value);
  return finish(out, options);
}

namespace {

// What x.new_zeros(sizes, options) makes: x's dtype and device where the options are silent.
TensorOptions options_beside(const Tensor& x, TensorOptions options) {
  if (!options.has_dtype()) options = options.dtype(x.dtype());
  return options.has_device() ? options : options.device(x.device());
}

}  // namespace

Tensor Tensor::new_empty(IntArrayRef sizes, TensorOptions options, Loc loc) const {
  const Call call(loc);
  return empty(sizes, options_beside(*this, options), loc);
}

Tensor Tensor::new_zeros(IntArrayRef sizes, TensorOptions options, Loc loc) const {
  const Call call(loc);
  return zeros(sizes, options_beside(*this, options), loc);
}

Tensor Tensor::new_ones(IntArrayRef sizes, TensorOptions options, Loc loc) const {
  const Call call(loc);
  return ones(sizes, options_beside(*this, options), loc);
}

Tensor Tensor::new_full(IntArrayRef sizes, Scalar value, TensorOptions options, Loc loc) const {
  const Call call(loc);
  return full(sizes, value, options_beside(*this, options), loc);
}

NestedNumbers::NestedNumbers(std::initializer_list<NestedNumbers> list) {
  sizes_.push_back(static_cast<std::int64_t>(list.size()));
  if (list.size() == 0) return;
  const NestedNumbers& first = *list.begin();
  for (const std::int64_t s : first.sizes()) sizes_.push_back(s);
  bool all_bool = true, all_integer = true;
  for (const NestedNumbers& row : list) {
    TAPER_CHECK(row.sizes() == first.sizes(), "tensor: the rows have shapes ", first.sizes(),
                " and ", row.sizes(), "; they must be equal");
    values_.insert(values_.end(), row.values_.begin(), row.values_.end());
    all_bool = all_bool && row.dtype_ == kBool;
    all_integer = all_integer && row.dtype_.has_value();
  }
  if (all_bool) dtype_ = kBool;
  else if (all_integer) dtype_ = kInt64;
}

Tensor tensor(const NestedNumbers& numbers, TensorOptions options, Loc loc) {
  const Call call(loc);
  const DType dtype = options.has_dtype() ? options.dtype() : numbers.dtype();
  const Tensor host = make_tensor(contiguous_layout(numbers.sizes()), dtype, kCPU);
  visit_dtype(dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    T* out = static_cast<T*>(host.data_ptr());
    for (const Scalar& s : numbers.values()) *out++ = s.to<T>();
  });
  const bool moves = options.has_device() && !options.device().is_cpu();
  return finish(moves ? host.to(options.device()) : host, options);
}

namespace {

class SharedOwner final : public MemoryOwner {
 public:
  explicit SharedOwner(std::shared_ptr<void> kept) : kept_(std::move(kept)) {}

 private:
  std::shared_ptr<void> kept_;
};

}  // namespace

Tensor from_blob(void* data, IntArrayRef sizes, TensorOptions options, Loc loc) {
  const Call call(loc);
  return from_blob(data, sizes, contiguous_layout(sizes).steps(), nullptr, options, loc);
}

Tensor from_blob(void* data,
                 IntArrayRef sizes,
                 IntArrayRef strides,
                 std::shared_ptr<void> owner,
                 TensorOptions options,
                 Loc loc) {
  const Call call(loc);
  Layout layout = contiguous_layout(sizes);
  TAPER_CHECK(sizes.size() == strides.size(), "from_blob: ", sizes, " has ", sizes.size(),
              " dims but ", strides, " has ", strides.size());
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    TAPER_CHECK(strides[d] >= 0, "from_blob: strides must not be negative, got ", strides);
    layout.strides[d] = strides[d];
  }
  TAPER_CHECK(data != nullptr || layout.numel() == 0, "from_blob: the address is null");
  const auto bytes = static_cast<std::size_t>(extent(layout).end * element_size(options.dtype()));
  auto* keeper = owner == nullptr ? nullptr : new SharedOwner(std::move(owner));
  return finish(
      make_tensor(Storage::borrow(data, bytes, options.device(), keeper), layout, options.dtype()),
      options);
}

}  // namespace taper
