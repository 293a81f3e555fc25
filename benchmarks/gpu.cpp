// taper_gpu: what a GPU makes of Taper, by what its own calls make of it. taper_gpu [--emulated]
// [--json FILE]
#include <cstdio>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "taper/benchmarks/bench.h"
#include "taper/benchmarks/gpu_peers.h"
#include "taper/taper.h"

using namespace taper;
using bench::device_seconds;

namespace {

struct Report {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  std::string group;

  void begin(const std::string& name) {
    group = name;
    std::printf("\n%s\n", name.c_str());
  }

  // `fraction` is of what `of` names; below 0: there is nothing to compare with.
  void add(const std::string& name,
           double value,
           const std::string& unit,
           double fraction = -1,
           const std::string& of = "") {
    rows.push_back({{"group", group}, {"name", name}, {"value", value}, {"unit", unit}});
    std::printf("  %-34s %12.4g %-8s", name.c_str(), value, unit.c_str());
    if (fraction >= 0) {
      rows.back()["fraction"] = fraction;
      rows.back()["of"] = of;
      std::printf(" %6.1f %% of %s", 100 * fraction, of.c_str());
    }
    std::printf("\n");
    std::fflush(stdout);
  }
};

// Scale that keep the device busy, or that an emulated one is through with in a moment.
struct Scale {
  std::int64_t elements, rows, columns, side, product, indices, transfer;
  int steps;
};

constexpr Scale kReal{64 << 20, 65536, 1024, 8192, 4096, 16 << 20, 256 << 20, 50};
constexpr Scale kTiny{4096, 16, 64, 32, 16, 512, 64 << 10, 2};

const Device kDevice(kCUDA, 0);

Tensor on_device(std::initializer_list<std::int64_t> sizes, DType dtype = kFloat32) {
  return rand(IntArrayRef(sizes.begin(), sizes.size()), TensorOptions(kFloat32).device(kDevice))
      .to(dtype);
}

void memory_kernels(Report& report, const Scale& s) {
  report.begin("kernels that move memory, by cudaMemcpy from device to device");
  const NoGradGuard no_grad;
  const Tensor x = on_device({s.elements}), y = on_device({s.elements});
  const Tensor m = on_device({s.rows, s.columns}), square = on_device({s.side, s.side});
  const Tensor weight = on_device({s.columns}), bias = on_device({s.columns});
  const double rate = 8.0 * static_cast<double>(s.elements) /
                      bench::copy_seconds(static_cast<std::size_t>(s.elements) * 4);
  report.add("cudaMemcpyAsync", rate / 1e9, "GB/s");
  const auto row = [&](const char* name, double bytes, const std::function<void()>& work) {
    const double mine = bytes / device_seconds(work);
    report.add(name, mine / 1e9, "GB/s", mine / rate, "cudaMemcpy");
  };
  const double n = 4.0 * static_cast<double>(s.elements), nm = 4.0 * static_cast<double>(m.numel());
  const double ns = 4.0 * static_cast<double>(square.numel());
  row("copy", 2 * n, [&] { bench::keep(x.clone()); });
  row("add", 3 * n, [&] { bench::keep(x + y); });
  row("relu", 2 * n, [&] { bench::keep(relu(x)); });
  row("sum", n, [&] { bench::keep(x.sum()); });
  row("softmax", 2 * nm, [&] { bench::keep(softmax(m, 1)); });
  row("layer_norm", 2 * nm, [&] { bench::keep(layer_norm(m, {s.columns}, weight, bias)); });
  row("transposed copy", 2 * ns, [&] { bench::keep(square.t().contiguous()); });
}

void products(Report& report, const Scale& s) {
  report.begin("matmul, by cuBLAS called directly");
  const NoGradGuard no_grad;
  struct Case {
    const char* name;
    bench::Product kind;
    DType dtype;
    const char* precision;
  };
  for (const Case& one : {Case{"f32", bench::Product::kF32, kFloat32, "highest"},
                          Case{"f32, rounded to tf32", bench::Product::kTf32, kFloat32, "high"},
                          Case{"bf16", bench::Product::kBf16, kBFloat16, "highest"}}) {
    const Tensor a = on_device({s.product, s.product}, one.dtype);
    const Tensor b = on_device({s.product, s.product}, one.dtype);
    set_float32_matmul_precision(one.precision);
    const double mine = device_seconds([&] { bench::keep(matmul(a, b)); });
    const double theirs = bench::cublas_seconds(one.kind, static_cast<int>(s.product));
    const auto n = static_cast<double>(s.product);
    report.add(one.name, 2 * n * n * n / mine / 1e12, "TFLOP/s", theirs / mine, "cuBLAS");
  }
  set_float32_matmul_precision("highest");
}

void scatters(Report& report, const Scale& s) {
  report.begin("indexing, by index_select of as many elements");
  const NoGradGuard no_grad;
  const std::int64_t targets = s.indices / 16;
  const Tensor index =
      (on_device({s.indices}) * static_cast<double>(targets)).to(kInt64).clamp(0, targets - 1);
  const Tensor source = on_device({s.indices}), to = zeros({targets}).to(kDevice);
  const double taken = device_seconds([&] { bench::keep(to.index_select(0, index)); });
  report.add("index_select", 1000 * taken, "ms");
  const double added = device_seconds([&] { bench::keep(to.scatter_add(0, index, source)); });
  report.add("scatter_add, in order", 1000 * added, "ms", added / taken, "its time");
  allow_atomic_adds(true);
  const double atomic = device_seconds([&] { bench::keep(to.scatter_add(0, index, source)); });
  allow_atomic_adds(false);
  report.add("scatter_add, by atomics", 1000 * atomic, "ms", atomic / taken, "its time");
}

void transfers(Report& report, const Scale& s) {
  report.begin("host and device");
  const std::int64_t n = s.transfer / 4;
  Tensor there = zeros({n}).to(kDevice);
  for (const bool pinned : {false, true}) {
    Tensor host = ones({n});
    if (pinned) host = host.pin_memory();
    const std::string kind = pinned ? "pinned" : "pageable";
    const double up = device_seconds([&] { there.copy_(host, pinned); });
    report.add("to the device, " + kind, static_cast<double>(s.transfer) / up / 1e9, "GB/s");
    const double down = device_seconds([&] { host.copy_(there, pinned); });
    report.add("to the host, " + kind, static_cast<double>(s.transfer) / down / 1e9, "GB/s");
  }
}

void virtual_memory(Report& report) {
  report.begin("calls of the driver's virtual memory");
  for (const int mib : {2, 20}) {
    const bench::VmmTimes t = bench::vmm_times(static_cast<std::size_t>(mib) << 20);
    const std::string size = " of " + std::to_string(mib) + " MiB";
    for (const auto& [name, ms] : {std::pair{"create", t.create}, std::pair{"map", t.map},
                                   std::pair{"set_access", t.set_access},
                                   std::pair{"unmap", t.unmap}, std::pair{"release", t.release}})
      report.add(name + size, 1000 * ms, "us");
  }
}

// Milliseconds of a step, launched op by op and replayed as a graph.
template <class Model, class Loss>
void step_times(
    Report& report, const std::string& name, const Scale& s, Model& model, const Loss& loss_of) {
  model->to(kDevice);
  optim::AdamW optimizer(model->parameters(), 1e-3);
  const auto step = [&] {
    optimizer.zero_grad();
    loss_of().backward();
    optimizer.step();
  };
  cuda::synchronize();  // what was made so far, for another stream
  const StreamGuard on(make_stream(kDevice));
  const auto seconds = [&](const std::function<void()>& work) {
    cuda::synchronize();
    const double start = bench::now();
    for (int i = 0; i < s.steps; ++i) work();
    cuda::synchronize();
    return (bench::now() - start) / s.steps;
  };
  for (int i = 0; i < 3; ++i) step();
  const double eager = seconds(step);
  report.add(name, 1000 * eager, "ms");
  cuda::CUDAGraph graph;
  graph.capture_begin(kDevice);
  step();
  graph.capture_end();
  const double replayed = seconds([&] { graph.replay(); });
  report.add(name + ", as a graph", 1000 * replayed, "ms", replayed / eager, "its time");
}

nn::Sequential make_gpt(std::int64_t letters, std::int64_t width, std::int64_t heads, int blocks) {
  nn::Sequential gpt(nn::Embedding(letters, width));
  for (int i = 0; i < blocks; ++i) gpt->push_back(nn::TransformerBlock(width, heads));
  gpt->push_back(nn::LayerNorm(std::vector<std::int64_t>{width}));
  gpt->push_back(nn::Linear(width, letters));
  return gpt;
}

// The networks of examples/mlp.cpp, cnn.cpp and char_gpt.cpp, and their batches; and a larger one.
void steps(Report& report, const Scale& s, bool tiny) {
  report.begin("a training step");
  manual_seed(1);
  const std::int64_t batch = tiny ? 2 : 64;
  const Tensor images = on_device({batch, 1, 28, 28});
  const Tensor labels = zeros({batch}, kInt64).to(kDevice);
  nn::Sequential mlp(nn::Flatten(), nn::Linear(784, 256), nn::ReLU(), nn::Linear(256, 128),
                     nn::ReLU(), nn::Linear(128, 10));
  step_times(report, "MLP", s, mlp, [&] { return cross_entropy(mlp(images), labels); });
  const std::int64_t width = tiny ? 2 : 16;
  nn::Sequential cnn(nn::Conv2d(nn::Conv2dOptions(1, width, 3).padding(1)), nn::ReLU(),
                     nn::MaxPool2d(2),
                     nn::Conv2d(nn::Conv2dOptions(width, 2 * width, 3).padding(1)), nn::ReLU(),
                     nn::MaxPool2d(2), nn::Flatten(), nn::Linear(2 * width * 7 * 7, 10));
  step_times(report, "CNN", s, cnn, [&] { return cross_entropy(cnn(images), labels); });
  const std::int64_t letters = 65;
  const auto gpt_step = [&](const char* name, std::int64_t texts, std::int64_t context,
                            std::int64_t width_of, std::int64_t heads, int blocks) {
    nn::Sequential gpt = make_gpt(letters, width_of, heads, blocks);
    const Tensor text = zeros({texts, context}, kInt64).to(kDevice);
    step_times(report, name, s, gpt, [&] {
      return cross_entropy(gpt(text).reshape({-1, letters}), text.reshape(-1));
    });
  };
  if (tiny) return gpt_step("GPT", 1, 4, 8, 2, 1);
  gpt_step("GPT, 2 blocks of 64", 16, 64, 64, 4, 2);
  gpt_step("GPT, 6 blocks of 384", 16, 256, 384, 6, 6);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What a GPU makes of Taper");
  bool emulated = false;
  std::string json;
  app.add_flag("--emulated", emulated,
               "On an emulated device, with tiny sizes: times mean nothing");
  app.add_option("--json", json, "Writes the rows to this file");
  CLI11_PARSE(app, argc, argv);
  if (!cuda::is_available() && !(emulated && cuda::device_count() > 0)) {
    std::fprintf(stderr,
                 "taper_gpu: there is no GPU here; --emulated runs it without, in a build "
                 "with TAPER_CUDA=emulated\n");
    return 77;
  }
  const Scale& scale = emulated ? kTiny : kReal;
  Report report;
  try {
    memory_kernels(report, scale);
    products(report, scale);
    scatters(report, scale);
    transfers(report, scale);
    virtual_memory(report);
    steps(report, scale, emulated);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  if (!json.empty()) {
    std::ofstream(json)
        << nlohmann::ordered_json{{"emulated", emulated}, {"rows", report.rows}}.dump(2) << '\n';
  }
}
