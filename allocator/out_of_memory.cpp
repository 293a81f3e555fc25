// Puts together what is said when a device is full: reads the map, asks the planner and the twin.
#include "taper/allocator/out_of_memory.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "taper/allocator/memory_device.h"
#include "taper/allocator/options.h"
#include "taper/allocator/plan.h"
#include "taper/allocator/ring.h"
#include "taper/allocator/twin.h"
#include "taper/core/base/text.h"

namespace taper {
namespace {

constexpr std::size_t kListed = 5;
constexpr std::size_t kMostReplayed = std::size_t{1} << 16;  // events: a moment, not a minute

// Free bytes that cannot go back are kept by live blocks: each free block's by the nearest live one
// before it in its segment, or else behind it.
class Holders {
 public:
  explicit Holders(const std::vector<SegmentInfo>& map) {
    for (const SegmentInfo& segment : map) add(segment);
  }

  std::vector<Pinner> most(bool by_pinned) const {
    std::vector<Pinner> all;
    for (const auto& [site, pinner] : by_site_) {
      if ((by_pinned ? pinner.pinned : pinner.bytes) == 0) continue;
      all.push_back(pinner);
      const TraceSite who = site_of(site);
      all.back().op = who.op;
      all.back().scope = who.scope;
      if (!who.frames.empty()) {
        const TraceFrame& frame = who.frames.front();
        all.back().file = frame.file;
        all.back().function = frame.function;
        all.back().line = frame.line;
      }
    }
    std::stable_sort(all.begin(), all.end(), [&](const Pinner& a, const Pinner& b) {
      return by_pinned ? a.pinned > b.pinned : a.bytes > b.bytes;
    });
    if (all.size() > kListed) all.resize(kListed);
    return all;
  }

 private:
  void add(const SegmentInfo& segment) {
    const BlockInfo* before = nullptr;
    std::uint64_t waiting = 0;  // pinned bytes before the first live block
    for (const BlockInfo& b : segment.blocks) {
      if (b.state == BlockState::kLive) {
        Pinner& pinner = by_site_[b.site];
        ++pinner.count;
        pinner.bytes += b.bytes;
        pinner.pinned += waiting;
        waiting = 0;
        before = &b;
      } else if (b.state == BlockState::kFree) {
        const std::uint64_t stuck = b.bytes - b.releasable;
        if (before != nullptr) by_site_[before->site].pinned += stuck;
        else waiting += stuck;
      }
    }
  }

  std::map<std::uint32_t, Pinner> by_site_;
};

// "1.46 GiB (1567621120 bytes)": a size that holds to the byte.
std::string exactly(std::uint64_t bytes) {
  return str(size_text(bytes), " (", bytes, " bytes)");
}

// What the events that led here would need, the refused request among them.
std::vector<std::string> what_would_fit(const Allocator& allocator, const MemoryReport& report) {
  std::vector<std::string> out;
  const AllocatorOptions& options = allocator.options();
  if (options.limit != 0 && options.limit < allocator.device().capacity()) {
    out.push_back(str("limit:", size_text(options.limit), " is set; the device has ",
                      size_text(allocator.device().capacity())));
  }
  const bool narrow = allocator.stats().limit != 0 && options.limit == 0 &&
                      allocator.stats().limit < allocator.device().capacity();
  if (narrow) {
    out.push_back(str("the process's address space (ulimit -v?) holds no more than ",
                      size_text(allocator.stats().limit), " of the ",
                      size_text(allocator.device().capacity()), " that there are"));
  }
  if (report.asked > report.capacity) {
    out.emplace_back("the request alone is more than the capacity");
    return out;
  }
  if (options.trace_events == 0) return out;  // nothing was recorded; the twins below end here
  Trace trace = allocator.recent_events();
  if (trace.events.empty() || trace.events.size() > kMostReplayed) return out;
  TraceEvent last;
  if (trace.events.back().action == TraceAction::kOom) {
    last.stream = trace.events.back().stream;
    last.pool = trace.events.back().pool;
  }
  last.bytes = report.asked;
  last.block = trace.allocations++;
  trace.events.push_back(last);
  trace.offsets.clear();
  const MemoryPlan plan = plan_offsets(intervals_of(trace), kBlockBytes);
  out.push_back(str("these allocations need at least ", exactly(plan.max_load), " at once"));
  if (plan.bytes <= report.capacity && !options.plan)
    out.push_back(str("placed by an offline plan they fit in ", exactly(plan.bytes)));
  TwinSettings settings;
  settings.options.trace_events = 0;
  const std::size_t least = min_capacity(trace, settings);
  const bool taper = options.policy == AllocatorPolicy::kTaper;
  if (!taper && least <= report.capacity) {
    out.push_back(str("under policy:taper they fit in ", exactly(least)));
  } else if (least > report.capacity) {
    out.push_back(str("the smallest capacity at which they fit is ", exactly(least)));
  }
  return out;
}

void add_line(std::string& text,
              const char* what,
              std::uint64_t bytes,
              const std::string& note = "") {
  char line[160];
  std::snprintf(line, sizeof line, "\n  %-12s%10s%s", what, size_text(bytes).c_str(),
                note.empty() ? "" : "  ");
  text += line;
  text += note;
}

std::string who(const Pinner& p) {
  std::string text =
      str(p.count, p.count == 1 ? " block" : " blocks", " of ", p.op.empty() ? "no op" : p.op);
  if (p.line != 0)
    text += str(" at ", to_string(SourceLoc(p.file.c_str(), p.function.c_str(), p.line)));
  if (!p.scope.empty()) text += str(", scope ", p.scope);
  return text;
}

// What the counters say: it takes next to no memory, of which there may be none.
MemoryReport sums_of(const Allocator& allocator, std::size_t asked, std::size_t rounded) {
  MemoryReport r;
  const MemoryDevice& device = allocator.device();
  const AllocatorStats stats = allocator.stats();
  r.device = device.name();
  r.options = to_string(allocator.options());
  r.asked = asked;
  r.rounded = rounded;
  r.live = stats.allocated;
  r.pending = stats.pending;
  r.releasable = stats.releasable;
  r.pinned = stats.inactive_split;
  const std::uint64_t reserved = r.live + r.pending + r.releasable + r.pinned;
  const std::size_t limit = allocator.options().limit;
  r.capacity = limit == 0 ? device.capacity() : std::min(limit, device.capacity());
  if (stats.limit != 0) r.capacity = stats.limit;
  r.capacity = std::max(r.capacity, reserved);
  r.unused = std::min<std::uint64_t>(r.capacity - reserved, device.available());
  r.others = r.capacity - reserved - r.unused;
  r.largest_free = stats.largest_free;
  return r;
}

// What the map and the latest events say. Where memory is short, looking may fail as well: then
// what is known has to do.
void look_closer(const Allocator& allocator, MemoryReport& r) {
  try {
    const std::vector<SegmentInfo> map = allocator.memory_map();
    std::uint64_t mapped = 0;
    for (const SegmentInfo& segment : map) mapped += segment.bytes;
    const std::uint64_t reserved = r.live + r.pending + r.releasable + r.pinned;
    const std::uint64_t idle = std::min(r.releasable, reserved - std::min(reserved, mapped));
    r.largest_free = std::max(r.largest_free, idle);  // pages that lie nowhere can be one piece
    const Holders holders(map);
    r.pinners = holders.most(true);
    r.holders = holders.most(false);
    r.would_fit = what_would_fit(allocator, r);
  } catch (const std::exception&) {
  }
}

}  // namespace

std::string MemoryReport::text() const {
  std::string t =
      str("out of memory on ", device, ": asked for ", asked, " bytes (", size_text(asked), ")");
  if (rounded != asked && rounded != 0) t += str(", rounded to ", rounded);
  add_line(t, "capacity", capacity);
  add_line(t, "live", live, "in tensors");
  add_line(t, "pending", pending, "freed, in use by other streams");
  add_line(t, "releasable", releasable, "cached in whole pages");
  add_line(t, "pinned", pinned, "cached, but beside live blocks");
  add_line(t, "others", others, "not ours");
  add_line(t, "unused", unused);
  char line[96];
  std::snprintf(line, sizeof line, "\n  largest free: %s, fragmentation %.2f",
                size_text(largest_free).c_str(), fragmentation);
  t += line;
  for (const Pinner& p : holders) t += str("\n  held: ", size_text(p.bytes), " in ", who(p));
  for (const Pinner& p : pinners) t += str("\n  pinned: ", size_text(p.pinned), " by ", who(p));
  t += str("\n  options: ", options);
  for (const std::string& hint : would_fit) t += "\n  " + hint;
  return t;
}

OutOfMemory::OutOfMemory(MemoryReport report, std::string op, SourceLoc loc, std::string scope)
    : Error(report.text(), std::move(op), loc, std::move(scope)), report_(std::move(report)) {}

void fail_out_of_memory(const Allocator& allocator, std::size_t asked, std::size_t rounded) {
  MemoryReport report = sums_of(allocator, asked, rounded);
  look_closer(allocator, report);
  if (const std::uint64_t free = report.pending + report.releasable + report.pinned; free != 0)
    report.fragmentation = 1 - static_cast<double>(report.largest_free) / static_cast<double>(free);
  try {
    fail("");
  } catch (const Error& e) {  // it knows the op, the line and the scope
    throw OutOfMemory(std::move(report), e.op(), e.loc(), e.scope());
  }
}

}  // namespace taper
