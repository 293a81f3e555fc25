// Builds golden tensors and compares results, by plain host loops that use no kernel of Taper.
#include "taper/tests/golden/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>

#include "taper/tests/golden/args.h"

namespace taper::golden {
namespace {

// Calls f(position in order, element of t) for each element.
template <class T, class F> void each(const Tensor& t, F f) {
  const auto* data = static_cast<const T*>(t.data_ptr());
  const auto ndim = static_cast<std::size_t>(t.dim());
  std::vector<std::int64_t> index(ndim, 0);
  const std::int64_t n = t.numel();
  for (std::int64_t k = 0; k < n; ++k) {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < ndim; ++d) at += index[d] * t.strides()[d];
    f(k, data[at]);
    for (std::size_t d = ndim; d-- > 0;) {
      if (++index[d] < t.sizes()[d]) break;
      index[d] = 0;
    }
  }
}

double widened(double tolerance, DType dtype) {
  switch (element_size(dtype)) {
    case 2: return std::max(tolerance, dtype == DType::kBFloat16 ? 8e-3 : 1e-3);
    case 4: return std::max(tolerance, 2e-6);
    default: return tolerance;
  }
}

bool agree(double got, double want, double tolerance) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want) || std::isinf(got)) return got == want;
  return std::abs(got - want) <= tolerance * (1 + std::abs(want));
}

std::string shape_text(IntArrayRef shape) {
  std::ostringstream s;
  s << '(';
  for (std::size_t i = 0; i < shape.size(); ++i) s << (i == 0 ? "" : ",") << shape[i];
  s << ')';
  return s.str();
}

template <class T>
std::string element_difference(const Tensor& got, const TensorRecord& want, double tolerance) {
  std::int64_t wrong = 0;
  std::ostringstream first;
  first.precision(17);
  each<T>(got, [&](std::int64_t k, T value) {
    T expected;
    std::memcpy(&expected, want.bytes() + static_cast<std::size_t>(k) * sizeof(T), sizeof(T));
    bool same = false;
    if constexpr (std::is_integral_v<T>) same = value == expected;
    else same = agree(static_cast<double>(value), static_cast<double>(expected), tolerance);
    if (!same && wrong++ == 0) {
      first << "element " << k << " is " << static_cast<double>(value) << ", expected "
            << static_cast<double>(expected);
    }
  });
  if (wrong == 0) return "";
  first << " (" << wrong << " of " << got.numel() << " differ)";
  return first.str();
}

}  // namespace

Tensor build(const TensorRecord& record) {
  if (record.shape.size() > kMaxDims) throw Skip("more than 8 dims");
  const Tensor flat = make_tensor(contiguous_layout({record.length}), record.dtype, Device(kCPU));
  const auto size = static_cast<std::size_t>(record.length * element_size(record.dtype));
  if (size > 0) std::memcpy(flat.data_ptr(), record.bytes(), size);
  Layout layout;
  layout.offset = record.offset;
  layout.ndim = static_cast<std::int32_t>(record.shape.size());
  std::copy(record.shape.begin(), record.shape.end(), layout.sizes);
  std::copy(record.strides.begin(), record.strides.end(), layout.strides);
  const Tensor t = make_tensor(flat.storage(), layout, record.dtype);
  if (record.requires_grad) t.requires_grad_();
  return t;
}

Tensor cotangent(const Tensor& output, int number, bool ones) {
  const Tensor t = make_tensor(contiguous_layout(output.sizes()), output.dtype(), Device(kCPU));
  visit_dtype(t.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    auto* data = static_cast<T*>(t.data_ptr());
    for (std::int64_t k = 0; k < t.numel(); ++k) {
      const std::uint64_t mixed = (static_cast<std::uint64_t>(k) + 1) * 2654435761U +
                                  (static_cast<std::uint64_t>(number) + 1) * 3242174889U;
      const double value = static_cast<double>(mixed % (std::uint64_t{1} << 32)) / 2147483648.0 - 1;
      data[k] = static_cast<T>(ones ? 1.0 : value);
    }
  });
  return t;
}

std::string difference(const Tensor& got, const TensorRecord& want, double tolerance) {
  if (!got.defined()) return "undefined tensor";
  if (got.sizes() != IntArrayRef(want.shape)) {
    return "shape " + shape_text(got.sizes()) + ", expected " + shape_text(want.shape);
  }
  if (got.dtype() != want.dtype) {
    return std::string("dtype ") + info(got.dtype()).name + ", expected " + info(want.dtype).name;
  }
  const double allowed = widened(tolerance, want.dtype);
  return visit_dtype(want.dtype, [&](auto type) {
    return element_difference<typename decltype(type)::type>(got, want, allowed);
  });
}

std::string view_difference(const Tensor& got, const TensorRecord& want, const Tensor& base) {
  if (!got.is_alias_of(base)) return "a copy, expected a view";
  if (got.storage_offset() != want.offset) {
    return "offset " + std::to_string(got.storage_offset()) + ", expected " +
           std::to_string(want.offset);
  }
  for (std::size_t d = 0; d < want.shape.size(); ++d) {  // of a size of 1 the stride means nothing
    if (want.shape[d] > 1 && got.strides()[d] != want.strides[d]) {
      return "strides " + shape_text(got.strides()) + ", expected " + shape_text(want.strides);
    }
  }
  return "";
}

bool is_zero(const Tensor& t) {
  bool zero = true;
  visit_dtype(t.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    each<T>(t, [&](std::int64_t, T value) { zero = zero && static_cast<double>(value) == 0; });
  });
  return zero;
}

}  // namespace taper::golden
