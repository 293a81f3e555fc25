// The list of kernels, with what each moves at least and which part of a copy's speed is asked of
// it.
#include "taper/benchmarks/kernels.h"

#include <cmath>
#include <cstdlib>

#include "taper/benchmarks/machine.h"
#include "taper/benchmarks/peers.h"
#include "taper/taper.h"

namespace bench {
namespace {

using taper::Tensor;

constexpr long kBytes = 64L << 20;

// Of f32. All sizes are powers of two.
struct Operands {
  long bytes;
  Tensor x, y;            // (rows, columns), about square; y is positive
  Tensor volume;          // x as (a, b, columns)
  Tensor narrow;          // x as (-1, 256)
  Tensor row, short_row;  // (columns), (256)
  Tensor channels;        // (b)
  Tensor mask;            // bool (rows, columns)
};

Operands operands(long bytes) {
  const long n = bytes / 4;
  const int log = static_cast<int>(std::lround(std::log2(static_cast<double>(n))));
  const long columns = 1L << log / 2, rows = n / columns;
  const long b = 1L << (log - log / 2) / 2, width = std::min(256L, n);
  Operands o;
  o.bytes = bytes;
  o.x = taper::randn({rows, columns});
  o.y = taper::rand({rows, columns}) + 0.5;
  o.volume = o.x.view({rows / b, b, columns});
  o.narrow = o.x.view({-1, width});
  o.row = taper::randn({columns});
  o.short_row = taper::randn({width});
  o.channels = taper::randn({b});
  o.mask = o.x > 0;
  return o;
}

struct Kernel {
  const char* name;
  double moved;  // times the tensor's bytes, read and written
  double part;   // asked, of a copy's speed; 0: nothing
  Tensor (*run)(const Operands&);
};

constexpr double kMove = 0.85, kCompute = 0.6, kTranspose = 0.5, kDraw = 0.4;

using O = const Operands&;

const Kernel kKernelList[] = {
    {"add", 3, kMove, [](O o) { return o.x + o.y; }},
    {"mul", 3, kMove, [](O o) { return o.x * o.y; }},
    {"div", 3, kMove, [](O o) { return o.x / o.y; }},
    {"add a row", 2, kMove, [](O o) { return o.x + o.row; }},
    {"relu", 2, kMove, [](O o) { return relu(o.x); }},
    {"where", 3.25, kMove, [](O o) { return where(o.mask, o.x, o.y); }},
    {"sum of all", 1, kMove, [](O o) { return o.x.sum(); }},
    {"sum, last dim", 1, kMove, [](O o) { return o.x.sum({-1}); }},
    {"sum, first dim", 1, kMove, [](O o) { return o.x.sum({0}); }},
    {"clone", 2, kMove, [](O o) { return o.x.clone(); }},
    {"copy to bf16", 1.5, kMove, [](O o) { return o.x.to(taper::kBFloat16); }},
    {"copy, first two of 3 dims swapped", 2, kMove,
     [](O o) { return o.volume.transpose(0, 1).contiguous(); }},
    {"copy, transposed", 2, kTranspose, [](O o) { return o.x.t().contiguous(); }},
    {"exp", 2, kCompute, [](O o) { return exp(o.x); }},
    {"sigmoid", 2, kCompute, [](O o) { return sigmoid(o.x); }},
    {"tanh", 2, kCompute, [](O o) { return tanh(o.x); }},
    {"gelu", 2, kCompute, [](O o) { return gelu(o.x); }},
    {"gelu, by tanh", 2, kCompute, [](O o) { return gelu(o.x, "tanh"); }},
    {"softmax, last dim", 2, kCompute, [](O o) { return softmax(o.x, -1); }},
    {"softmax, first dim", 2, kCompute, [](O o) { return softmax(o.x, 0); }},
    {"softmax, middle dim", 2, kCompute, [](O o) { return softmax(o.volume, 1); }},
    {"layer_norm", 2, kCompute, [](O o) { return layer_norm(o.x, {o.x.size(1)}, o.row, o.row); }},
    {"layer_norm of 256", 2, kCompute,
     [](O o) { return layer_norm(o.narrow, {o.narrow.size(1)}, o.short_row, o.short_row); }},
    {"batch_norm", 2, kCompute,
     [](O o) { return batch_norm(o.volume, {}, {}, o.channels, o.channels, true); }},
    {"group_norm", 2, kCompute,
     [](O o) { return group_norm(o.volume, 2, o.channels, o.channels); }},
    {"var, last dim", 1, kCompute, [](O o) { return var(o.x, taper::IntArrayRef({-1})); }},
    {"var, first dim", 1, kCompute, [](O o) { return var(o.x, taper::IntArrayRef({0})); }},
    {"dropout", 2, kCompute, [](O o) { return dropout(o.x, 0.1); }},
    {"uniform", 1, kDraw, [](O o) { return taper::rand(o.x.sizes()); }},
    {"normal", 1, kDraw, [](O o) { return taper::randn(o.x.sizes()); }},
    {"argmax, last dim", 1, 0, [](O o) { return o.x.argmax(1); }},
    {"cumsum, last dim", 2, 0, [](O o) { return cumsum(o.x, 1); }},
};

std::vector<Row> rows(const Setup&) {
  std::vector<Row> out;
  for (const Kernel& k : kKernelList) {
    out.push_back({k.name, "ms"});
    if (k.part > 0) out.back().goals = {{kLimit, 1 / k.part}};
  }
  return out;
}

Turn turn(const Setup& setup, const std::string& row) {
  const std::size_t at = row.find(" @ ");
  const long bytes = at != std::string::npos ? std::atol(row.c_str() + at + 3)
                     : setup.tiny            ? 1L << 16
                                             : kBytes;
  static Operands o{};
  if (o.bytes != bytes) o = {}, o = operands(bytes);
  const taper::NoGradGuard no_grad;
  for (const Kernel& k : kKernelList) {
    if (row.substr(0, at) != k.name) continue;
    const double seconds = seconds_in_turn([&] { keep(k.run(o)); });
    const double limit = k.moved * static_cast<double>(bytes) / stream_bytes(setup.threads);
    return {seconds, limit};
  }
  return {std::nan("")};
}

std::vector<Peer> peers(const Setup& setup) {
  return torch_peers(setup, "kernels");
}

}  // namespace

std::vector<std::string> kernel_names() {
  std::vector<std::string> out;
  for (const Kernel& k : kKernelList) out.emplace_back(k.name);
  return out;
}

const Group kKernels = {"kernels", "64 MB with fresh outputs, beside a copy", rows, peers, turn,
                        nullptr};

}  // namespace bench
