// Records events in rings, interns call sites, and turns rings into traces.
#include "taper/allocator/ring.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include <sys/mman.h>

#include "taper/core/base/error.h"
#include "taper/core/base/source_loc.h"

namespace taper {
namespace {

struct SiteKey {
  const char* file;
  const char* op;
  const char* entry;  // the op whose entry runs backwards
  const char* function;
  std::uint32_t line, scope;

  friend bool operator==(const SiteKey&, const SiteKey&) = default;
};

// Read without a lock: a slot's number is written after its key, and never changes.
class SiteTable {
 public:
  std::uint32_t find(const SiteKey& key) {
    std::size_t slot = hash(key);
    for (;;) {
      const std::uint32_t number = slots_[slot].load(std::memory_order_acquire);
      if (number == 0) return add(key);
      if (keys_[number] == key) return number;
      slot = (slot + 1) % kSlots;
    }
  }

  SiteKey key(std::uint32_t number) const { return keys_[number]; }

  std::uint32_t count() const { return known_.load(std::memory_order_acquire) + 1; }

  std::mutex& mutex() { return mutex_; }

 private:
  static constexpr std::size_t kSlots = std::size_t{1} << 17;
  static constexpr std::uint32_t kMost = 1u << 16;

  static std::size_t hash(const SiteKey& key) {
    const auto word = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p); };
    const std::uint64_t mix = (word(key.file) >> 4) ^ word(key.op) * 3 ^ word(key.entry) * 5 ^
                              (std::uint64_t{key.line} << 20) ^ (std::uint64_t{key.scope} << 36);
    return (mix * 0x9E3779B97F4A7C15u) >> 47;  // the top 17 bits
  }

  std::uint32_t add(const SiteKey& key) {
    const std::lock_guard lock(mutex_);
    std::size_t slot = hash(key);
    for (;; slot = (slot + 1) % kSlots) {
      const std::uint32_t number = slots_[slot].load(std::memory_order_relaxed);
      if (number == 0) break;
      if (keys_[number] == key) return number;  // another thread was faster
    }
    const std::uint32_t number = known_.load(std::memory_order_relaxed) + 1;
    if (number == kMost) return 0;
    keys_[number] = key;
    known_.store(number, std::memory_order_release);
    slots_[slot].store(number, std::memory_order_release);
    return number;
  }

  std::mutex mutex_;
  std::atomic<std::uint32_t> known_{0};
  std::atomic<std::uint32_t> slots_[kSlots] = {};
  SiteKey keys_[kMost] = {};
};

// All zeros at first, so it takes no room in the file and no time to start.
constinit SiteTable site_table;

struct ClockStart {
  std::uint64_t tick = ticks();
  std::chrono::steady_clock::time_point time = std::chrono::steady_clock::now();
};

const ClockStart clock_start;

// Measured since the program began.
double nanoseconds_per_tick() {
  const std::chrono::duration<double, std::nano> passed =
      std::chrono::steady_clock::now() - clock_start.time;
  const auto counted = static_cast<double>(ticks() - clock_start.tick);
  return counted > 0 ? passed.count() / counted : 1;
}

}  // namespace

std::uint32_t intern_site() {
  const CallSite& s = call_site;
  const SourceLoc loc = s.loc();
  return site_table.find(
      {loc.file, s.op != nullptr ? s.op : s.function, s.entry, loc.function, loc.line, s.scope});
}

TraceSite site_of(std::uint32_t site) {
  TraceSite out;
  if (site == 0 || site >= site_table.count()) return out;
  const SiteKey key = site_table.key(site);
  if (key.op != nullptr) out.op = key.op;
  if (key.entry != nullptr)
    out.op = str("backward of ", key.entry, key.op != nullptr ? str(": ", key.op) : "");
  out.scope = scope_name(key.scope);
  if (key.line != 0) out.frames.push_back({key.file, key.function, key.line});
  return out;
}

void lock_sites() {
  site_table.mutex().lock();
}

void unlock_sites() {
  site_table.mutex().unlock();
}

TraceRing::TraceRing(std::size_t capacity, bool keep_all) : keep_all_(keep_all) {
  if (capacity == 0) return;
  while ((std::size_t{1} << capacity_) < capacity) ++capacity_;
  capacity_ = std::size_t{1} << capacity_;
  void* p = mmap(nullptr, capacity_ * sizeof(TraceEvent), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (p == MAP_FAILED) capacity_ = 0;  // it goes without
  else events_ = static_cast<TraceEvent*>(p);
}

TraceRing::~TraceRing() {
  if (events_ != nullptr) munmap(events_, capacity_ * sizeof(TraceEvent));
}

void TraceRing::make_room() {
  if (keep_all_) {
    void* p = mremap(events_, capacity_ * sizeof(TraceEvent), 2 * capacity_ * sizeof(TraceEvent),
                     MREMAP_MAYMOVE);
    if (p != MAP_FAILED) {
      events_ = static_cast<TraceEvent*>(p);
      capacity_ *= 2;
      return;
    }
  }
  next_ = 0;
  wrapped_ = true;
}

void TraceRing::copy_to(std::vector<TraceEvent>& out) const {
  if (wrapped_) out.insert(out.end(), events_ + next_, events_ + capacity_);
  out.insert(out.end(), events_, events_ + next_);
}

std::uint64_t TraceRing::complete_since() const {
  return wrapped_ ? events_[next_ == capacity_ ? 0 : next_].time : 0;
}

namespace {

// Numbers the blocks and the sites of ring events, which name blocks by offset.
class RingReader {
 public:
  explicit RingReader(Trace& trace) : trace_(trace) { site_numbers_[0] = 0; }

  void read(const TraceEvent& e) {
    switch (e.action) {
      case TraceAction::kAlloc: return alloc(e);
      case TraceAction::kFree: return with_block(e, true);
      case TraceAction::kRecordStream: return with_block(e, false);
      default: add(e);
    }
  }

 private:
  void alloc(TraceEvent e) {
    number_[e.block] = trace_.allocations;
    trace_.offsets.push_back(std::uint64_t{e.block} * kBlockBytes);
    e.block = trace_.allocations++;
    add(e);
  }

  void with_block(TraceEvent e, bool ends) {
    const auto it = number_.find(e.block);
    if (it == number_.end()) return;
    e.block = it->second;
    if (ends) {
      number_.erase(it);
      e.bytes = 0;
      e.site = e.entry = 0;
    }
    add(e);
  }

  void add(TraceEvent e) {
    const auto [it, fresh] = site_numbers_.try_emplace(e.site, trace_.sites.size());
    if (fresh) trace_.sites.push_back(site_of(e.site));
    e.site = static_cast<std::uint32_t>(it->second);
    while (trace_.streams.size() <= e.stream) trace_.streams.push_back(trace_.streams.size());
    trace_.events.push_back(e);
  }

  Trace& trace_;
  std::unordered_map<std::uint32_t, std::uint32_t> number_;  // offset -> block that is out
  std::unordered_map<std::uint32_t, std::size_t> site_numbers_;
};

// Allocations of what was out before the first event: what is freed without having been allocated,
// and what is out now without that.
std::vector<TraceEvent> before_events(const std::vector<TraceEvent>& events,
                                      const std::vector<SegmentInfo>& map) {
  std::vector<TraceEvent> out;
  std::unordered_set<std::uint32_t> seen;  // places that an event names
  for (const TraceEvent& e : events) {
    if (e.action != TraceAction::kAlloc && e.action != TraceAction::kFree) continue;
    if (!seen.insert(e.block).second || e.action == TraceAction::kAlloc) continue;
    TraceEvent& before = out.emplace_back(e);
    before.time = 0;
    before.action = TraceAction::kAlloc;
  }
  for (const SegmentInfo& segment : map) {
    for (const BlockInfo& b : segment.blocks) {
      const auto place = static_cast<std::uint32_t>(b.offset / kBlockBytes);
      if (b.state != BlockState::kLive || b.requested == 0 || seen.contains(place)) continue;
      out.push_back({0, b.requested, place, b.site, b.entry,
                     static_cast<std::uint16_t>(segment.stream), TraceAction::kAlloc,
                     static_cast<std::uint8_t>(std::min<PoolId>(segment.pool, 255))});
    }
  }
  std::sort(out.begin(), out.end(),
            [](const TraceEvent& a, const TraceEvent& b) { return a.block < b.block; });
  return out;
}

}  // namespace

Trace trace_of_rings(std::vector<TraceEvent> events, const std::vector<SegmentInfo>& map) {
  std::stable_sort(events.begin(), events.end(),
                   [](const TraceEvent& a, const TraceEvent& b) { return a.time < b.time; });
  Trace trace;
  trace.source = "recorded";
  RingReader reader(trace);
  for (const TraceEvent& e : before_events(events, map)) reader.read(e);
  const double scale = nanoseconds_per_tick();
  const std::uint64_t start = events.empty() ? 0 : events.front().time;
  for (TraceEvent& e : events) {
    e.time = static_cast<std::uint64_t>(static_cast<double>(e.time - start) * scale);
    reader.read(e);
  }
  return trace;
}

}  // namespace taper
