// The handle's own business: making tensors, reading their facts, describing them.
#include "taper/core/tensor.h"

#include <atomic>

#include "taper/core/stream_backend.h"

namespace taper {
namespace {

std::atomic<DType> default_dtype{DType::kFloat32};

}  // namespace

DType get_default_dtype() {
  return default_dtype.load(std::memory_order_relaxed);
}

void set_default_dtype(DType dtype) {
  TAPER_CHECK(is_floating_point(dtype), "the default dtype must be floating, got ", dtype);
  default_dtype.store(dtype, std::memory_order_relaxed);
}

void TensorImpl::destroy(TensorImpl* impl) {
  if (impl->meta != nullptr) release_autograd_meta(impl->meta);
  delete impl;
}

Tensor make_tensor(const Layout& layout, DType dtype, Device device) {
  std::int64_t bytes = 0;
  TAPER_CHECK(!__builtin_mul_overflow(extent(layout).end, element_size(dtype), &bytes),
              "a tensor of ", layout.shape(), " has more bytes than 64 bits can count");
  Ref<TensorImpl> impl(new TensorImpl);
  impl->storage = Storage::allocate(static_cast<std::size_t>(bytes), device);
  impl->layout = layout;
  impl->dtype = dtype;
  impl->device = device;
  return Tensor(std::move(impl));
}

void Tensor::record_stream(const Stream& stream, Loc loc) const {
  const Call call(loc);
  if (stream.device().is_cuda()) {
    cuda::check_stream(stream);
    TAPER_CHECK(!is_cuda() || device() == stream.device(), "the tensor lies on ", device(),
                " and stream ", stream.id(), " is of ", stream.device(),
                ", which does not reach it; give it a copy, by to()");
  }
  storage()->record_stream(stream);
}

Tensor make_pinned(const Layout& layout, DType dtype) {
  const std::int64_t bytes = extent(layout).end * element_size(dtype);
  return make_tensor(Storage::allocate_pinned(static_cast<std::size_t>(bytes)), layout, dtype);
}

Tensor make_tensor(Ref<Storage> storage, const Layout& layout, DType dtype) {
  Ref<TensorImpl> impl(new TensorImpl);
  impl->device = storage->device();
  impl->storage = std::move(storage);
  impl->layout = layout;
  impl->dtype = dtype;
  return Tensor(std::move(impl));
}

Tensor wrapped_number(const Scalar& value) {
  Tensor out = make_tensor(Layout{}, value.dtype(), kCPU);
  out.impl().wrapped_number = true;
  if (value.is_floating_point()) *static_cast<double*>(out.data_ptr()) = value.to_double();
  else if (value.dtype() == kBool) *static_cast<bool*>(out.data_ptr()) = value.to_int() != 0;
  else *static_cast<std::int64_t*>(out.data_ptr()) = value.to_int();
  return out;
}

void Tensor::fail_dim(std::int64_t dim, const char* function, Loc loc) const {
  const Call call(loc, function);
  taper::fail_dim(dim, sizes());
}

void Tensor::fail_undefined() {
  fail("the tensor is undefined (a default-constructed handle, or a gradient that was never made)");
}

void Tensor::check_dtype_is(DType wanted, Loc loc) const {
  const Call call(loc, "data_ptr");
  TAPER_CHECK(dtype() == wanted, "data_ptr: the tensor holds ", dtype(), ", not ", wanted,
              "; convert with to(dtype) first");
}

std::string Tensor::toString() const {
  if (!defined()) return "UndefinedType";
  const char* device_name = is_cpu() ? "CPU" : is_cuda() ? "CUDA" : "Meta";
  return std::string(device_name) + info(dtype()).torch_name + "Type";
}

std::string Tensor::describe() const {
  if (!defined()) return "undefined tensor: a handle of 8 bytes that points nowhere";
  const Storage& s = *storage();
  std::string order = is_contiguous() ? "contiguous" : is_dense(layout()) ? "dense" : "strided";
  if (is_contiguous(MemoryFormat::kChannelsLast)) order += ", channels_last";
  std::string text = str("tensor ", dtype(), " ", sizes(), " strides ", strides(), " offset ",
                         storage_offset(), ", ", order, ", on ", device(), "\n");
  text += str("  handle  ", sizeof(Tensor), " bytes; ", use_count(), " handles to this impl\n");
  text += str("  impl    ", sizeof(TensorImpl), " bytes");
  if (requires_grad()) text += is_leaf() ? ", leaf, requires grad" : str(", made by ", grad_fn());
  if (is_view()) text += ", a view";
  text += str("\n  storage ", sizeof(Storage), " bytes + ", s.nbytes(), " bytes of elements, ",
              storage().use_count(), " users, version ", version());
  for (const Mutation& m : s.last_writers()) {
    text += str("\n          version ", m.version, " by ", m.op, " at ", to_string(m.loc));
  }
  return text;
}

}  // namespace taper
