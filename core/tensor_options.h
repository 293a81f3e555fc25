// TensorOptions: the dtype, device and grad flag that creation functions take, with LibTorch's
// setters.
#pragma once
#include <iosfwd>
#include <optional>

#include "taper/core/base/device.h"
#include "taper/core/base/dtype.h"
#include "taper/core/base/layout.h"

namespace taper {

// The dtype of floating tensors made without one: f32 unless set otherwise.
DType get_default_dtype();
void set_default_dtype(DType dtype);

class TensorOptions {
 public:
  TensorOptions() = default;
  TensorOptions(DType dtype) : dtype_(dtype) {}                  // NOLINT: zeros({2}, kFloat64)
  TensorOptions(Device device) : device_(device) {}              // NOLINT: zeros({2}, device)
  TensorOptions(DeviceType device) : device_(Device(device)) {}  // NOLINT: zeros({2}, kCUDA)

  [[nodiscard]] TensorOptions dtype(std::optional<DType> d) const {
    TensorOptions o = *this;
    o.dtype_ = d;
    return o;
  }

  [[nodiscard]] TensorOptions device(std::optional<Device> d) const {
    TensorOptions o = *this;
    o.device_ = d;
    return o;
  }

  [[nodiscard]] TensorOptions requires_grad(bool r) const {
    TensorOptions o = *this;
    o.requires_grad_ = r;
    return o;
  }

  [[nodiscard]] TensorOptions memory_format(MemoryFormat f) const {
    TensorOptions o = *this;
    o.format_ = f;
    return o;
  }

  bool has_dtype() const { return dtype_.has_value(); }

  bool has_device() const { return device_.has_value(); }

  DType dtype() const { return dtype_.value_or(get_default_dtype()); }

  Device device() const { return device_.value_or(Device(kCPU)); }

  bool requires_grad() const { return requires_grad_; }

  MemoryFormat memory_format() const { return format_; }

 private:
  std::optional<DType> dtype_;
  std::optional<Device> device_;
  bool requires_grad_ = false;
  MemoryFormat format_ = MemoryFormat::kContiguous;
};

// "TensorOptions(dtype=float, device=cpu, layout=Strided, ...)", as LibTorch prints them.
std::ostream& operator<<(std::ostream& out, const TensorOptions& options);

inline TensorOptions dtype(DType d) {
  return TensorOptions(d);
}

inline TensorOptions device(Device d) {
  return TensorOptions(d);
}

inline TensorOptions requires_grad(bool r = true) {
  return TensorOptions().requires_grad(r);
}

}  // namespace taper
