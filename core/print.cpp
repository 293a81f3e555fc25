// Prints tensors as LibTorch does: columns of one width, a common scale, a line about the type.
#include <cmath>
#include <cstdio>
#include <iostream>
#include <ostream>

#include "taper/core/kernels.h"
#include "taper/core/tensor.h"

namespace taper {
namespace {

constexpr int kLineWidth = 80;

// The elements on the host, row-major, as f64.
Tensor host_doubles(const Tensor& t) {
  const Tensor out = make_tensor(contiguous_layout(t.sizes()), kFloat64, kCPU);
  const Exec exec(t.device());
  kernels_for(t.device()).copy(exec, out.as<Out>(), t.as<In>());
  return out;
}

std::string text(const char* format, int width, double x) {
  char out[64];
  std::snprintf(out, sizeof out, format, width, x);
  return out;
}

// How the numbers of one block are written.
struct Format {
  int width = 0;
  const char* pattern = "%*g";
  double scale = 1;

  std::string operator()(double x) const { return text(pattern, width, x / scale); }
};

// Digits before the point; 1 for zero.
int digits(double x) {
  return x == 0 ? 1 : static_cast<int>(std::floor(std::log10(x))) + 1;
}

Format format_of(const double* x, std::int64_t n) {
  double low = 0, high = 0;
  bool whole = true, any = false;
  for (std::int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(x[i])) continue;
    whole = whole && x[i] == std::ceil(x[i]);
    low = any && low < x[i] ? low : x[i];
    high = any && high > x[i] ? high : x[i];
    any = true;
  }
  const int least = digits(std::abs(low)), most = digits(std::abs(high));
  Format f;
  if (whole && most <= 9) {
    f.width = most + 1;
  } else if (whole || most - least > 4) {
    f.width = std::abs(most) > 99 || std::abs(least) > 99 ? 12 : 11;
    f.pattern = "%*.4e";
  } else if (most > 5 || most < 0) {
    f.width = 7;
    f.pattern = "%*.4f";
    f.scale = std::pow(10.0, most - 1);
  } else {
    f.width = most == 0 ? 7 : most + 6;
    f.pattern = "%*.4f";
  }
  return f;
}

void print_rows(
    std::ostream& out, const double* x, std::int64_t rows, std::int64_t columns, int indent) {
  const Format f = format_of(x, rows * columns);
  const std::string margin(static_cast<std::size_t>(indent), ' ');
  const std::int64_t fit = (kLineWidth - indent) / (f.width + 1);
  const std::int64_t at_once = fit < 1 ? 1 : fit;
  for (std::int64_t first = 0; first < columns; first += at_once) {
    const std::int64_t end = first + at_once < columns ? first + at_once : columns;
    if (at_once < columns) {
      if (first > 0) out << '\n';
      out << "Columns " << first + 1 << " to " << end;
    }
    out << margin;
    if (f.scale != 1) out << text("%*g", 0, f.scale) << " *\n" << margin;
    for (std::int64_t r = 0; r < rows; ++r) {
      if (r > 0) out << margin << (f.scale != 1 ? " " : "");
      for (std::int64_t c = first; c < end; ++c) {
        out << (c > first ? " " : "") << f(x[r * columns + c]);
      }
      out << '\n';
    }
  }
}

// Blocks of the last two dims, each under its place: "(1,2,.,.) = ".
void print_blocks(std::ostream& out, const Tensor& t, const double* x) {
  const auto n = t.dim();
  const std::int64_t rows = t.size(n - 2), columns = t.size(n - 1);
  const std::int64_t blocks = t.numel() / (rows * columns);
  for (std::int64_t b = 0; b < blocks; ++b) {
    if (b > 0) out << '\n';
    std::string place;
    std::int64_t rest = b;
    for (std::int64_t d = n - 3; d >= 0; --d) {
      place = std::to_string(rest % t.size(d) + 1) + "," + place;
      rest /= t.size(d);
    }
    out << '(' << place << ".,.) = \n";
    print_rows(out, x + b * rows * columns, rows, columns, 1);
  }
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Tensor& t) {
  if (!t.defined()) return out << "[ Tensor (undefined) ]";
  if (!t.is_meta() && t.numel() > 0) {
    const Tensor host = host_doubles(t);
    const auto* x = static_cast<const double*>(host.data_ptr());
    if (t.dim() == 0) {
      out << text("%*g", 0, x[0]) << '\n';
    } else if (t.dim() == 1) {
      const Format f = format_of(x, t.numel());
      if (f.scale != 1) out << text("%*g", 0, f.scale) << " *\n";
      for (std::int64_t i = 0; i < t.numel(); ++i) out << f(x[i]) << '\n';
    } else if (t.dim() == 2) {
      print_rows(out, x, t.size(0), t.size(1), 0);
    } else {
      print_blocks(out, t, x);
    }
  }
  out << "[ " << t.toString() << '{';
  for (std::int64_t d = 0; d < t.dim(); ++d) out << (d > 0 ? "," : "") << t.size(d);
  return out << "} ]";
}

std::ostream& operator<<(std::ostream& out, IntArrayRef list) {
  out << '[';
  for (std::size_t i = 0; i < list.size(); ++i) out << (i == 0 ? "" : ", ") << list[i];
  return out << ']';
}

std::ostream& operator<<(std::ostream& out, Device device) {
  return out << device.str();
}

std::ostream& operator<<(std::ostream& out, DeviceType type) {
  return out << (type == kCPU ? "cpu" : type == kCUDA ? "cuda" : "meta");
}

std::ostream& operator<<(std::ostream& out, DType dtype) {
  constexpr const char* kNames[kNumDTypes] = {"double",   "float", "c10::Half",     "c10::BFloat16",
                                              "long int", "int",   "unsigned char", "bool"};
  return out << kNames[static_cast<int>(dtype)];
}

// Taper knows one layout and pins no memory; what it does not tell apart from unset counts as
// unset.
std::ostream& operator<<(std::ostream& out, const TensorOptions& o) {
  const auto unset = [](bool set) { return set ? "" : " (default)"; };
  const bool last = o.memory_format() == MemoryFormat::kChannelsLast;
  const bool preserve = o.memory_format() == MemoryFormat::kPreserve;
  return out << "TensorOptions(dtype=" << o.dtype() << unset(o.has_dtype())
             << ", device=" << o.device() << unset(o.has_device()) << ", layout=Strided"
             << ", requires_grad=" << (o.requires_grad() ? "true" : "false (default)")
             << ", pinned_memory=false (default), memory_format="
             << (last       ? "ChannelsLast"
                 : preserve ? "Preserve"
                            : "(nullopt)")
             << ')';
}

void Tensor::print() const {
  std::cout << *this << '\n';
}

Scalar Tensor::item(Loc loc) const {
  if (!call_site.active() && impl_ && impl_->meta != nullptr) {
    const Call call(loc);
    note_item(*this);
  }
  const Call call(loc);
  TAPER_CHECK(numel() == 1, "item: the tensor has shape ", sizes(),
              "; only one element is a number");
  TAPER_CHECK(!is_meta(), "item: a meta tensor has no elements");
  Tensor host = *this;
  if (!is_cpu()) {
    host = make_tensor(Layout{}, dtype(), kCPU);
    const Tensor flat = make_tensor(storage(), Layout{storage_offset(), 0, {}, {}}, dtype());
    const Exec exec(device());
    kernels_for(device()).copy(exec, host.as<Out>(), flat.as<In>());
  }
  return visit_dtype(dtype(), [&](auto type) -> Scalar {
    using T = typename decltype(type)::type;
    return Scalar(*static_cast<const T*>(host.data_ptr()));
  });
}

bool Tensor::is_nonzero(Loc loc) const {
  const Call call(loc);
  TAPER_CHECK(numel() == 1, "is_nonzero: the tensor has shape ", sizes(),
              "; only one element is true or false");
  return item(loc).to<bool>();
}

}  // namespace taper
