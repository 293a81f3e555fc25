// Snapshots for tests: a toy allocator that keeps map, events and addresses consistent.
#pragma once
#include <map>
#include <random>
#include <set>

#include "taper/allocator/snapshot.h"

namespace taper::testing {

// Places blocks by first fit, maps pages when they are needed and unmaps some that are free.
class ToyRun {
 public:
  explicit ToyRun(unsigned seed) : random_(seed), builder_("toy") {
    builder_.trace.device = "cuda:0";
    builder_.trace.streams = {0, 94'000'000'007, 3};
    builder_.trace.sites.push_back({"matmul", "encoder.0.attn", {{"train.cpp", "main", 42}}});
    builder_.trace.sites.push_back({"", "", {{"a \"b\"\\\n.cpp", "f<int>", 7}, {"g.cpp", "g", 1}}});
    builder_.trace.sites.push_back({"relu", "", {}});
  }

  void run(int events) {
    for (int i = 0; i < events; ++i) {
      builder_.now += random() % 5000;
      const unsigned what = random() % 100;
      if (what < 48 || live_.empty()) alloc();
      else if (what < 88) free();
      else if (what < 92) unmap();
      else other(what);
    }
  }

  DeviceSnapshot snapshot() const {
    DeviceSnapshot d;
    d.device = builder_.trace.device;
    d.base = 0x7f00'0000'0000;
    d.trace = builder_.trace;
    for (const std::uint64_t page : pages_) {
      const std::uint64_t begin = page * kPageBytes;
      if (d.segments.empty() || d.segments.back().offset + d.segments.back().bytes != begin)
        d.segments.push_back({begin, 0, 0, 0, false, {}});
      d.segments.back().bytes += kPageBytes;
    }
    for (SegmentInfo& s : d.segments) fill(s);
    return d;
  }

 private:
  struct Live {
    std::uint64_t bytes;
    std::uint32_t block;
  };

  std::uint32_t random() { return static_cast<std::uint32_t>(random_()); }

  static std::uint64_t size_of(std::uint64_t bytes) {
    return (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
  }

  TraceEvent& last() { return builder_.trace.events.back(); }

  void alloc() {
    const std::uint64_t bytes = std::uint64_t{1} << random() % 23 | random() % 1000;
    std::uint64_t at = 0;
    for (const auto& [offset, b] : live_) {
      if (offset - at >= size_of(bytes)) break;
      at = offset + size_of(b.bytes);
    }
    map(at / kPageBytes, (at + size_of(bytes) + kPageBytes - 1) / kPageBytes);
    const auto stream = static_cast<std::uint16_t>(random() % 8 == 0 ? random() % 3 : 0);
    live_[at] = {bytes, builder_.alloc(bytes, stream, random() % 4)};
    last().entry = random() % 3;
    last().pool = random() % 16 == 0;
    builder_.trace.offsets.push_back(at);
  }

  void free() {
    auto it = live_.lower_bound(random() % (live_.rbegin()->first + 1));
    builder_.free(it->second.block);
    last().site = random() % 2;
    live_.erase(it);
  }

  void map(std::uint64_t first, std::uint64_t end) {
    for (; first < end; ++first) {
      std::uint64_t run = first;
      while (run < end && pages_.insert(run).second) ++run;
      if (run == first) continue;
      page_event(TraceAction::kMap, first, run - first);
      first = run;
    }
  }

  void unmap() {
    for (const std::uint64_t page : pages_) {
      const auto next = live_.lower_bound((page + 1) * kPageBytes);
      if (next != live_.begin() &&
          std::prev(next)->first + size_of(std::prev(next)->second.bytes) > page * kPageBytes)
        continue;
      pages_.erase(page);
      return page_event(TraceAction::kUnmap, page, 1);
    }
  }

  void page_event(TraceAction action, std::uint64_t page, std::uint64_t count) {
    TraceEvent e;
    e.time = builder_.now;
    e.bytes = count * kPageBytes;
    e.block = static_cast<std::uint32_t>(page * (kPageBytes / kBlockBytes));
    e.action = action;
    builder_.trace.events.push_back(e);
  }

  void other(unsigned what) {
    const auto stream = static_cast<std::uint16_t>(random() % 3);
    if (what == 92) builder_.record_stream(live_.begin()->second.block, stream);
    else if (what == 93) builder_.work(stream, 1'000'000);
    else if (what == 94) builder_.wait(stream, 0);
    else if (what == 95) builder_.synchronize();
    else if (what == 96) builder_.empty_cache();
    else if (what == 97) builder_.step();
    else if (what == 98) page_event(TraceAction::kOom, 0, 1000);
    else {
      builder_.trace.offsets.push_back(0);
      builder_.free(builder_.alloc(0));
    }
  }

  void fill(SegmentInfo& s) const {
    std::uint64_t at = s.offset;
    const std::uint64_t end = s.offset + s.bytes;
    for (auto it = live_.lower_bound(s.offset); it != live_.end() && it->first < end; ++it) {
      const auto& [offset, b] = *it;
      if (offset > at) s.blocks.push_back({at, offset - at, 0, BlockState::kFree, 0, 0});
      s.blocks.push_back({offset, size_of(b.bytes), b.bytes, BlockState::kLive, b.block % 4, 0});
      at = offset + size_of(b.bytes);
    }
    if (at < end) s.blocks.push_back({at, end - at, 0, BlockState::kFree, 0, 0});
  }

  std::mt19937 random_;
  TraceBuilder builder_;
  std::map<std::uint64_t, Live> live_;  // by offset
  std::set<std::uint64_t> pages_;
};

inline Snapshot toy_snapshot(unsigned seed, int events) {
  ToyRun run(seed);
  run.run(events);
  Snapshot s;
  s.options = "policy:taper,slack:0.1";
  s.devices.push_back(run.snapshot());
  return s;
}

}  // namespace taper::testing
