// Tensor: a counted handle to {storage, layout, dtype, device, autograd record}, and every method.
#pragma once
#include <iosfwd>
#include <optional>
#include <tuple>
#include <vector>

#include "taper/core/base/scalar.h"
#include "taper/core/exec.h"
#include "taper/core/storage.h"
#include "taper/core/tensor_options.h"

namespace taper {

using Loc = SourceLoc;

class Tensor;
class TensorArg;
struct TensorIndex;
struct IndexArg;
struct AutogradMeta;  // defined by autograd/meta.h; core only carries it
class Hook;
template <class T, std::size_t N> class TensorAccessor;

// What a handle points to. Immutable but for in-place metadata changes (requires_grad_, detach_).
struct TensorImpl : RefCounted {
  Ref<Storage> storage;
  Layout layout;
  DType dtype = DType::kFloat32;
  Device device;
  bool wrapped_number = false;   // made from a C++ number: takes part in promotion as numbers do
  bool inference = false;        // made under inference_mode: autograd refuses it
  std::uint32_t cut = 0;         // where the path of its gradient ended, see autograd/lens/cuts.h
  AutogradMeta* meta = nullptr;  // owned; null until autograd has something to say

  static void destroy(TensorImpl* impl);
};

// Frees an AutogradMeta; autograd/ defines it.
void release_autograd_meta(AutogradMeta* meta) noexcept;

// A path of gradients ends at item(); autograd/ writes it down.
void note_item(const Tensor& t);

// A tensor handle. Copying a handle shares the tensor; clone() copies elements.
// Handles follow shared_ptr's rules across threads; concurrent writes to elements are the user's.
// Methods take their caller's line as a last, defaulted argument: errors and the tape name it.
class Tensor {
 public:
  Tensor() = default;

  explicit Tensor(Ref<TensorImpl> impl) : impl_(std::move(impl)) {}

  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) noexcept = default;
  ~Tensor() = default;

  // On a variable, assignment rebinds the handle. On what a call returned (x[0] = y) it writes
  // the elements, as in LibTorch.
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & noexcept = default;
  Tensor& operator=(const TensorArg& value) &&;

  // --- What it is -------------------------------------------------------------------------------
  bool defined() const { return static_cast<bool>(impl_); }

  std::int64_t dim() const { return layout().ndim; }

  std::int64_t size(std::int64_t dim, Loc loc = Loc::current()) const {
    return layout().sizes[dim_at(dim, "size", loc)];
  }

  std::int64_t stride(std::int64_t dim, Loc loc = Loc::current()) const {
    return layout().strides[dim_at(dim, "stride", loc)];
  }

  IntArrayRef sizes() const { return layout().shape(); }

  IntArrayRef strides() const { return layout().steps(); }

  std::int64_t storage_offset() const { return layout().offset; }

  std::int64_t numel() const { return layout().numel(); }

  std::int64_t nelement() const { return numel(); }

  std::int64_t element_size() const { return taper::element_size(dtype()); }

  std::int64_t itemsize() const { return element_size(); }

  std::size_t nbytes() const { return static_cast<std::size_t>(numel() * element_size()); }

  DType dtype() const { return impl().dtype; }

  DType scalar_type() const { return impl().dtype; }

  Device device() const { return impl().device; }

  bool is_cuda() const { return device().is_cuda(); }

  // In memory of the host that CUDA devices copy from and to by themselves.
  bool is_pinned() const { return storage()->is_pinned(); }

  bool is_cpu() const { return device().is_cpu(); }

  bool is_meta() const { return device().is_meta(); }

  bool is_floating_point() const { return taper::is_floating_point(dtype()); }

  TensorOptions options() const { return TensorOptions(dtype()).device(device()); }

  bool is_contiguous(MemoryFormat format = MemoryFormat::kContiguous) const {
    return format == MemoryFormat::kChannelsLast ? is_channels_last(layout())
                                                 : layout().is_contiguous();
  }

  bool is_same(const Tensor& other) const { return impl_ == other.impl_; }

  bool is_alias_of(const Tensor& other) const { return storage() == other.storage(); }

  std::uint32_t use_count() const { return impl_.use_count(); }

  const Layout& layout() const { return impl().layout; }

  const Ref<Storage>& storage() const { return impl().storage; }

  // The counter that all tensors over one storage share; it rises with each write by an op.
  std::uint32_t version() const { return storage()->version(); }

  std::uint32_t _version() const { return version(); }

  // Handle, impl, storage and block: sizes in bytes, use counts, strides, offset, version.
  std::string describe() const;
  std::string toString() const;  // "CPUFloatType"
  void print() const;

  // --- Elements ---------------------------------------------------------------------------------
  // Address of the first element. The typed form throws when T is not the dtype's C++ type.
  void* data_ptr() const {
    auto* bytes = static_cast<std::byte*>(storage()->data());
    return bytes == nullptr ? nullptr : bytes + storage_offset() * element_size();
  }

  template <class T> T* data_ptr(Loc loc = Loc::current()) const {
    check_dtype_is(dtype_of<T>(), loc);
    return static_cast<T*>(data_ptr());
  }

  template <class T> const T* const_data_ptr(Loc loc = Loc::current()) const {
    return data_ptr<T>(loc);
  }

  // The only element, as a number. Throws unless numel() is 1. Waits for the device.
  Scalar item(Loc loc = Loc::current()) const;

  template <class T> T item(Loc loc = Loc::current()) const { return item(loc).to<T>(); }

  // Whether the only element is not zero. Throws unless numel() is 1.
  bool is_nonzero(Loc loc = Loc::current()) const;

  // Host access by indices, x.accessor<float, 2>()[i][j]; throws on another dtype, ndim or device.
  // It borrows the elements: a tensor that dies with the expression has none to lend.
  template <class T, std::size_t N> TensorAccessor<T, N> accessor(Loc loc = Loc::current()) const&;
  template <class T, std::size_t N>
  TensorAccessor<T, N> accessor(Loc loc = Loc::current()) const&& = delete;

  // --- Autograd ---------------------------------------------------------------------------------
  bool requires_grad() const;
  const Tensor& requires_grad_(bool requires_grad = true, Loc loc = Loc::current()) const;
  const Tensor& set_requires_grad(bool r, Loc loc = Loc::current()) const {
    return requires_grad_(r, loc);
  }
  bool is_leaf() const;
  bool is_view() const;
  bool is_inference() const { return impl().inference; }
  // The accumulated gradient, or an undefined tensor.
  const Tensor& grad() const;
  Tensor& mutable_grad() const;
  const Tensor& retain_grad(Loc loc = Loc::current()) const;  // keep grad() of a non-leaf too
  bool retains_grad() const;
  // d(this)/d(leaves), added into their grad(). `gradient` may be left out for one element.
  void backward(const Tensor& gradient = {},
                std::optional<bool> retain_graph = std::nullopt,
                bool create_graph = false,
                Loc loc = Loc::current()) const;
  Tensor detach(Loc loc = Loc::current()) const;  // the same elements and version, no history
  Tensor data(Loc loc = Loc::current()) const { return detach(loc); }
  const Tensor& detach_(Loc loc = Loc::current()) const;
  // Replaces elements' storage, keeping identity and grad (nn::Module::to uses it).
  void set_data(const Tensor& other, Loc loc = Loc::current()) const;
  // Calls f(gradient) when the gradient of this tensor is known; f may return a replacement.
  template <class F> unsigned register_hook(F f, Loc loc = Loc::current()) const;
  void remove_hook(unsigned handle) const;
  // The op that recorded it ("mul"), or "" for a leaf.
  const char* grad_fn() const;

  // --- Arithmetic -------------------------------------------------------------------------------
  Tensor add(const TensorArg& other, Scalar alpha = 1) const;
  Tensor sub(const TensorArg& other, Scalar alpha = 1) const;
  Tensor mul(const TensorArg& other) const;
  Tensor div(const TensorArg& other) const;
  Tensor div(const TensorArg& other, const char* rounding_mode) const;  // "floor" or "trunc"
  Tensor floor_divide(const TensorArg& other) const;
  Tensor remainder(const TensorArg& other) const;
  Tensor fmod(const TensorArg& other) const;
  Tensor pow(const TensorArg& exponent) const;
  Tensor maximum(const TensorArg& other) const;
  Tensor minimum(const TensorArg& other) const;
  Tensor atan2(const TensorArg& other) const;
  Tensor lerp(const TensorArg& end, const TensorArg& weight) const;
  Tensor addcmul(const TensorArg& a, const TensorArg& b, Scalar value = 1) const;
  Tensor addcdiv(const TensorArg& a, const TensorArg& b, Scalar value = 1) const;
  Tensor& operator+=(const TensorArg& other);
  Tensor& operator-=(const TensorArg& other);
  Tensor& operator*=(const TensorArg& other);
  Tensor& operator/=(const TensorArg& other);

  Tensor eq(const TensorArg& other) const;
  Tensor ne(const TensorArg& other) const;
  Tensor lt(const TensorArg& other) const;
  Tensor le(const TensorArg& other) const;
  Tensor gt(const TensorArg& other) const;
  Tensor ge(const TensorArg& other) const;
  Tensor logical_and(const TensorArg& other) const;
  Tensor logical_or(const TensorArg& other) const;
  Tensor logical_xor(const TensorArg& other) const;
  Tensor logical_not(Loc loc = Loc::current()) const;
  Tensor bitwise_and(const TensorArg& other) const;
  Tensor bitwise_or(const TensorArg& other) const;
  Tensor bitwise_xor(const TensorArg& other) const;
  Tensor bitwise_not(Loc loc = Loc::current()) const;
  Tensor isnan(Loc loc = Loc::current()) const;
  Tensor isinf(Loc loc = Loc::current()) const;
  Tensor isfinite(Loc loc = Loc::current()) const;
  bool equal(const Tensor& other, Loc loc = Loc::current()) const;  // same shape and elements
  bool allclose(const Tensor& other,
                double rtol = 1e-5,
                double atol = 1e-8,
                bool equal_nan = false,
                Loc loc = Loc::current()) const;

  Tensor neg(Loc loc = Loc::current()) const;
  Tensor abs(Loc loc = Loc::current()) const;
  Tensor sign(Loc loc = Loc::current()) const;
  Tensor square(Loc loc = Loc::current()) const;
  Tensor reciprocal(Loc loc = Loc::current()) const;
  Tensor exp(Loc loc = Loc::current()) const;
  Tensor expm1(Loc loc = Loc::current()) const;
  Tensor log(Loc loc = Loc::current()) const;
  Tensor log1p(Loc loc = Loc::current()) const;
  Tensor sqrt(Loc loc = Loc::current()) const;
  Tensor rsqrt(Loc loc = Loc::current()) const;
  Tensor sin(Loc loc = Loc::current()) const;
  Tensor cos(Loc loc = Loc::current()) const;
  Tensor tan(Loc loc = Loc::current()) const;
  Tensor asin(Loc loc = Loc::current()) const;
  Tensor acos(Loc loc = Loc::current()) const;
  Tensor atan(Loc loc = Loc::current()) const;
  Tensor sinh(Loc loc = Loc::current()) const;
  Tensor cosh(Loc loc = Loc::current()) const;
  Tensor tanh(Loc loc = Loc::current()) const;
  Tensor sigmoid(Loc loc = Loc::current()) const;
  Tensor erf(Loc loc = Loc::current()) const;
  Tensor floor(Loc loc = Loc::current()) const;
  Tensor ceil(Loc loc = Loc::current()) const;
  Tensor round(Loc loc = Loc::current()) const;
  Tensor trunc(Loc loc = Loc::current()) const;
  Tensor relu(Loc loc = Loc::current()) const;
  Tensor gelu(const char* approximate = "none", Loc loc = Loc::current()) const;
  Tensor silu(Loc loc = Loc::current()) const;
  Tensor clamp(std::optional<Scalar> min,
               std::optional<Scalar> max = std::nullopt,
               Loc loc = Loc::current()) const;
  Tensor clamp_min(Scalar min, Loc loc = Loc::current()) const;
  Tensor clamp_max(Scalar max, Loc loc = Loc::current()) const;
  Tensor where(const TensorArg& condition, const TensorArg& other) const;
  Tensor masked_fill(const TensorArg& mask, const TensorArg& value) const;

  // In place. They write this tensor's elements, return it, and raise its version.
  const Tensor& add_(const TensorArg& other, Scalar alpha = 1) const;
  const Tensor& sub_(const TensorArg& other, Scalar alpha = 1) const;
  const Tensor& mul_(const TensorArg& other) const;
  const Tensor& div_(const TensorArg& other) const;
  const Tensor& pow_(const TensorArg& exponent) const;
  const Tensor& addcmul_(const TensorArg& a, const TensorArg& b, Scalar value = 1) const;
  const Tensor& addcdiv_(const TensorArg& a, const TensorArg& b, Scalar value = 1) const;
  const Tensor& lerp_(const TensorArg& end, const TensorArg& weight) const;
  const Tensor& neg_(Loc loc = Loc::current()) const;
  const Tensor& abs_(Loc loc = Loc::current()) const;
  const Tensor& exp_(Loc loc = Loc::current()) const;
  const Tensor& log_(Loc loc = Loc::current()) const;
  const Tensor& sqrt_(Loc loc = Loc::current()) const;
  const Tensor& tanh_(Loc loc = Loc::current()) const;
  const Tensor& sigmoid_(Loc loc = Loc::current()) const;
  const Tensor& relu_(Loc loc = Loc::current()) const;
  const Tensor& sin_(Loc loc = Loc::current()) const;
  const Tensor& cos_(Loc loc = Loc::current()) const;
  const Tensor& square_(Loc loc = Loc::current()) const;
  const Tensor& rsqrt_(Loc loc = Loc::current()) const;
  const Tensor& reciprocal_(Loc loc = Loc::current()) const;
  const Tensor& floor_(Loc loc = Loc::current()) const;
  const Tensor& ceil_(Loc loc = Loc::current()) const;
  const Tensor& round_(Loc loc = Loc::current()) const;
  const Tensor& trunc_(Loc loc = Loc::current()) const;
  const Tensor& clamp_(std::optional<Scalar> min,
                       std::optional<Scalar> max = std::nullopt,
                       Loc loc = Loc::current()) const;
  const Tensor& clamp_min_(Scalar min, Loc loc = Loc::current()) const;
  const Tensor& clamp_max_(Scalar max, Loc loc = Loc::current()) const;
  const Tensor& masked_fill_(const TensorArg& mask, const TensorArg& value) const;
  const Tensor& fill_(Scalar value, Loc loc = Loc::current()) const;
  const Tensor& zero_(Loc loc = Loc::current()) const;
  const Tensor& copy_(const TensorArg& source, bool non_blocking = false) const;
  const Tensor& uniform_(double from = 0, double to = 1, Loc loc = Loc::current()) const;
  const Tensor& normal_(double mean = 0, double std = 1, Loc loc = Loc::current()) const;
  const Tensor& bernoulli_(double p = 0.5, Loc loc = Loc::current()) const;

  // --- Reductions. `dim` may be one number or several; keepdim leaves size 1 behind. ------------
  Tensor sum(Loc loc = Loc::current()) const;
  Tensor sum(DType dtype, Loc loc = Loc::current()) const;
  Tensor sum(IntArrayRef dim,
             bool keepdim = false,
             std::optional<DType> dtype = std::nullopt,
             Loc loc = Loc::current()) const;
  Tensor mean(Loc loc = Loc::current()) const;
  Tensor mean(IntArrayRef dim,
              bool keepdim = false,
              std::optional<DType> dtype = std::nullopt,
              Loc loc = Loc::current()) const;
  Tensor prod(Loc loc = Loc::current()) const;
  Tensor prod(std::int64_t dim, bool keepdim = false, Loc loc = Loc::current()) const;
  Tensor var(bool unbiased = true, Loc loc = Loc::current()) const;
  Tensor var(IntArrayRef dim,
             bool unbiased = true,
             bool keepdim = false,
             Loc loc = Loc::current()) const;
  Tensor std(bool unbiased = true, Loc loc = Loc::current()) const;
  Tensor std(IntArrayRef dim,
             bool unbiased = true,
             bool keepdim = false,
             Loc loc = Loc::current()) const;
  Tensor amax(IntArrayRef dim = {}, bool keepdim = false, Loc loc = Loc::current()) const;
  Tensor amin(IntArrayRef dim = {}, bool keepdim = false, Loc loc = Loc::current()) const;
  Tensor max(Loc loc = Loc::current()) const;
  Tensor min(Loc loc = Loc::current()) const;
  Tensor max(const Tensor& other, Loc loc = Loc::current()) const;
  Tensor min(const Tensor& other, Loc loc = Loc::current()) const;
  // (values, indices)
  std::tuple<Tensor, Tensor> max(std::int64_t dim,
                                 bool keepdim = false,
                                 Loc loc = Loc::current()) const;
  std::tuple<Tensor, Tensor> min(std::int64_t dim,
                                 bool keepdim = false,
                                 Loc loc = Loc::current()) const;
  Tensor argmax(std::optional<std::int64_t> dim = std::nullopt,
                bool keepdim = false,
                Loc loc = Loc::current()) const;
  Tensor argmin(std::optional<std::int64_t> dim = std::nullopt,
                bool keepdim = false,
                Loc loc = Loc::current()) const;
  Tensor any(Loc loc = Loc::current()) const;
  Tensor any(std::int64_t dim, bool keepdim = false, Loc loc = Loc::current()) const;
  Tensor all(Loc loc = Loc::current()) const;
  Tensor all(std::int64_t dim, bool keepdim = false, Loc loc = Loc::current()) const;
  Tensor norm(Scalar p = 2, Loc loc = Loc::current()) const;
  Tensor norm(Scalar p, IntArrayRef dim, bool keepdim = false, Loc loc = Loc::current()) const;
  Tensor logsumexp(IntArrayRef dim, bool keepdim = false, Loc loc = Loc::current()) const;
  Tensor cumsum(std::int64_t dim, Loc loc = Loc::current()) const;
  Tensor cumprod(std::int64_t dim, Loc loc = Loc::current()) const;
  // (values, indices)
  std::tuple<Tensor, Tensor> sort(std::int64_t dim = -1,
                                  bool descending = false,
                                  Loc loc = Loc::current()) const;
  Tensor argsort(std::int64_t dim = -1, bool descending = false, Loc loc = Loc::current()) const;
  std::tuple<Tensor, Tensor> topk(std::int64_t k,
                                  std::int64_t dim = -1,
                                  bool largest = true,
                                  bool sorted = true,
                                  Loc loc = Loc::current()) const;
  Tensor softmax(std::int64_t dim,
                 std::optional<DType> dtype = std::nullopt,
                 Loc loc = Loc::current()) const;
  Tensor log_softmax(std::int64_t dim,
                     std::optional<DType> dtype = std::nullopt,
                     Loc loc = Loc::current()) const;

  // --- Products ---------------------------------------------------------------------------------
  Tensor matmul(const TensorArg& other) const;
  Tensor mm(const TensorArg& other) const;
  Tensor bmm(const TensorArg& other) const;
  Tensor mv(const TensorArg& vec) const;
  Tensor dot(const TensorArg& other) const;
  Tensor outer(const TensorArg& other) const;
  Tensor addmm(const TensorArg& a, const TensorArg& b, Scalar beta = 1, Scalar alpha = 1) const;
  Tensor baddbmm(const TensorArg& a, const TensorArg& b, Scalar beta = 1, Scalar alpha = 1) const;

  // --- Views: the same storage ------------------------------------------------------------------
  Tensor view(IntArrayRef sizes, Loc loc = Loc::current()) const;
  Tensor view(DType dtype, Loc loc = Loc::current()) const;  // the bits as another type
  Tensor view_as(const Tensor& other, Loc loc = Loc::current()) const;
  Tensor reshape(IntArrayRef sizes, Loc loc = Loc::current()) const;  // view if it can, else copy
  Tensor reshape_as(const Tensor& other, Loc loc = Loc::current()) const;
  Tensor flatten(std::int64_t start_dim = 0,
                 std::int64_t end_dim = -1,
                 Loc loc = Loc::current()) const;
  Tensor unflatten(std::int64_t dim, IntArrayRef sizes, Loc loc = Loc::current()) const;
  Tensor transpose(std::int64_t dim0, std::int64_t dim1, Loc loc = Loc::current()) const;
  Tensor t(Loc loc = Loc::current()) const;
  Tensor mT(Loc loc = Loc::current()) const { return transpose(-2, -1, loc); }
  Tensor permute(IntArrayRef dims, Loc loc = Loc::current()) const;
  Tensor movedim(std::int64_t source, std::int64_t destination, Loc loc = Loc::current()) const;
  Tensor squeeze(Loc loc = Loc::current()) const;
  Tensor squeeze(std::int64_t dim, Loc loc = Loc::current()) const;
  Tensor unsqueeze(std::int64_t dim, Loc loc = Loc::current()) const;
  Tensor expand(IntArrayRef sizes, Loc loc = Loc::current()) const;
  Tensor expand_as(const Tensor& other, Loc loc = Loc::current()) const;
  Tensor broadcast_to(IntArrayRef sizes, Loc loc = Loc::current()) const {
    return expand(sizes, loc);
  }
  Tensor narrow(std::int64_t dim,
                std::int64_t start,
                std::int64_t length,
                Loc loc = Loc::current()) const;
  Tensor select(std::int64_t dim, std::int64_t index, Loc loc = Loc::current()) const;
  Tensor slice(std::int64_t dim = 0,
               std::optional<std::int64_t> start = std::nullopt,
               std::optional<std::int64_t> end = std::nullopt,
               std::int64_t step = 1,
               Loc loc = Loc::current()) const;
  Tensor diagonal(std::int64_t offset = 0,
                  std::int64_t dim1 = 0,
                  std::int64_t dim2 = 1,
                  Loc loc = Loc::current()) const;
  Tensor unfold(std::int64_t dim,
                std::int64_t size,
                std::int64_t step,
                Loc loc = Loc::current()) const;
  Tensor as_strided(IntArrayRef sizes,
                    IntArrayRef strides,
                    std::optional<std::int64_t> storage_offset = std::nullopt,
                    Loc loc = Loc::current()) const;
  std::vector<Tensor> split(std::int64_t size,
                            std::int64_t dim = 0,
                            Loc loc = Loc::current()) const;
  std::vector<Tensor> split(IntArrayRef sizes,
                            std::int64_t dim = 0,
                            Loc loc = Loc::current()) const;
  std::vector<Tensor> split_with_sizes(IntArrayRef sizes,
                                       std::int64_t dim = 0,
                                       Loc loc = Loc::current()) const {
    return split(sizes, dim, loc);
  }
  std::vector<Tensor> chunk(std::int64_t chunks,
                            std::int64_t dim = 0,
                            Loc loc = Loc::current()) const;
  std::vector<Tensor> unbind(std::int64_t dim = 0, Loc loc = Loc::current()) const;

  // --- Copies -----------------------------------------------------------------------------------
  Tensor clone(MemoryFormat format = MemoryFormat::kPreserve, Loc loc = Loc::current()) const;
  Tensor contiguous(MemoryFormat format = MemoryFormat::kContiguous,
                    Loc loc = Loc::current()) const;
  Tensor to(DType dtype,
            bool non_blocking = false,
            bool copy = false,
            Loc loc = Loc::current()) const;
  Tensor to(Device device,
            bool non_blocking = false,
            bool copy = false,
            Loc loc = Loc::current()) const;
  Tensor to(DeviceType device, bool non_blocking = false, Loc loc = Loc::current()) const {
    return to(Device(device), non_blocking, false, loc);
  }
  Tensor to(Device device,
            DType dtype,
            bool non_blocking = false,
            bool copy = false,
            Loc loc = Loc::current()) const;
  Tensor to(const TensorOptions& options, Loc loc = Loc::current()) const;
  Tensor to(MemoryFormat format, Loc loc = Loc::current()) const;
  Tensor to(const Tensor& other,
            bool non_blocking = false,
            bool copy = false,
            Loc loc = Loc::current()) const;  // its dtype and device
  Tensor toType(DType dtype, Loc loc = Loc::current()) const {
    return to(dtype, false, false, loc);
  }
  Tensor type_as(const Tensor& other, Loc loc = Loc::current()) const;
  // A copy in pinned memory, from which x.to(kCUDA, /*non_blocking=*/true) returns at once; itself
  // if it lies there. Throws where this build or machine has no CUDA device.
  Tensor pin_memory(Loc loc = Loc::current()) const;
  // `stream` uses the elements too: their memory is used again only after what the stream has been
  // given by the time the last tensor over it is gone. Ops say so by themselves.
  // Throws for a stream that there is not, or of another device than a CUDA tensor's.
  void record_stream(const Stream& stream, Loc loc = Loc::current()) const;
  Tensor cpu(Loc loc = Loc::current()) const { return to(Device(kCPU), false, false, loc); }
  Tensor cuda(Loc loc = Loc::current()) const { return to(Device(kCUDA), false, false, loc); }
  Tensor repeat(IntArrayRef repeats, Loc loc = Loc::current()) const;
  Tensor flip(IntArrayRef dims, Loc loc = Loc::current()) const;  // a copy, as theirs is
  Tensor roll(IntArrayRef shifts, IntArrayRef dims = {}, Loc loc = Loc::current()) const;
  Tensor tril(std::int64_t diagonal = 0, Loc loc = Loc::current()) const;
  Tensor triu(std::int64_t diagonal = 0, Loc loc = Loc::current()) const;

  // --- New ones with the dtype and device of this one, unless the options say otherwise ---------
  Tensor new_empty(IntArrayRef sizes, TensorOptions options = {}, Loc loc = Loc::current()) const;
  Tensor new_zeros(IntArrayRef sizes, TensorOptions options = {}, Loc loc = Loc::current()) const;
  Tensor new_ones(IntArrayRef sizes, TensorOptions options = {}, Loc loc = Loc::current()) const;
  Tensor new_full(IntArrayRef sizes,
                  Scalar value,
                  TensorOptions options = {},
                  Loc loc = Loc::current()) const;

  // --- Indexing: x.index({Slice(1, 3), None, 0, mask}), as numpy does ---------------------------
  Tensor operator[](const IndexArg& index) const;
  Tensor index(ArrayRef<TensorIndex> indices, Loc loc = Loc::current()) const;
  Tensor index_put(ArrayRef<TensorIndex> indices, const TensorArg& value) const;
  const Tensor& index_put_(ArrayRef<TensorIndex> indices, const TensorArg& value) const;
  Tensor gather(std::int64_t dim, const Tensor& index, Loc loc = Loc::current()) const;
  Tensor scatter(std::int64_t dim, const Tensor& index, const TensorArg& src) const;
  Tensor scatter_add(std::int64_t dim, const Tensor& index, const TensorArg& src) const;
  const Tensor& scatter_(std::int64_t dim, const Tensor& index, const TensorArg& src) const;
  const Tensor& scatter_add_(std::int64_t dim, const Tensor& index, const TensorArg& src) const;
  Tensor index_select(std::int64_t dim, const Tensor& index, Loc loc = Loc::current()) const;
  Tensor index_add(std::int64_t dim, const Tensor& index, const TensorArg& src) const;
  const Tensor& index_add_(std::int64_t dim, const Tensor& index, const TensorArg& src) const;
  Tensor index_fill(std::int64_t dim,
                    const Tensor& index,
                    Scalar value,
                    Loc loc = Loc::current()) const;
  Tensor take_along_dim(const Tensor& index, std::int64_t dim, Loc loc = Loc::current()) const;
  Tensor masked_select(const Tensor& mask, Loc loc = Loc::current()) const;
  Tensor nonzero(Loc loc = Loc::current()) const;  // (count, ndim), i64

  // --- For Taper's own files --------------------------------------------------------------------
  TensorImpl& impl() const {
    if (!impl_) [[unlikely]]
      fail_undefined();
    return *impl_;
  }

  const Ref<TensorImpl>& ref() const { return impl_; }

  // As a kernel operand. An undefined tensor gives an operand that is not there.
  template <class V> V as() const {
    V v;
    if (impl_) v.data = data_ptr(), v.layout = &impl_->layout, v.dtype = impl_->dtype;
    return v;
  }

 private:
  friend struct DebugLayout;  // tells debuggers where things lie

  int dim_at(std::int64_t dim, const char* function, Loc loc) const {
    const std::int64_t n = layout().ndim;
    if (dim < -n || dim >= n) [[unlikely]]
      fail_dim(dim, function, loc);
    return static_cast<int>(dim < 0 ? dim + n : dim);
  }

  [[noreturn]] void fail_dim(std::int64_t dim, const char* function, Loc loc) const;
  [[noreturn]] static void fail_undefined();
  void check_dtype_is(DType wanted, Loc loc) const;
  unsigned add_hook(Hook* hook /* taken */, Loc loc) const;

  Ref<TensorImpl> impl_;
};

// A new tensor without defined elements, or over a given storage. No call site, no autograd.
Tensor make_tensor(const Layout& layout, DType dtype, Device device);
Tensor make_tensor(Ref<Storage> storage, const Layout& layout, DType dtype);
Tensor make_pinned(const Layout& layout, DType dtype);  // in pinned memory of the host

// A 0-dim host tensor made from a C++ number; promotion treats it as the number that it is.
Tensor wrapped_number(const Scalar& value);

// A tensor argument of a public function: a tensor, or a number; and the caller's line.
class TensorArg {
 public:
  TensorArg(const Tensor& tensor, Loc at = Loc::current())  // NOLINT(google-explicit-constructor)
      : tensor_(&tensor), loc(at) {}

  template <class T>
  requires std::is_arithmetic_v<T> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16> ||
      std::is_same_v<T, Scalar>
      TensorArg(T number, Loc at = Loc::current())  // NOLINT(google-explicit-constructor)
      : tensor_(&own_), own_(wrapped_number(Scalar(number))), loc(at) {}

  TensorArg(const TensorArg&) = delete;
  TensorArg& operator=(const TensorArg&) = delete;

  const Tensor& operator*() const { return *tensor_; }

  const Tensor* operator->() const { return tensor_; }

  operator const Tensor&() const { return *tensor_; }  // NOLINT(google-explicit-constructor)

 private:
  const Tensor* tensor_;
  Tensor own_;

 public:
  Loc loc;
};

// Several tensors: {a, b} or a vector; and the caller's line.
class TensorList {
 public:
  TensorList(std::initializer_list<Tensor> list, Loc at = Loc::current())
      : list_(list.begin(), list.size()), loc(at) {}

  TensorList(const std::vector<Tensor>& list, Loc at = Loc::current())  // NOLINT
      : list_(list), loc(at) {}

  TensorList(ArrayRef<Tensor> list, Loc at = Loc::current()) : list_(list), loc(at) {}  // NOLINT

  const Tensor* begin() const { return list_.begin(); }

  const Tensor* end() const { return list_.end(); }

  std::size_t size() const { return list_.size(); }

  bool empty() const { return list_.empty(); }

  const Tensor& operator[](std::size_t i) const { return list_[i]; }

 private:
  ArrayRef<Tensor> list_;

 public:
  Loc loc;
};

Tensor operator+(const TensorArg& a, const TensorArg& b);
Tensor operator-(const TensorArg& a, const TensorArg& b);
Tensor operator*(const TensorArg& a, const TensorArg& b);
Tensor operator/(const TensorArg& a, const TensorArg& b);
Tensor operator%(const TensorArg& a, const TensorArg& b);
Tensor operator-(const TensorArg& a);
Tensor operator==(const TensorArg& a, const TensorArg& b);
Tensor operator!=(const TensorArg& a, const TensorArg& b);
Tensor operator<(const TensorArg& a, const TensorArg& b);
Tensor operator<=(const TensorArg& a, const TensorArg& b);
Tensor operator>(const TensorArg& a, const TensorArg& b);
Tensor operator>=(const TensorArg& a, const TensorArg& b);
Tensor operator&(const TensorArg& a, const TensorArg& b);
Tensor operator|(const TensorArg& a, const TensorArg& b);
Tensor operator^(const TensorArg& a, const TensorArg& b);
Tensor operator~(const TensorArg& a);

// Prints elements and a line like "[ CPUFloatType{2,3} ]", as LibTorch does.
std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

// A borrowed N-dim window for host loops.
template <class T, std::size_t N> class TensorAccessor {
 public:
  TensorAccessor(T* data, const std::int64_t* sizes, const std::int64_t* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}

  decltype(auto) operator[](std::int64_t i) const {
    if constexpr (N == 1) return (data_[i * strides_[0]]);
    else return TensorAccessor<T, N - 1>(data_ + i * strides_[0], sizes_ + 1, strides_ + 1);
  }

  std::int64_t size(std::int64_t d) const { return sizes_[d]; }

  T* data() const { return data_; }

 private:
  T* data_;
  const std::int64_t* sizes_;
  const std::int64_t* strides_;
};

template <class T, std::size_t N> TensorAccessor<T, N> Tensor::accessor(Loc loc) const& {
  const Call call(loc);
  TAPER_CHECK(dim() == static_cast<std::int64_t>(N) && is_cpu(),
              "accessor: expected a host tensor of ", N, " dims, got ", sizes(), " on ", device());
  return {data_ptr<T>(loc), layout().sizes, layout().strides};
}

}  // namespace taper
