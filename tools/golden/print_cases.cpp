// Prints about forty tensors with LibTorch's operator<<, one JSON line each: dtype, shape, values
// and the text.
#include <iomanip>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include <torch/torch.h>

namespace {

const double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::numeric_limits<double>::quiet_NaN();

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string number(double x) {
  if (std::isnan(x)) return R"({"f":"nan"})";
  if (std::isinf(x)) return x > 0 ? R"({"f":"inf"})" : R"({"f":"-inf"})";
  std::ostringstream s;
  s << std::setprecision(17) << x;
  return s.str();
}

template <class T, class Write> std::string joined(const std::vector<T>& items, Write write) {
  std::string out = "[";
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += ',';
    out += write(items[i]);
  }
  return out + "]";
}

struct Dtype {
  const char* name;
  torch::ScalarType type;
};

const Dtype kF64{"f64", torch::kFloat64}, kF32{"f32", torch::kFloat32},
    kF16{"f16", torch::kFloat16};
const Dtype kBF16{"bf16", torch::kBFloat16}, kI64{"i64", torch::kInt64}, kI32{"i32", torch::kInt32};
const Dtype kU8{"u8", torch::kUInt8}, kBool{"bool", torch::kBool};

void show(const Dtype& dtype,
          const std::vector<int64_t>& shape,
          const std::vector<double>& values) {
  const torch::Tensor t = torch::tensor(values, torch::kFloat64).reshape(shape).to(dtype.type);
  std::ostringstream text;
  text << t;
  std::cout << R"({"dtype":")" << dtype.name << R"(","shape":)"
            << joined(shape, [](int64_t n) { return std::to_string(n); }) << R"(,"values":)"
            << joined(values, [](double x) { return number(x); }) << R"(,"text":)"
            << quoted(text.str()) << "}\n";
}

std::vector<double> ramp(int n, double first, double step) {
  std::vector<double> values;
  for (int i = 0; i < n; ++i) values.push_back(first + step * i);
  return values;
}

void show_scalars() {
  show(kF32, {}, {1});
  show(kF32, {}, {0.1});
  show(kF64, {}, {-1234.5678});
  show(kF32, {}, {kNaN});
  show(kF32, {}, {-kInf});
  show(kI64, {}, {-7});
  show(kI32, {}, {2147483647});
  show(kBool, {}, {1});
  show(kF16, {}, {0.333});
  show(kBF16, {}, {0.333});
}

void show_vectors() {
  show(kF32, {0}, {});
  show(kF32, {2, 0}, {});
  show(kF32, {3}, {1, 2, 3});
  show(kF32, {3}, {1, 2.5, -3});
  show(kF32, {4}, {0.1, 100, 10000, 0.001});
  show(kF32, {3}, {1e-8, 1, 1e8});
  show(kF64, {3}, {1e-300, 1, 1e300});
  show(kF32, {3}, {123456, 2, 3});
  show(kF32, {2}, {1e10, 1});
  show(kF32, {4}, {1, kNaN, kInf, -kInf});
  show(kF32, {2}, {kNaN, kNaN});
  show(kF32, {3}, {0, 0, 0});
  show(kF32, {3}, {-1, -20, -300});
  show(kI64, {3}, {1, -20, 300});
  show(kI32, {2}, {-1, 1000000});
  show(kU8, {3}, {0, 7, 255});
  show(kBool, {3}, {1, 0, 1});
  show(kF16, {3}, {1, 0.5, 65504});
  show(kBF16, {3}, {1.5, -0.25, 3e38});
  show(kF32, {1}, {0.00012345});
  show(kF32, {2}, {99999, 100000});
  show(kF32, {2}, {99999.5, 0.5});
}

void show_matrices() {
  show(kF32, {2, 3}, ramp(6, 0, 1));
  show(kF32, {2, 3}, ramp(6, -1, 0.37));
  show(kF64, {2, 2}, {1e-5, 2e-5, 3e-5, 4e-5});
  show(kF32, {2, 2}, {1000, 0.5, -20000, 3});
  show(kF32, {1, 1}, {42});
  show(kI64, {2, 2}, {1, 20, -300, 4000});
  show(kBool, {2, 2}, {1, 0, 0, 1});
  show(kF32, {2, 30}, ramp(60, 0, 1.5));
  show(kF32, {2, 3}, {1, kNaN, 3, kInf, 5, 6});
  show(kF16, {2, 2}, {0.1, 0.2, 0.3, 0.4});
  show(kF32, {2, 2, 3}, ramp(12, 0, 1));
  show(kF64, {1, 2, 2}, ramp(4, 0.25, 0.5));
  show(kI64, {2, 1, 2, 2}, ramp(8, 0, 3));
  show(kF32, {2, 0, 3}, {});
}

}  // namespace

int main() {
  show_scalars();
  show_vectors();
  show_matrices();
}
