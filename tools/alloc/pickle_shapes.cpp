// Makes frames, blocks, segments and events of dicts, and traces of them.
#include "taper/tools/alloc/pickle_shapes.h"

#include <algorithm>
#include <random>

namespace taper::tools {
namespace {

constexpr std::size_t kMostFrames = 32;  // of a site; those that are nearest to the allocation
constexpr std::size_t kMostTexts = std::size_t{1} << 18;
constexpr std::size_t kMostDifferentFrames = std::size_t{1} << 20;
constexpr std::size_t kMostRecords = std::size_t{1} << 27;  // blocks, sites
constexpr std::size_t kMostDevices = 1024;

// The texts that mean something; their numbers are their places here. Keys first.
enum Word : std::uint32_t {
  kAction,
  kAddr,
  kAddress,
  kSize,
  kStream,
  kTimeUs,
  kFramesKey,
  kDevice,
  kBlocksKey,
  kRequestedSize,
  kState,
  kHistoryKey,
  kRealSize,
  kName,
  kFilename,
  kLine,
  kKeys,  // how many; then:
  kAllocWord = kKeys,
  kFreeWord,
  kFreeRequested,
  kFreeCompleted,
  kSegmentAlloc,
  kSegmentFree,
  kSegmentMap,
  kSegmentUnmap,
  kOomWord,
  kSnapshotWord,
  kUserDefined,
  kActiveAllocated,
};

constexpr const char* kWords[] = {
    "action",        "addr",           "address",        "size",
    "stream",        "time_us",        "frames",         "device",
    "blocks",        "requested_size", "state",          "history",
    "real_size",     "name",           "filename",       "line",
    "alloc",         "free",           "free_requested", "free_completed",
    "segment_alloc", "segment_free",   "segment_map",    "segment_unmap",
    "oom",           "snapshot",       "user_defined",   "active_allocated"};

PickleValue value(PickleKind kind, std::uint64_t bits = 0) {
  PickleValue v;
  v.kind = kind;
  v.bits = bits;
  return v;
}

}  // namespace

const char* to_string(PickleKind kind) {
  constexpr const char* kNames[] = {
      "None",   "a bool",  "a number",         "a fraction", "a text",  "an empty list",
      "a dict", "other",   "a frame",          "frames",     "events",  "a trace",
      "traces", "a block", "a list of blocks", "a history",  "history", "a segment"};
  return kNames[static_cast<int>(kind)];
}

// The values of the keys that mean something; null where a key is missing.
struct PickleShapes::Fields {
  const PickleValue* at[kKeys] = {};
};

PickleShapes::PickleShapes(TraceInput& input) : in_(input), seed_(std::random_device{}()) {
  for (const char* word : kWords) text(word);
}

void PickleShapes::refuse(const std::string& problem) const {
  in_.refuse(problem);
}

std::uint64_t PickleShapes::text(std::string text) {
  const auto next = static_cast<std::uint32_t>(text_.size());
  const auto [it, fresh] = texts_.try_emplace(std::move(text), next);
  if (fresh) {
    if (next == kMostTexts) refuse(str("more than ", kMostTexts, " different texts"));
    in_.charge(it->first.size());
    text_.push_back(&it->first);
  }
  return it->second;
}

std::uint64_t PickleShapes::hash(const std::uint32_t* words, std::size_t count) const {
  std::uint64_t h = seed_;
  for (std::size_t i = 0; i < count; ++i) {
    h = (h ^ words[i]) * 0x9e3779b97f4a7c15;
    h ^= h >> 29;
  }
  return h * 0xd6e8feb86659fd93;
}

std::uint64_t PickleShapes::number(const PickleValue* v, const char* key) const {
  if (v == nullptr) refuse(str("expected the key '", key, "'"));
  if (v->kind != PickleKind::kNumber)
    refuse(str("expected a whole number as '", key, "', got ", to_string(v->kind)));
  if (static_cast<std::int64_t>(v->bits) < 0)
    refuse(str("expected '", key, "' of at least 0, got ", static_cast<std::int64_t>(v->bits)));
  return v->bits;
}

std::uint64_t PickleShapes::number_or(const PickleValue* v,
                                      const char* key,
                                      std::uint64_t otherwise) const {
  return v == nullptr || v->kind == PickleKind::kNone ? otherwise : number(v, key);
}

std::uint32_t PickleShapes::text_number(const PickleValue* v) const {
  if (v->kind != PickleKind::kText) refuse(str("expected a text, got ", to_string(v->kind)));
  return static_cast<std::uint32_t>(v->bits);
}

std::uint32_t PickleShapes::site_of(const PickleValue* v) const {
  if (v == nullptr || v->kind == PickleKind::kList || v->kind == PickleKind::kNone) return 0;
  if (v->kind != PickleKind::kFrames)
    refuse(str("expected a list of frames, got ", to_string(v->kind)));
  return static_cast<std::uint32_t>(v->bits);
}

PickleValue PickleShapes::dict(const PickleValue* pairs, std::size_t count, PickleValue* around) {
  Fields f;
  for (std::size_t i = 0; i < count; ++i) {
    const PickleValue& key = pairs[2 * i];
    if (key.kind == PickleKind::kText && key.bits < kKeys) f.at[key.bits] = &pairs[2 * i + 1];
  }
  if (f.at[kAction] != nullptr) {
    event(f, around);
    return value(PickleKind::kEvents);
  }
  if (f.at[kBlocksKey] != nullptr) return segment(f);
  if (f.at[kRealSize] != nullptr) return history(f);
  if (f.at[kName] != nullptr && f.at[kFilename] != nullptr && f.at[kLine] != nullptr)
    return frame(f);
  if (f.at[kState] != nullptr && f.at[kSize] != nullptr) return block(f);
  return value(PickleKind::kOther);
}

void PickleShapes::event(const Fields& f, PickleValue* around) {
  if (around == nullptr) refuse("expected a list around the events");
  if (around->kind == PickleKind::kList) {
    if (traces_.size() == kMostDevices) refuse(str("more than ", kMostDevices, " traces"));
    around->kind = PickleKind::kTrace;
    around->bits = traces_.size();
    traces_.push_back(std::make_unique<AddressTrace>(in_));
  }
  AddressTrace& trace = *traces_[around->bits];
  const std::uint32_t action = text_number(f.at[kAction]);
  if (action == kSnapshotWord || action == kUserDefined) return;
  AddressTrace::Event e;
  e.bytes = number(f.at[kSize], "size");
  e.stream = number_or(f.at[kStream], "stream", 0);
  e.site = site_of(f.at[kFramesKey]);
  const std::uint64_t micros = number_or(f.at[kTimeUs], "time_us", 0);
  if (micros > UINT64_MAX / 1000) refuse(str("the time ", micros, " us is too late"));
  e.time = micros * 1000;
  if (action == kOomWord) return trace.told(TraceAction::kOom, e);
  e.address = number(f.at[kAddr], "addr");
  switch (action) {
    case kAllocWord: return trace.alloc(e);
    case kFreeRequested: return trace.free(e);
    case kFreeCompleted: return trace.completed(e);
    case kFreeWord: trace.free(e); return trace.completed(e);
    case kSegmentAlloc:
    case kSegmentMap: return trace.told(TraceAction::kMap, e);
    case kSegmentFree:
    case kSegmentUnmap: return trace.told(TraceAction::kUnmap, e);
    default: refuse("expected an action, got " + shown(*text_[action]));
  }
}

PickleValue PickleShapes::frame(const Fields& f) {
  Frame r;
  r.name = text_number(f.at[kName]);
  r.file = text_number(f.at[kFilename]);
  const std::uint64_t line = f.at[kLine]->kind == PickleKind::kNumber ? f.at[kLine]->bits : 0;
  r.line = line > UINT32_MAX ? 0 : static_cast<std::uint32_t>(line);  // -1: not known
  const std::uint32_t words[] = {r.name, r.file, r.line};
  const auto next = static_cast<std::uint32_t>(frames_.size());
  const auto [it, fresh] = frame_numbers_.try_emplace(hash(words, 3), next);
  if (!fresh && frames_[it->second] == r) return value(PickleKind::kFrame, it->second);
  if (next == kMostDifferentFrames)
    refuse(str("more than ", kMostDifferentFrames, " different frames"));
  frames_.push_back(r);
  return value(PickleKind::kFrame, next);
}

PickleValue PickleShapes::history(const Fields& f) {
  if (histories_.size() == kMostRecords) refuse("too many blocks");
  Block h;
  h.bytes = number(f.at[kRealSize], "real_size");
  h.site = site_of(f.at[kFramesKey]);
  histories_.push_back(h);
  return value(PickleKind::kHistory, histories_.size() - 1);
}

PickleValue PickleShapes::block(const Fields& f) {
  if (blocks_.size() == kMostRecords) refuse("too many blocks");
  Block b;
  b.size = number(f.at[kSize], "size");
  b.bytes = number_or(f.at[kRequestedSize], "requested_size", b.size);
  b.has_address = f.at[kAddress] != nullptr;
  if (b.has_address) b.address = number(f.at[kAddress], "address");
  b.site = site_of(f.at[kFramesKey]);
  const PickleValue* history = f.at[kHistoryKey];
  if (history != nullptr && history->kind == PickleKind::kHistories) {
    const Block& h = histories_[history->bits];
    if (f.at[kRequestedSize] == nullptr) b.bytes = h.bytes;
    if (b.site == 0) b.site = h.site;
  }
  b.live = text_number(f.at[kState]) == kActiveAllocated;
  blocks_.push_back(b);
  return value(PickleKind::kBlock, blocks_.size() - 1);
}

PickleValue PickleShapes::segment(const Fields& f) {
  Segment s;
  const PickleValue* blocks = f.at[kBlocksKey];
  if (blocks->kind == PickleKind::kBlocks) s.blocks = ranges_[blocks->bits];
  else if (blocks->kind != PickleKind::kList)
    refuse(str("expected a list of blocks, got ", to_string(blocks->kind)));
  s.address = number(f.at[kAddress], "address");
  s.stream = number_or(f.at[kStream], "stream", 0);
  const std::uint64_t device = number_or(f.at[kDevice], "device", 0);
  if (device >= kMostDevices)
    refuse(str("expected a device below ", kMostDevices, ", got ", device));
  s.device = static_cast<std::uint32_t>(device);
  segments_.push_back(s);
  return value(PickleKind::kSegment);
}

PickleValue PickleShapes::append(const PickleValue& list,
                                 const PickleValue* items,
                                 std::size_t count) {
  if (count == 0) return list;
  switch (list.kind) {
    case PickleKind::kList: return first_items(items, count);
    case PickleKind::kTraces: return traces(list.bits, items, count);
    case PickleKind::kTrace:
      for (std::size_t i = 0; i < count; ++i) {
        if (items[i].kind != PickleKind::kEvents)
          refuse(str("expected an event in a trace, got ", to_string(items[i].kind)));
      }
      return list;
    case PickleKind::kBlocks: {
      Range& r = ranges_[list.bits];
      for (std::size_t i = 0; i < count; ++i) {
        if (items[i].kind != PickleKind::kBlock || items[i].bits != r.first + r.count)
          refuse(str("expected a new block in a list of blocks, got ", to_string(items[i].kind)));
        ++r.count;
      }
      return list;
    }
    case PickleKind::kFrames:  // more than a thousand
    case PickleKind::kHistories:
    case PickleKind::kOther: return list;
    default: refuse(str("expected a list to append to, got ", to_string(list.kind)));
  }
}

PickleValue PickleShapes::first_items(const PickleValue* items, std::size_t count) {
  const PickleKind kind = items[0].kind;
  if (kind == PickleKind::kFrame) return value(PickleKind::kFrames, site(items, count));
  if (kind == PickleKind::kHistory) return value(PickleKind::kHistories, items[0].bits);
  if (kind == PickleKind::kBlock) {
    ranges_.push_back({static_cast<std::uint32_t>(items[0].bits), 0});
    return append(value(PickleKind::kBlocks, ranges_.size() - 1), items, count);
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (items[i].kind == PickleKind::kTrace) return traces(0, items, count);
  }
  return value(PickleKind::kOther);
}

// A list of traces: the place is the device.
PickleValue PickleShapes::traces(std::uint64_t before,
                                 const PickleValue* items,
                                 std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (items[i].kind == PickleKind::kList) continue;  // an empty trace
    if (items[i].kind != PickleKind::kTrace)
      refuse(str("expected a trace, got ", to_string(items[i].kind)));
    const std::uint64_t device = before + i;
    if (device >= kMostDevices) refuse(str("more than ", kMostDevices, " traces"));
    if (!devices_.try_emplace(static_cast<std::uint32_t>(device), items[i].bits).second)
      refuse(str("two traces of device ", device));
  }
  return value(PickleKind::kTraces, before + count);
}

std::uint32_t PickleShapes::site(const PickleValue* frames, std::size_t count) {
  std::uint32_t numbers[kMostFrames];
  const auto kept = static_cast<std::uint32_t>(std::min(count, kMostFrames));
  for (std::size_t i = 0; i < kept; ++i) {
    if (frames[i].kind != PickleKind::kFrame)
      refuse(str("expected a frame in a list of frames, got ", to_string(frames[i].kind)));
    numbers[i] = static_cast<std::uint32_t>(frames[i].bits);
  }
  const auto next = static_cast<std::uint32_t>(sites_.size());
  const auto [it, fresh] = site_numbers_.try_emplace(hash(numbers, kept), next);
  if (!fresh) {
    const Range& r = sites_[it->second];
    if (r.count == kept && std::equal(numbers, numbers + kept, site_frames_.begin() + r.first))
      return it->second;
  }
  if (next == kMostRecords || site_frames_.size() > UINT32_MAX - kMostFrames)
    refuse("too many sites");
  in_.charge(64 + 4 * kept);
  sites_.push_back({static_cast<std::uint32_t>(site_frames_.size()), kept});
  site_frames_.insert(site_frames_.end(), numbers, numbers + kept);
  return next;
}

AddressTrace& PickleShapes::trace_of_device(std::uint32_t device) {
  const auto [it, fresh] = devices_.try_emplace(device, traces_.size());
  if (fresh) traces_.push_back(std::make_unique<AddressTrace>(in_));
  return *traces_[it->second];
}

TraceSite PickleShapes::describe(std::uint32_t site) {
  constexpr std::string_view kOurs = "taper:";  // what snapshots of ours say of op and scope
  TraceSite out;
  const Range& r = sites_[site];
  in_.charge(sizeof out + 2 * r.count * sizeof(TraceFrame));
  for (std::uint32_t i = 0; i < r.count; ++i) {
    const Frame& f = frames_[site_frames_[r.first + i]];
    const std::string& file = *text_[f.file];
    in_.charge(file.size() + text_[f.name]->size());
    if (i == 0 && f.line == 0 && file.compare(0, kOurs.size(), kOurs) == 0) {
      out.op = *text_[f.name];
      out.scope = file.substr(kOurs.size());
      continue;
    }
    out.frames.push_back({file, *text_[f.name], f.line});
  }
  return out;
}

// The trace gets the sites that its events name.
void PickleShapes::number_sites(Trace& trace) {
  std::vector<std::uint32_t> numbers(sites_.size());
  for (TraceEvent& e : trace.events) {
    if (e.site == 0) continue;
    std::uint32_t& n = numbers[e.site];
    if (n == 0) {
      n = static_cast<std::uint32_t>(trace.sites.size());
      trace.sites.push_back(describe(e.site));
    }
    e.site = n;
  }
}

std::vector<Trace> PickleShapes::finish() {
  std::vector<bool> placed(traces_.size());
  for (const auto& [device, trace] : devices_) placed[trace] = true;
  std::uint32_t next = 0;
  for (std::size_t i = 0; i < placed.size(); ++i) {  // lists of events that are in no list
    if (placed[i]) continue;
    while (devices_.count(next) != 0) ++next;
    devices_[next] = i;
  }
  for (const Segment& s : segments_) {
    AddressTrace& trace = trace_of_device(s.device);
    std::uint64_t address = s.address;
    for (std::uint32_t i = 0; i < s.blocks.count; ++i) {
      const Block& b = blocks_[s.blocks.first + i];
      if (b.has_address) address = b.address;
      if (b.live) trace.live({address, b.bytes, s.stream, 0, b.site});
      address += b.size;
    }
  }
  std::vector<Trace> out;
  for (const auto& [device, i] : devices_) {
    if (traces_[i]->empty()) continue;
    Trace trace = traces_[i]->finish();
    traces_[i].reset();
    number_sites(trace);
    trace.device = str("cuda:", device);
    out.push_back(std::move(trace));
  }
  return out;
}

}  // namespace taper::tools
