// Profiles steps, and draws ops by operations per byte and operations per second.
#include "taper/benchmarks/roofline.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "taper/benchmarks/drawing.h"
#include "taper/benchmarks/machine.h"
#include "taper/benchmarks/models.h"
#include "taper/taper.h"

namespace bench {
namespace {

// One op of a step, its kernels together.
struct Op {
  std::string name;
  double seconds = 0, bytes = 0, flops = 0;
};

// The quickest of each op in several steps.
std::vector<Op> ops_of(const TrainingStep& step) {
  for (int i = 0; i < 5; ++i) step();
  std::map<std::string, Op> by_name;
  for (int i = 0; i < 10; ++i) {
    std::map<std::string, Op> this_step;
    const taper::lens::Profile profile(std::size_t{1} << 14);
    step();
    for (const taper::lens::ProfileEvent& e : profile.events()) {
      Op& op = this_step[e.op + std::string(e.backward ? " backward" : "")];
      op.seconds += static_cast<double>(e.duration) * 1e-9;
      op.bytes += static_cast<double>(e.read + e.written);
      op.flops += e.flops;
    }
    for (const auto& [name, op] : this_step) {
      Op& best = by_name[name];
      if (best.seconds == 0 || op.seconds < best.seconds) best = op;
    }
  }
  std::vector<Op> out;
  for (auto& [name, op] : by_name) {
    op.name = name;
    out.push_back(op);
  }
  std::sort(out.begin(), out.end(), [](const Op& a, const Op& b) { return a.seconds > b.seconds; });
  return out;
}

struct Roofs {
  double flops, bytes;  // per second
};

// A panel's axes: FLOP/byte from 1/64 to 1024, GFLOP/s from 0.25 to 2048.
class Panel {
 public:
  static constexpr double kWidth = 620, kHeight = 400;

  Panel(double left, double top) : left_(left + 52), top_(top + 28) {}

  double x(double intensity) const { return left_ + kWide * part(intensity, 1 / 64.0, 1024); }
  double y(double rate) const { return top_ + kHigh * (1 - part(rate, 0.25e9, 2048e9)); }

  void draw_frame(Drawing& d, const std::string& title, const Roofs& roofs) const {
    d.text(left_ + 24, top_ - 10, title, "start", Drawing::kInk, 14);
    for (double v = 1 / 64.0; v <= 1024; v *= 4) {
      d.line(x(v), top_, x(v), top_ + kHigh, Drawing::kFaint, 0.6);
      d.text(x(v), top_ + kHigh + 15, v < 1 ? "1/" + label(1 / v) : label(v), "middle",
             Drawing::kDim, 10);
    }
    for (double v = 0.25; v <= 2048; v *= 4) {
      d.line(left_, y(v * 1e9), left_ + kWide, y(v * 1e9), Drawing::kFaint, 0.6);
      d.text(left_ - 6, y(v * 1e9) + 4, v < 1 ? "1/" + label(1 / v) : label(v), "end",
             Drawing::kDim, 10);
    }
    d.text(left_ + kWide, top_ + kHigh + 30, "FLOP/byte", "end", Drawing::kDim, 11);
    d.text(left_ - 44, top_ - 10, "GFLOP/s", "start", Drawing::kDim, 11);
    const double ridge = roofs.flops / roofs.bytes;
    d.line(x(1 / 64.0), y(roofs.bytes / 64), x(ridge), y(roofs.flops), Drawing::kInk, 1.6);
    d.line(x(ridge), y(roofs.flops), left_ + kWide, y(roofs.flops), Drawing::kInk, 1.6);
    d.text(left_ + kWide, y(roofs.flops) - 6, "FMA " + label(roofs.flops / 1e9) + " GFLOP/s", "end",
           Drawing::kDim, 11);
    d.text(x(1 / 32.0), y(roofs.bytes / 24) - 24, "copy " + label(roofs.bytes / 1e9) + " GB/s",
           "start", Drawing::kDim, 11);
  }

  double bottom() const { return top_ + kHigh; }
  double right() const { return left_ + kWide; }
  double left() const { return left_; }

 private:
  static constexpr double kWide = 540, kHigh = 310;

  static double part(double v, double least, double most) {
    return std::clamp(std::log(v / least) / std::log(most / least), 0.0, 1.0);
  }

  static std::string label(double v) {
    char text[32];
    std::snprintf(text, sizeof text, "%.0f", v);
    return text;
  }

  double left_, top_;
};

std::string share_text(double share) {
  char text[32];
  std::snprintf(text, sizeof text, " %.0f %%", 100 * share);
  return text;
}

// Words beside points and left of `right`, each moved down past those that it would cover.
class Labels {
 public:
  explicit Labels(double right) : right_(right) {}

  void add(Drawing& d, double x, double y, const std::string& words) {
    const double own = 6.2 * static_cast<double>(words.size());
    x = std::min(x, right_ - own);
    for (bool moved = true; moved;) {
      moved = false;
      for (const auto& [ox, oy, width] : taken_) {
        if (x < ox + width && ox < x + own && std::abs(y - oy) < 12) y = oy + 12, moved = true;
      }
    }
    taken_.push_back({x, y, own});
    d.text(x, y, words, "start", Drawing::kInk, 10.5);
  }

 private:
  struct Place {
    double x, y, width;
  };
  double right_;
  std::vector<Place> taken_;
};

void draw_step(Drawing& d, const Panel& panel, const std::vector<Op>& ops, double peak_flops) {
  double all = 0, moving = 0;
  for (const Op& op : ops) all += op.seconds;
  Labels labels(panel.right() + 10);
  std::string movers;
  for (const Op& op : ops) {
    const double share = op.seconds / all;
    if (op.flops == 0 || op.bytes == 0) {
      moving += share;
      if (share > 0.01) movers += (movers.empty() ? "" : ", ") + op.name + share_text(share);
      continue;
    }
    const double rate = op.flops / op.seconds;
    const double x = panel.x(op.flops / op.bytes), y = panel.y(rate);
    const double radius = 2.5 + 22 * std::sqrt(share);
    d.point(x, y, radius, rate > peak_flops / 2 ? "#3a9d6e" : "#2f78c4",
            op.name + share_text(share));
    if (share > 0.015) labels.add(d, x + radius + 3, y + 4, op.name + share_text(share));
  }
  if (moving > 0.005)
    d.text(panel.left(), panel.bottom() + 30,
           "without arithmetic" + share_text(moving) + (movers.empty() ? "" : ": " + movers),
           "start", Drawing::kDim, 10.5);
}

}  // namespace

void draw_rooflines(const Setup& setup, const std::string& path) {
  taper::set_num_threads(setup.threads);
  const auto [small, large, cnn, gpt] = model_sizes(setup.tiny);
  const std::pair<const char*, TrainingStep> steps[] = {
      {"MLP, batch 64", mlp_step(small)},
      {"MLP, batch 512", mlp_step(large)},
      {"CNN, NCHW", cnn_step(cnn, taper::MemoryFormat::kContiguous)},
      {"CNN, channels_last", cnn_step(cnn, taper::MemoryFormat::kChannelsLast)},
      {"GPT", gpt_step(gpt)},
  };
  Drawing d;
  d.text(16, 26,
         "Ops of training steps under this machine's roofs, " + std::to_string(setup.threads) +
             (setup.threads == 1 ? " thread" : " threads") +
             ": areas are shares of the time in kernels, green is above half the peak",
         "start", Drawing::kInk, 15);
  int n = 0;
  for (const auto& [title, step] : steps) {
    const Panel panel(16 + n % 2 * Panel::kWidth, 50 + n / 2 * Panel::kHeight);
    const Roofs roofs{peak_flops(setup.threads), stream_bytes(setup.threads)};
    panel.draw_frame(d, title, roofs);
    draw_step(d, panel, ops_of(step), roofs.flops);
    ++n;
  }
  d.write(path, 2 * Panel::kWidth + 32, 50 + 3 * Panel::kHeight);
}

}  // namespace bench
