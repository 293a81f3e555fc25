// Progress of long work.
#include "taper/tools/taper/progress.h"

#include <unistd.h>

namespace taper::tools {

std::string duration(double seconds) {
  char text[48];
  const int whole = static_cast<int>(seconds);
  if (seconds < 60) {
    std::snprintf(text, sizeof text, "%.1f s", seconds);
  } else {
    std::snprintf(text, sizeof text, "%d min %d s", whole / 60, whole % 60);
  }
  return text;
}

Progress::Progress(std::FILE* out, std::string label, std::int64_t total, std::int64_t done)
    : out_(out),
      label_(std::move(label)),
      total_(total < 1 ? 1 : total),
      first_(done),
      done_(done),
      terminal_(isatty(fileno(out)) != 0) {
  tenths_ = static_cast<int>(10 * done / total_);
}

double Progress::seconds() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

std::string Progress::line(std::int64_t done, const std::string& status) const {
  const double fraction = static_cast<double>(done) / static_cast<double>(total_);
  std::string out = label_ + " ";
  if (terminal_) {
    constexpr int kCells = 24;
    const int full = static_cast<int>(fraction * kCells);
    out += '[';
    for (int i = 0; i < kCells; ++i) out += i < full ? '=' : i == full ? '>' : ' ';
    out += ']';
  }
  char percent[16];
  std::snprintf(percent, sizeof percent, " %3d %%  ", static_cast<int>(100 * fraction));
  out += percent + status;
  const std::int64_t now = done - first_;
  if (now > 0 && done < total_) {
    const double left = seconds() / static_cast<double>(now) * static_cast<double>(total_ - done);
    out += "  ETA " + duration(left);
  }
  return out;
}

void Progress::update(std::int64_t done, const std::string& status) {
  done_ = done;
  if (!terminal_) {
    const int tenths = static_cast<int>(10 * done / total_);
    if (tenths == tenths_) return;
    tenths_ = tenths;
    std::fprintf(out_, "%s\n", line(done, status).c_str());
    std::fflush(out_);
    return;
  }
  const auto now = Clock::now();
  if (now - drawn_ < std::chrono::milliseconds(100)) return;
  drawn_ = now;
  std::fprintf(out_, "\r\033[K%s", line(done, status).c_str());
  std::fflush(out_);
}

void Progress::finish(const std::string& status) {
  if (!open_) return;
  open_ = false;
  if (terminal_) std::fprintf(out_, "\r\033[K");
  if (!status.empty()) std::fprintf(out_, "%s %s\n", label_.c_str(), status.c_str());
  std::fflush(out_);
}

}  // namespace taper::tools
