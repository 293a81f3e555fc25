// LibTorch's side of the kernels group, by the names of benchmarks/kernels.cpp; and chains of ops
// on the tape, for its pictures of growth.
#include <cmath>
#include <cstdlib>

#include <torch/torch.h>

#include "taper/benchmarks/bench.h"
#include "taper/benchmarks/peers/torch_peer.h"

namespace {

using torch::Tensor;

struct Operands {
  long bytes = 0;
  Tensor x, y, volume, narrow, row, short_row, channels, mask;
};

Operands operands(long bytes) {
  const long n = bytes / 4;
  const int log = static_cast<int>(std::lround(std::log2(static_cast<double>(n))));
  const long columns = 1L << log / 2, rows = n / columns;
  const long b = 1L << (log - log / 2) / 2, width = std::min(256L, n);
  Operands o;
  o.bytes = bytes;
  o.x = torch::randn({rows, columns});
  o.y = torch::rand({rows, columns}) + 0.5;
  o.volume = o.x.view({rows / b, b, columns});
  o.narrow = o.x.view({-1, width});
  o.row = torch::randn({columns});
  o.short_row = torch::randn({width});
  o.channels = torch::randn({b});
  o.mask = o.x > 0;
  return o;
}

struct Kernel {
  const char* name;
  Tensor (*run)(const Operands&);
};

using O = const Operands&;

const Kernel kKernelList[] = {
    {"add", [](O o) { return o.x + o.y; }},
    {"mul", [](O o) { return o.x * o.y; }},
    {"div", [](O o) { return o.x / o.y; }},
    {"add a row", [](O o) { return o.x + o.row; }},
    {"relu", [](O o) { return torch::relu(o.x); }},
    {"where", [](O o) { return torch::where(o.mask, o.x, o.y); }},
    {"sum of all", [](O o) { return o.x.sum(); }},
    {"sum, last dim", [](O o) { return o.x.sum(-1); }},
    {"sum, first dim", [](O o) { return o.x.sum(0); }},
    {"clone", [](O o) { return o.x.clone(); }},
    {"copy to bf16", [](O o) { return o.x.to(torch::kBFloat16); }},
    {"copy, first two of 3 dims swapped",
     [](O o) { return o.volume.transpose(0, 1).contiguous(); }},
    {"copy, transposed", [](O o) { return o.x.t().contiguous(); }},
    {"exp", [](O o) { return torch::exp(o.x); }},
    {"sigmoid", [](O o) { return torch::sigmoid(o.x); }},
    {"tanh", [](O o) { return torch::tanh(o.x); }},
    {"gelu", [](O o) { return torch::gelu(o.x); }},
    {"gelu, by tanh", [](O o) { return torch::gelu(o.x, "tanh"); }},
    {"softmax, last dim", [](O o) { return torch::softmax(o.x, -1); }},
    {"softmax, first dim", [](O o) { return torch::softmax(o.x, 0); }},
    {"softmax, middle dim", [](O o) { return torch::softmax(o.volume, 1); }},
    {"layer_norm", [](O o) { return torch::layer_norm(o.x, {o.x.size(1)}, o.row, o.row); }},
    {"layer_norm of 256",
     [](O o) { return torch::layer_norm(o.narrow, {o.narrow.size(1)}, o.short_row, o.short_row); }},
    {"batch_norm",
     [](O o) {
       return torch::batch_norm(o.volume, o.channels, o.channels, {}, {}, true, 0.1, 1e-5, false);
     }},
    {"group_norm", [](O o) { return torch::group_norm(o.volume, 2, o.channels, o.channels); }},
    {"var, last dim", [](O o) { return torch::var(o.x, at::IntArrayRef({-1})); }},
    {"var, first dim", [](O o) { return torch::var(o.x, at::IntArrayRef({0})); }},
    {"dropout", [](O o) { return torch::dropout(o.x, 0.1, true); }},
    {"uniform", [](O o) { return torch::rand(o.x.sizes()); }},
    {"normal", [](O o) { return torch::randn(o.x.sizes()); }},
    {"argmax, last dim", [](O o) { return o.x.argmax(1); }},
    {"cumsum, last dim", [](O o) { return torch::cumsum(o.x, 1); }},
};

struct TapeOp {
  const char* name;
  Tensor (*apply)(const Tensor& x, const Tensor& other);
};

// As in benchmarks/growth.cpp.
const TapeOp kTapeOps[] = {
    {"add", [](const Tensor& x, const Tensor& o) { return x + o; }},
    {"mul", [](const Tensor& x, const Tensor& o) { return x * o; }},
    {"div", [](const Tensor& x, const Tensor& o) { return x / o; }},
    {"neg", [](const Tensor& x, const Tensor&) { return -x; }},
    {"relu", [](const Tensor& x, const Tensor&) { return torch::relu(x); }},
    {"tanh", [](const Tensor& x, const Tensor&) { return torch::tanh(x); }},
    {"sigmoid", [](const Tensor& x, const Tensor&) { return torch::sigmoid(x); }},
    {"clone", [](const Tensor& x, const Tensor&) { return x.clone(); }},
    {"view",
     [](const Tensor& x, const Tensor&) {
       return x.view({1, 1});
     }},
    {"transpose", [](const Tensor& x, const Tensor&) { return x.transpose(0, 1); }},
    {"sum", [](const Tensor& x, const Tensor&) { return x.sum(0, true); }},
    {"matmul", [](const Tensor& x, const Tensor& o) { return torch::matmul(x, o); }},
};

double tape_seconds(const std::string& name, long length) {
  const Tensor x = torch::ones({1, 1}, torch::requires_grad()), other = torch::ones({1, 1});
  for (const TapeOp& op : kTapeOps) {
    if (name != op.name) continue;
    const double seconds = bench::best_seconds(
        [&] {
          Tensor y = x;
          for (long i = 0; i < length; ++i) y = op.apply(y, other);
          y.backward();
          x.mutable_grad() = Tensor();
        },
        0.01);
    return seconds / static_cast<double>(length);
  }
  return std::nan("");
}

}  // namespace

double kernel_seconds(const std::string& row) {
  const std::size_t at = row.find(" @ ");
  const long number = at == std::string::npos ? 0 : std::atol(row.c_str() + at + 3);
  if (row.rfind("tape ", 0) == 0) return tape_seconds(row.substr(5, at - 5), number);
  const long bytes = number == 0 ? 64L << 20 : number;
  static Operands o;
  if (o.bytes != bytes) o = {}, o = operands(bytes);
  const torch::NoGradGuard no_grad;
  for (const Kernel& k : kKernelList) {
    if (row.substr(0, at) != k.name) continue;
    return bench::seconds_in_turn([&] { bench::keep(k.run(o)); });
  }
  return std::nan("");
}
