// Measures over sizes and lengths, and draws small panels, all with the same axes.
#include "taper/benchmarks/growth.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>

#include "taper/benchmarks/drawing.h"
#include "taper/benchmarks/kernels.h"
#include "taper/benchmarks/peers.h"
#include "taper/taper.h"

namespace bench {
namespace {

using taper::Tensor;

struct TapeOp {
  const char* name;
  Tensor (*apply)(const Tensor& x, const Tensor& other);
};

// Of tensors of one element.
const TapeOp kTapeOps[] = {
    {"add", [](const Tensor& x, const Tensor& o) { return x + o; }},
    {"mul", [](const Tensor& x, const Tensor& o) { return x * o; }},
    {"div", [](const Tensor& x, const Tensor& o) { return x / o; }},
    {"neg", [](const Tensor& x, const Tensor&) { return -x; }},
    {"relu", [](const Tensor& x, const Tensor&) { return relu(x); }},
    {"tanh", [](const Tensor& x, const Tensor&) { return tanh(x); }},
    {"sigmoid", [](const Tensor& x, const Tensor&) { return sigmoid(x); }},
    {"clone", [](const Tensor& x, const Tensor&) { return x.clone(); }},
    {"view",
     [](const Tensor& x, const Tensor&) {
       return x.view({1, 1});
     }},
    {"transpose", [](const Tensor& x, const Tensor&) { return x.transpose(0, 1); }},
    {"sum", [](const Tensor& x, const Tensor&) { return x.sum({0}, true); }},
    {"matmul", [](const Tensor& x, const Tensor& o) { return matmul(x, o); }},
};

// Seconds for each entry of a chain: forward, backward, and freeing it.
double tape_seconds(const TapeOp& op, long length) {
  const Tensor x = taper::ones({1, 1}, taper::requires_grad()), other = taper::ones({1, 1});
  const double seconds = best_seconds(
      [&] {
        Tensor y = x;
        for (long i = 0; i < length; ++i) y = op.apply(y, other);
        y.backward();
        x.mutable_grad() = Tensor();
      },
      0.01);
  return seconds / static_cast<double>(length);
}

// What each place on the x axis costs, in seconds; NaN where it was not measured.
struct Curve {
  std::vector<double> ours, peer, limit;
};

struct Axes {
  std::vector<double> x;
  double least, most;  // of y
  std::vector<std::pair<double, const char*>> x_labels, y_labels;
};

long available_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  for (long kb = 0; file >> key >> kb >> unit;) {
    if (key == "MemAvailable:") return kb * 1024;
  }
  return 1L << 32;
}

std::vector<long> sizes_of(const Setup& setup) {
  if (setup.tiny) return {1L << 10, 1L << 12};
  std::vector<long> sizes = {1L << 10, 1L << 13, 1L << 16, 1L << 19,
                             1L << 22, 1L << 25, 1L << 28, 1L << 30};
  // Operands, results and copies of both programs.
  while (sizes.back() > available_bytes() / 16) sizes.pop_back();
  return sizes;
}

class Panels {
 public:
  static constexpr int kColumns = 6;
  static constexpr double kWidth = 200, kHeight = 150;

  Panels(Drawing& d, const Axes& axes, double top) : d_(d), axes_(axes), top_(top) {}

  void add(const std::string& title, const Curve& curve) {
    left_ = 30 + count_ % kColumns * kWidth;
    base_ = top_ + count_ / kColumns * kHeight + kHeight - 34;
    ++count_;
    d_.text(left_, base_ - kHigh - 6, title, "start", Drawing::kInk, 11.5);
    for (const auto& [v, label] : axes_.y_labels) {
      d_.line(left_, y(v), left_ + kWide, y(v), Drawing::kFaint, 0.6);
      d_.text(left_ - 3, y(v) + 3, label, "end", Drawing::kDim, 8.5);
    }
    for (const auto& [v, label] : axes_.x_labels) {
      d_.line(x(v), base_ - kHigh, x(v), base_, Drawing::kFaint, 0.6);
      d_.text(x(v), base_ + 11, label, "middle", Drawing::kDim, 8.5);
    }
    draw(curve.limit, Drawing::kDim);
    draw(curve.peer, column_ink(2));
    draw(curve.ours, Drawing::kOursInk);
  }

  double bottom() const { return top_ + (count_ + kColumns - 1) / kColumns * kHeight; }

 private:
  static constexpr double kWide = 155, kHigh = 92;

  double x(double v) const {
    const double least = axes_.x.front(), most = axes_.x.back();
    return left_ + kWide * std::log(v / least) / std::log(most / least);
  }

  double y(double v) const {
    const double part = std::log(v / axes_.least) / std::log(axes_.most / axes_.least);
    return base_ - kHigh * std::clamp(part, 0.0, 1.0);
  }

  void draw(const std::vector<double>& values, const std::string& ink) {
    std::vector<std::pair<double, double>> points;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (std::isfinite(values[i])) points.emplace_back(x(axes_.x[i]), y(values[i]));
    }
    if (points.size() > 1) d_.path(points, ink);
  }

  Drawing& d_;
  const Axes& axes_;
  double top_, left_ = 0, base_ = 0;
  int count_ = 0;
};

double ask_all(std::vector<Column>& peers, const std::string& row) {
  double best = std::nan("");
  for (Column& p : peers) best = std::fmin(best, p.ask(row));
  return best;
}

double draw_kernels(Drawing& d, const Setup& setup, std::vector<Column>& peers, double top) {
  const std::vector<std::string> names = kernel_names();
  Axes axes{{},
            1e-11,
            1e-7,
            {},
            {{1e-11, "0.01"}, {1e-10, "0.1"}, {1e-9, "1"}, {1e-8, "10"}, {1e-7, "100"}}};
  std::vector<Curve> curves(names.size());
  for (const long bytes : sizes_of(setup)) {
    std::fprintf(stderr, "growth: kernels of %ld bytes\n", bytes);
    axes.x.push_back(static_cast<double>(bytes));
    const double elements = static_cast<double>(bytes) / 4;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::string row = names[i] + " @ " + std::to_string(bytes);
      const Turn turn = kKernels.turn(setup, row);
      curves[i].ours.push_back(turn.ours / elements);
      curves[i].limit.push_back(turn.limit / elements);
      curves[i].peer.push_back(ask_all(peers, row) / elements);
    }
  }
  const std::vector<std::pair<double, const char*>> labels = {
      {1L << 10, "1K"}, {1L << 16, "64K"}, {1L << 22, "4M"}, {1L << 28, "256M"}};
  for (const auto& label : labels) {
    if (label.first <= axes.x.back()) axes.x_labels.push_back(label);
  }
  d.text(16, top, "Kernels: ns for each element, over the bytes of a tensor", "start",
         Drawing::kInk, 13);
  Panels panels(d, axes, top + 12);
  for (std::size_t i = 0; i < names.size(); ++i) panels.add(names[i], curves[i]);
  return panels.bottom();
}

double draw_tapes(Drawing& d, const Setup& setup, std::vector<Column>& peers, double top) {
  Axes axes{{},
            1e-8,
            1e-4,
            {},
            {{1e-8, "10"}, {1e-7, "100"}, {1e-6, "1k"}, {1e-5, "10k"}, {1e-4, "100k"}}};
  std::vector<Curve> curves(std::size(kTapeOps));
  for (long length = 10; length <= (setup.tiny ? 100 : 1'000'000); length *= 10) {
    std::fprintf(stderr, "growth: tapes of %ld\n", length);
    axes.x.push_back(static_cast<double>(length));
    for (std::size_t i = 0; i < curves.size(); ++i) {
      curves[i].ours.push_back(tape_seconds(kTapeOps[i], length));
      curves[i].peer.push_back(
          ask_all(peers, "tape " + std::string(kTapeOps[i].name) + " @ " + std::to_string(length)));
    }
  }
  axes.x_labels = {{10, "10"}, {100, "100"}};
  if (!setup.tiny) axes.x_labels = {{10, "10"}, {1e3, "1k"}, {1e5, "100k"}};
  d.text(16, top,
         "Ops on one element: ns for each entry of the tape, forward, backward and freeing, over "
         "its length",
         "start", Drawing::kInk, 13);
  Panels panels(d, axes, top + 12);
  for (std::size_t i = 0; i < curves.size(); ++i) panels.add(kTapeOps[i].name, curves[i]);
  return panels.bottom();
}

}  // namespace

void draw_growth(const Setup& setup, const std::string& path) {
  taper::set_num_threads(setup.threads);
  std::vector<Column> peers;
  for (const Peer& p : torch_peers(setup, "kernels")) {
    if (p.name == kBestTorch) peers.emplace_back(p);
  }
  Drawing d;
  d.text(16, 26,
         "How cost grows, " + std::to_string(setup.threads) +
             (setup.threads == 1 ? " thread" : " threads"),
         "start", Drawing::kInk, 15);
  const char* kWho[] = {"ours", "LibTorch best", "a copy of the same bytes"};
  const std::string inks[] = {Drawing::kOursInk, column_ink(2), Drawing::kDim};
  for (int i = 0; i < 3; ++i) {
    d.line(300 + 150 * i, 22, 326 + 150 * i, 22, inks[i], 2.5);
    d.text(332 + 150 * i, 26, kWho[i], "start", Drawing::kDim);
  }
  const double middle = draw_kernels(d, setup, peers, 54);
  const double bottom = draw_tapes(d, setup, peers, middle + 24);
  d.write(path, Panels::kColumns * Panels::kWidth + 30, bottom + 8);
}

}  // namespace bench
