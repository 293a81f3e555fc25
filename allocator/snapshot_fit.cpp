// Places blocks whose addresses are not known, and undoes a trace as the viewer does to see what it
// can take.
#include "taper/allocator/snapshot_fit.h"

#include <algorithm>
#include <map>
#include <set>

namespace taper {
namespace {

constexpr std::uint64_t kMost = std::uint64_t{1} << 50;  // larger ones are not written

std::uint64_t rounded(std::uint64_t bytes, std::uint64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// Best fit, so that blocks that are out together do not overlap.
class Placer {
 public:
  std::uint64_t place(std::uint64_t bytes) {
    const auto it = by_size_.lower_bound({bytes, 0});
    if (it == by_size_.end()) {
      end_ += bytes;
      return end_ - bytes;
    }
    const auto [size, offset] = *it;
    remove(offset, size);
    if (size > bytes) insert(offset + bytes, size - bytes);
    return offset;
  }

  void free(std::uint64_t offset, std::uint64_t bytes) {
    auto next = by_offset_.lower_bound(offset);
    if (next != by_offset_.begin()) {
      const auto [before, size] = *std::prev(next);
      if (before + size == offset) {
        remove(before, size);
        offset = before;
        bytes += size;
      }
    }
    next = by_offset_.lower_bound(offset);
    if (next != by_offset_.end() && next->first == offset + bytes) {
      const auto [after, size] = *next;
      remove(after, size);
      bytes += size;
    }
    insert(offset, bytes);
  }

 private:
  void insert(std::uint64_t offset, std::uint64_t bytes) {
    by_offset_[offset] = bytes;
    by_size_.insert({bytes, offset});
  }

  void remove(std::uint64_t offset, std::uint64_t bytes) {
    by_offset_.erase(offset);
    by_size_.erase({bytes, offset});
  }

  std::map<std::uint64_t, std::uint64_t> by_offset_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> by_size_;
  std::uint64_t end_ = 0;
};

std::vector<std::uint64_t> placed(const Trace& trace, const std::vector<std::uint64_t>& bytes) {
  std::vector<std::uint64_t> offsets(trace.allocations);
  Placer placer;
  for (const TraceEvent& e : trace.events) {
    if (e.block >= bytes.size() || bytes[e.block] == 0) continue;
    const std::uint64_t size = rounded(bytes[e.block], kBlockBytes);
    if (e.action == TraceAction::kAlloc) offsets[e.block] = placer.place(size);
    if (e.action == TraceAction::kFree) placer.free(offsets[e.block], size);
  }
  return offsets;
}

// One segment of all that a trace touches, with the blocks that are out at its end.
SegmentInfo one_segment(const Trace& trace, const FittedTrace& f) {
  SegmentInfo s;
  std::map<std::uint64_t, BlockInfo> live;
  for (const TraceEvent& e : trace.events) {
    if (e.block >= f.bytes.size() || f.bytes[e.block] == 0) continue;
    const std::uint64_t offset = f.offsets[e.block], size = rounded(f.bytes[e.block], kBlockBytes);
    if (e.action == TraceAction::kAlloc) {
      s.bytes = std::max(s.bytes, rounded(offset + size, kPageBytes));
      live[offset] = {offset, size, f.bytes[e.block], BlockState::kLive, e.site, e.entry};
    } else if (e.action == TraceAction::kFree) {
      live.erase(offset);
    }
  }
  std::uint64_t at = 0;
  for (const auto& [offset, b] : live) {
    if (offset < at) continue;  // the offsets were told wrong
    if (offset > at) s.blocks.push_back({at, offset - at, 0, BlockState::kFree, 0, 0});
    s.blocks.push_back(b);
    at = offset + b.bytes;
  }
  if (at < s.bytes) s.blocks.push_back({at, s.bytes - at, 0, BlockState::kFree, 0, 0});
  return s;
}

// The viewer's state while it goes backwards.
class Undo {
 public:
  explicit Undo(const std::vector<SegmentInfo>& segments) {
    for (const SegmentInfo& s : segments) {
      segments_[s.offset] = {s.offset + s.bytes, s.stream};
      for (const BlockInfo& b : s.blocks) {
        if (b.state != BlockState::kFree) live_[b.offset] = b.offset + b.bytes;
      }
    }
  }

  bool inside(std::uint64_t begin, std::uint64_t end) const {
    const auto it = segments_.upper_bound(begin);
    return it != segments_.begin() && std::prev(it)->second.end >= end;
  }

  bool live(std::uint64_t begin, std::uint64_t end) const {
    return touches(live_, begin, end, [](std::uint64_t e) { return e; });
  }

  // Both refuse, and do nothing, where the viewer could not follow.
  bool undo_map(std::uint64_t begin, std::uint64_t end) {
    if (!inside(begin, end) || live(begin, end)) return false;
    const auto it = std::prev(segments_.upper_bound(begin));
    const auto [first, s] = *it;
    segments_.erase(it);
    if (first < begin) segments_[first] = {begin, s.stream};
    if (end < s.end) segments_[end] = s;
    return true;
  }

  bool undo_unmap(std::uint64_t begin, std::uint64_t end, std::uint64_t stream) {
    if (touches(segments_, begin, end, [](const Segment& s) { return s.end; })) return false;
    const auto next = segments_.lower_bound(end);
    if (next != segments_.end() && next->first == end && next->second.stream == stream) {
      end = next->second.end;
      segments_.erase(next);
    }
    const auto after = segments_.lower_bound(begin);
    if (after != segments_.begin()) {
      Segment& before = std::prev(after)->second;
      if (before.end == begin && before.stream == stream) {
        before.end = end;
        return true;
      }
    }
    segments_[begin] = {end, stream};
    return true;
  }

  void undo_free(std::uint64_t begin, std::uint64_t end) { live_[begin] = end; }

  void undo_alloc(std::uint64_t begin) { live_.erase(begin); }

 private:
  struct Segment {
    std::uint64_t end = 0, stream = 0;
  };

  // Whether one of the disjoint ranges has bytes from `begin` to `end`.
  template <class Map, class End>
  static bool touches(const Map& ranges, std::uint64_t begin, std::uint64_t end, End end_of) {
    const auto it = ranges.lower_bound(end);
    return it != ranges.begin() && end_of(std::prev(it)->second) > begin;
  }

  std::map<std::uint64_t, Segment> segments_;
  std::map<std::uint64_t, std::uint64_t> live_;
};

// Undoes the events from the last to the first, and finds those that can be undone.
class Undoer {
 public:
  // `maps` is false where blocks have other addresses than maps.
  Undoer(const Trace& trace, bool maps, FittedTrace& f)
      : trace_(trace),
        maps_(maps),
        f_(f),
        undo_(f.segments),
        of_block_(trace.allocations, Fit::kKeep) {}

  void all() {
    f_.fits.assign(trace_.events.size(), Fit::kKeep);
    for (std::size_t i = trace_.events.size(); i-- > 0;) f_.fits[i] = one(trace_.events[i]);
  }

 private:
  Fit one(const TraceEvent& e) {
    switch (e.action) {
      case TraceAction::kMap:
      case TraceAction::kUnmap: return map(e);
      case TraceAction::kFree: return free(e);
      case TraceAction::kAlloc: return alloc(e);
      case TraceAction::kOom: return Fit::kKeep;
      default: return Fit::kDrop;
    }
  }

  Fit map(const TraceEvent& e) {
    const std::uint64_t begin = e.block * std::uint64_t{kBlockBytes}, end = begin + e.bytes;
    if (!maps_ || end <= begin) return Fit::kDrop;
    const bool fits = e.action == TraceAction::kMap
                          ? undo_.undo_map(begin, end)
                          : undo_.undo_unmap(begin, end, trace_.streams[e.stream]);
    return fits ? Fit::kKeep : Fit::kDrop;
  }

  Fit free(const TraceEvent& e) {
    const std::uint64_t begin = f_.offsets[e.block], end = begin + f_.bytes[e.block];
    Fit& fit = of_block_[e.block];
    if (end <= begin || undo_.live(begin, end)) {
      fit = Fit::kDrop;
    } else if (!undo_.inside(begin, end)) {
      const bool fits = undo_.undo_unmap(begin, end, trace_.streams[e.stream]);
      fit = fits ? Fit::kAlone : Fit::kDrop;
    }
    if (fit != Fit::kDrop) undo_.undo_free(begin, end);
    return fit;
  }

  Fit alloc(const TraceEvent& e) {
    const std::uint64_t begin = f_.offsets[e.block], end = begin + f_.bytes[e.block];
    Fit& fit = of_block_[e.block];
    if (end <= begin) fit = Fit::kDrop;
    if (fit == Fit::kDrop) return fit;
    undo_.undo_alloc(begin);
    if (fit == Fit::kAlone) undo_.undo_map(begin, end);
    return fit;
  }

  const Trace& trace_;
  const bool maps_;
  FittedTrace& f_;
  Undo undo_;
  std::vector<Fit> of_block_;
};

}  // namespace

FittedTrace fit_for_viewer(const DeviceSnapshot& d) {
  FittedTrace f;
  f.bytes.resize(d.trace.allocations);
  for (const TraceEvent& e : d.trace.events) {
    if (e.action == TraceAction::kAlloc && e.bytes < kMost) f.bytes[e.block] = e.bytes;
  }
  const bool known = !d.trace.offsets.empty() || d.trace.allocations == 0;
  f.offsets = known ? d.trace.offsets : placed(d.trace, f.bytes);
  if (known) f.segments = d.segments;
  if (f.segments.empty()) {
    SegmentInfo s = one_segment(d.trace, f);
    if (s.bytes != 0) f.segments.push_back(std::move(s));
  }
  Undoer(d.trace, known, f).all();
  return f;
}

}  // namespace taper
