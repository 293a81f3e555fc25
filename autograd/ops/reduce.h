// Reductions, scans and sorting: the op classes and the public functions.
#pragma once
#include <tuple>

#include "taper/autograd/op.h"

namespace taper {

// `dim` may be one number or several; empty means all. keepdim leaves size 1 behind.
// Integers and bool sum and multiply in i64.
Tensor sum(const TensorArg& x);
Tensor sum(const TensorArg& x, DType dtype);
Tensor sum(const TensorArg& x,
           IntArrayRef dim,
           bool keepdim = false,
           std::optional<DType> dtype = std::nullopt);
Tensor mean(const TensorArg& x);
Tensor mean(const TensorArg& x,
            IntArrayRef dim,
            bool keepdim = false,
            std::optional<DType> dtype = std::nullopt);
Tensor prod(const TensorArg& x);
Tensor prod(const TensorArg& x, std::int64_t dim, bool keepdim = false);
Tensor var(const TensorArg& x, bool unbiased = true);
Tensor var(const TensorArg& x, IntArrayRef dim, bool unbiased = true, bool keepdim = false);
Tensor std(const TensorArg& x, bool unbiased = true);
Tensor std(const TensorArg& x, IntArrayRef dim, bool unbiased = true, bool keepdim = false);
std::tuple<Tensor, Tensor> var_mean(const TensorArg& x,
                                    IntArrayRef dim,
                                    bool unbiased = true,
                                    bool keepdim = false);
Tensor amax(const TensorArg& x, IntArrayRef dim = {}, bool keepdim = false);
Tensor amin(const TensorArg& x, IntArrayRef dim = {}, bool keepdim = false);
Tensor max(const TensorArg& x);
Tensor min(const TensorArg& x);
Tensor max(const TensorArg& a, const TensorArg& b);
Tensor min(const TensorArg& a, const TensorArg& b);
// (values, indices)
std::tuple<Tensor, Tensor> max(const TensorArg& x, std::int64_t dim, bool keepdim = false);
std::tuple<Tensor, Tensor> min(const TensorArg& x, std::int64_t dim, bool keepdim = false);
Tensor argmax(const TensorArg& x,
              std::optional<std::int64_t> dim = std::nullopt,
              bool keepdim = false);
Tensor argmin(const TensorArg& x,
              std::optional<std::int64_t> dim = std::nullopt,
              bool keepdim = false);
Tensor any(const TensorArg& x);
Tensor any(const TensorArg& x, std::int64_t dim, bool keepdim = false);
Tensor all(const TensorArg& x);
Tensor all(const TensorArg& x, std::int64_t dim, bool keepdim = false);
Tensor norm(const TensorArg& x, Scalar p = 2);
Tensor norm(const TensorArg& x, Scalar p, IntArrayRef dim, bool keepdim = false);
Tensor logsumexp(const TensorArg& x, IntArrayRef dim, bool keepdim = false);
Tensor cumsum(const TensorArg& x, std::int64_t dim);
Tensor cumprod(const TensorArg& x, std::int64_t dim);
std::tuple<Tensor, Tensor> sort(const TensorArg& x, std::int64_t dim = -1, bool descending = false);
Tensor argsort(const TensorArg& x, std::int64_t dim = -1, bool descending = false);
std::tuple<Tensor, Tensor> topk(const TensorArg& x,
                                std::int64_t k,
                                std::int64_t dim = -1,
                                bool largest = true,
                                bool sorted = true);

namespace ops {

// Which dims are reduced, and whether they stay with size 1.
struct Dims {
  std::uint32_t mask = 0;
  bool keepdim = false;

  bool has(int d) const { return (mask >> d & 1U) != 0; }
};

// Wraps and checks; empty means all.
Dims reduced_dims(IntArrayRef dim, bool keepdim, IntArrayRef sizes);
Dims reduced_dims(IntArrayRef dim, bool keepdim, int ndim) = delete;

// The result's sizes; and the same result as a layout of the input's sizes, stride 0 where it is
// reduced, as kernels want it.
Sizes reduced_sizes(IntArrayRef sizes, const Dims& dims);
Layout spread_layout(const Layout& result, IntArrayRef sizes, const Dims& dims);

// A result as an operand of its reduction's kernel.
struct SpreadOut {
  Layout layout;
  Out view;

  SpreadOut(const Tensor& result, IntArrayRef sizes, const Dims& dims)
      : layout(spread_layout(result.layout(), sizes, dims)), view(result.as<Out>()) {
    view.layout = &layout;
  }

  SpreadOut(const SpreadOut&) = delete;
  SpreadOut& operator=(const SpreadOut&) = delete;
};

// A reduced tensor (a gradient, say) back over the shape that was reduced, by expanding.
Tensor spread(const Tensor& reduced, IntArrayRef sizes, const Dims& dims);

// The dims as a list, for public functions.
Sizes listed(const Dims& dims, std::int64_t ndim);

// Throws when one of the reduced dims has size 0: there is no largest (mean, ...) of nothing.
void check_not_empty(IntArrayRef sizes, const Dims& dims);

// d sum = sum of dx: each element takes the gradient of its sum.
class Sum final : public OpOf<Sum> {
 public:
  static constexpr const char* kName = "sum";

  explicit Sum(Dims dims, std::optional<DType> dtype = std::nullopt) : dims_(dims), dtype_(dtype) {}

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

 private:
  Dims dims_;
  std::optional<DType> dtype_;
  Sizes sizes_;  // of the input
};

// Over one dim, or all. dL/dx of one element is the product of all others: exact where some are 0.
class Prod final : public OpOf<Prod> {
 public:
  static constexpr const char* kName = "prod";

  explicit Prod(Dims dims) : dims_(dims) {}

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

 private:
  Dims dims_;
};

}  // namespace ops
}  // namespace taper
