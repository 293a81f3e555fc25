// Timing kernel calls, and adding them up.
#include "taper/autograd/lens/profile.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>

#include "taper/autograd/lens/slot_info.h"
#include "taper/autograd/lens/trace.h"
#include "taper/core/base/spin_lock.h"

namespace taper::lens {
namespace {

constexpr std::size_t kChunk = 4096;  // events that are made room for at once

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::uint32_t this_thread() {
  static constinit std::atomic<std::uint32_t> seen{0};
  static thread_local const std::uint32_t number = ++seen;
  return number;
}

// When this thread's kernel began. Kernels that are watched do not nest.
constinit thread_local std::int64_t begun = 0;

struct Row {
  std::string name;
  std::int64_t time = 0, backward = 0, calls = 0;
  double bytes = 0, flops = 0;
};

std::string name_of(const ProfileEvent& e, By by) {
  if (by == By::kLine) return taper::to_string(e.loc);
  if (by == By::kOp) return e.backward ? str(e.op, " backward") : e.op;
  const std::string& scope = scope_name(e.scope);
  return scope.empty() ? "(no module)" : scope;
}

// "12.3 ms"
std::string time_text(double ns) {
  char text[32];
  if (ns >= 1e9) std::snprintf(text, sizeof text, "%.2f s", ns / 1e9);
  else if (ns >= 1e6) std::snprintf(text, sizeof text, "%.2f ms", ns / 1e6);
  else std::snprintf(text, sizeof text, "%.2f us", ns / 1e3);
  return text;
}

void append_row(std::string& out, const Row& row, std::int64_t total) {
  const auto time = static_cast<double>(row.time), calls = static_cast<double>(row.calls);
  char text[160];
  std::snprintf(text, sizeof text, "%5.1f %% %10s %8.0f %% %8lld %10s %8.1f %8.1f  ",
                100 * time / static_cast<double>(total), time_text(time).c_str(),
                100 * static_cast<double>(row.backward) / std::max(time, 1.0),
                static_cast<long long>(row.calls), time_text(time / calls).c_str(),
                row.bytes / std::max(time, 1.0), row.flops / std::max(time, 1.0));
  out += text + row.name + "\n";
}

}  // namespace

struct Profile::State {
  std::int64_t start = now();
  std::size_t most_events = 0, count = 0, dropped = 0;
  mutable SpinLock lock;
  std::vector<std::vector<ProfileEvent>> chunks;  // events never move
};

Profile::Profile(std::size_t most_events) : state_(std::make_unique<State>()) {
  state_->most_events = most_events;
  install(*this);
}

Profile::~Profile() {
  remove(*this);
}

void Profile::before(const KernelCall&) {
  begun = now();
}

void Profile::after(const KernelCall& call) {
  const std::int64_t end = now();
  ProfileEvent e;
  e.kernel = slot_name(call.slot);
  e.backward = call_site.entry != nullptr;
  e.op = e.backward ? call_site.entry : call_site.op != nullptr ? call_site.op : e.kernel;
  e.function = call_site.function != nullptr ? call_site.function : e.op;
  e.loc = call_site.loc();
  e.scope = call_site.scope;
  e.thread = this_thread();
  e.entry = call_site.entry_index;
  e.start = begun - state_->start;
  e.duration = end - begun;
  for (const View* v : call.reads) e.read += bytes_of(*v);
  for (const View* v : call.writes) e.written += bytes_of(*v);
  e.flops = flops_of(call);
  const std::lock_guard lock(state_->lock);
  if (state_->count == state_->most_events) return void(++state_->dropped);
  if (state_->count++ % kChunk == 0) state_->chunks.emplace_back().reserve(kChunk);
  state_->chunks.back().push_back(e);
}

std::vector<ProfileEvent> Profile::events() const {
  std::vector<ProfileEvent> all;
  {
    const std::lock_guard lock(state_->lock);
    for (const auto& chunk : state_->chunks) all.insert(all.end(), chunk.begin(), chunk.end());
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const ProfileEvent& a, const ProfileEvent& b) { return a.start < b.start; });
  return all;
}

std::size_t Profile::dropped() const {
  const std::lock_guard lock(state_->lock);
  return state_->dropped;
}

std::string Profile::table(By by, std::size_t most_rows) const {
  std::map<std::string, Row> rows_by_name;
  Row all;
  for (const ProfileEvent& e : events()) {
    for (Row* row : {&rows_by_name[name_of(e, by)], &all}) {
      row->time += e.duration;
      row->backward += e.backward ? e.duration : 0;
      ++row->calls;
      row->bytes += static_cast<double>(e.read + e.written);
      row->flops += e.flops;
    }
  }
  if (all.calls == 0) return "no kernel ran\n";
  std::vector<Row> rows;
  for (auto& [name, row] : rows_by_name) {
    row.name = name;
    rows.push_back(row);
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.time > b.time; });
  constexpr const char* kTitles[] = {"line", "op", "module"};
  char head[160];
  std::snprintf(head, sizeof head, "%7s %10s %10s %8s %10s %8s %8s  %s\n", "share", "time",
                "backward", "kernels", "each", "GB/s", "GFLOP/s", kTitles[static_cast<int>(by)]);
  std::string out = head;
  Row rest;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i < most_rows) {
      append_row(out, rows[i], all.time);
      continue;
    }
    rest.time += rows[i].time;
    rest.backward += rows[i].backward;
    rest.calls += rows[i].calls;
    rest.bytes += rows[i].bytes;
    rest.flops += rows[i].flops;
  }
  if (rest.calls != 0) {
    rest.name = str("(", rows.size() - most_rows, " more)");
    append_row(out, rest, all.time);
  }
  all.name = "all";
  append_row(out, all, all.time);
  if (dropped() != 0)
    out += str(dropped(), " later kernels were counted only; give Profile more room\n");
  return out;
}

void Profile::write(const std::string& path, SourceLoc loc) const {
  const Call call(loc);
  write_trace(path, events());
}

}  // namespace taper::lens
