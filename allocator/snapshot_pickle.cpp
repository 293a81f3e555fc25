// Writes a snapshot as PyTorch's viewers read it.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "taper/allocator/snapshot.h"
#include "taper/allocator/snapshot_file.h"
#include "taper/allocator/snapshot_fit.h"
#include "taper/core/base/error.h"
#include "taper/core/base/utf8.h"

namespace taper {
namespace {

constexpr int kMostAppended = 1000;  // at once: the page hands them to a function as arguments
constexpr std::uint64_t kExact = std::uint64_t{1} << 53;  // the page's numbers are doubles
constexpr std::uint64_t kFakeBase = std::uint64_t{1} << 40;

// Pickle's opcodes, and only those that the page's reader knows.
class PickleWriter {
 public:
  explicit PickleWriter(SnapshotFile& file) : file_(file) { file_.put("\x80\x04"); }

  void begin_dict() { file_.put("}("); }

  void end_dict() { file_.byte('u'); }

  void stop() { file_.byte('.'); }

  void boolean(bool b) { file_.byte(b ? 0x88 : 0x89); }

  void zero_float() { file_.put(std::string_view("G\0\0\0\0\0\0\0\0", 9)); }

  void minus_one() { file_.put("J\xff\xff\xff\xff"); }

  void number(std::uint64_t n) {
    if (n >= kExact) n = kExact - 1;
    if (n < 0x100) return little('K', n, 1);
    if (n < 0x10000) return little('M', n, 2);
    if (n < 0x80000000) return little('J', n, 4);
    int bytes = 4;
    while (n >> (8 * bytes - 1) != 0) ++bytes;  // the top bit is the sign
    file_.byte(0x8a);
    little(static_cast<unsigned char>(bytes), n, bytes);
  }

  void pair_of_numbers(std::uint64_t a, std::uint64_t b) {
    number(a);
    number(b);
    file_.byte(0x86);
  }

  void text(const std::string& any) {
    const std::string s = mended_utf8(any);  // a reader refuses all of a file for one wrong byte
    const auto [it, fresh] = texts_.try_emplace(s, memos_);
    if (!fresh) return recall(it->second);
    if (s.size() < 0x100) little(0x8c, s.size(), 1);
    else little('X', s.size(), 4);
    file_.put(s);
    memoize();
  }

  // The same for a literal, which is known by its address.
  void word(const char* literal) {
    const auto it = words_.find(literal);
    if (it != words_.end()) return recall(it->second);
    text(literal);
    words_[literal] = texts_.at(literal);
  }

  // What lies on top of the stack; returns the number to recall it by.
  std::uint32_t memoize() {
    file_.byte(0x94);
    return memos_++;
  }

  void recall(std::uint32_t memo) {
    if (memo < 0x100) little('h', memo, 1);
    else little('j', memo, 4);
  }

  void begin_list() { file_.byte(']'); }

  void begin_items() { file_.byte('('); }

  void end_items() { file_.byte('e'); }

 private:
  void little(unsigned char opcode, std::uint64_t n, int bytes) {
    file_.byte(opcode);
    for (int i = 0; i < bytes; ++i) file_.byte(static_cast<unsigned char>(n >> (8 * i)));
  }

  SnapshotFile& file_;
  std::map<std::string, std::uint32_t> texts_;
  std::unordered_map<const char*, std::uint32_t> words_;
  std::uint32_t memos_ = 0;
};

// A list that is appended to in short runs.
class List {
 public:
  explicit List(PickleWriter& out) : out_(out) { out_.begin_list(); }

  void next_item() {
    if (items_ == kMostAppended) {
      out_.end_items();
      items_ = 0;
    }
    if (items_++ == 0) out_.begin_items();
  }

  void end() {
    if (items_ > 0) out_.end_items();
  }

 private:
  PickleWriter& out_;
  int items_ = 0;
};

// One device's part of the file.
class DeviceWriter {
 public:
  DeviceWriter(PickleWriter& out, const DeviceSnapshot& d, std::size_t number)
      : out_(out), d_(d), fitted_(fit_for_viewer(d)), number_(number), base_(d.base) {
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < fitted_.offsets.size(); ++i)
      end = std::max(end, fitted_.offsets[i] + fitted_.bytes[i]);
    for (const SegmentInfo& s : fitted_.segments) end = std::max(end, s.offset + s.bytes);
    if (base_ == 0 || base_ + end >= kExact) base_ = kFakeBase;
  }

  void segments(List& list) {
    for (const SegmentInfo& s : fitted_.segments) {
      list.next_item();
      segment(s);
    }
  }

  void trace() {
    List list(out_);
    for (std::size_t i = 0; i < d_.trace.events.size(); ++i) {
      if (fitted_.fits[i] != Fit::kDrop) events_of(list, d_.trace.events[i], fitted_.fits[i]);
    }
    list.end();
  }

 private:
  void text(const char* key, const char* value) {
    out_.word(key);
    out_.word(value);
  }

  void number(const char* key, std::uint64_t value) {
    out_.word(key);
    out_.number(value);
  }

  void segment(const SegmentInfo& s) {
    std::uint64_t live = 0, pending = 0, requested = 0;
    for (const BlockInfo& b : s.blocks) {
      if (b.state == BlockState::kLive) live += b.bytes;
      if (b.state == BlockState::kPending) pending += b.bytes;
      if (b.state == BlockState::kLive) requested += b.requested;
    }
    out_.begin_dict();
    number("device", number_);
    number("address", base_ + s.offset);
    number("total_size", s.bytes);
    number("allocated_size", live);
    number("active_size", live + pending);
    number("requested_size", requested);
    number("stream", s.stream);
    text("segment_type", s.small ? "small" : "large");
    out_.word("segment_pool_id");
    out_.pair_of_numbers(0, s.pool);
    out_.word("is_expandable");
    out_.boolean(true);
    frames(0);
    out_.word("blocks");
    List list(out_);
    for (const BlockInfo& b : s.blocks) {
      list.next_item();
      block(b);
    }
    list.end();
    out_.end_dict();
  }

  void block(const BlockInfo& b) {
    constexpr const char* kStates[] = {"active_allocated", "active_pending_free", "inactive"};
    out_.begin_dict();
    number("address", base_ + b.offset);
    number("size", b.bytes);
    number("requested_size", std::min(b.requested, b.bytes));
    text("state", kStates[static_cast<int>(b.state)]);
    frames(b.site);
    out_.end_dict();
  }

  void events_of(List& list, const TraceEvent& e, Fit fit) {
    switch (e.action) {
      case TraceAction::kAlloc:
        if (fit == Fit::kAlone) event(list, "segment_map", e, 0);
        event(list, "alloc", e, e.site);
        break;
      case TraceAction::kFree:
        event(list, "free_requested", e, e.site);
        event(list, "free_completed", e, 0);
        if (fit == Fit::kAlone) event(list, "segment_unmap", e, 0);
        break;
      case TraceAction::kMap: event(list, "segment_map", e, 0); break;
      case TraceAction::kUnmap: event(list, "segment_unmap", e, 0); break;
      default: event(list, "oom", e, e.site);
    }
  }

  void event(List& list, const char* action, const TraceEvent& e, std::uint32_t site) {
    const bool of_block = e.action == TraceAction::kAlloc || e.action == TraceAction::kFree;
    list.next_item();
    out_.begin_dict();
    text("action", action);
    if (e.action == TraceAction::kOom) {
      number("device_free", 0);  // no event says it
    } else {
      const std::uint64_t offset =
          of_block ? fitted_.offsets[e.block] : e.block * std::uint64_t{kBlockBytes};
      number("addr", base_ + offset);
    }
    number("size", of_block ? fitted_.bytes[e.block] : e.bytes);
    number("stream", d_.trace.streams[e.stream]);
    number("time_us", e.time / 1000);
    if (site != 0) frames(site);
    out_.end_dict();
  }

  // The op and the module's scope come first, as a frame of their own.
  void frames(std::uint32_t site) {
    out_.word("frames");
    const auto [it, fresh] = frame_memos_.try_emplace(site, 0);
    if (!fresh) return out_.recall(it->second);
    List list(out_);
    const TraceSite& s = d_.trace.sites[site < d_.trace.sites.size() ? site : 0];
    if (!s.op.empty() || !s.scope.empty()) frame(list, s.op, "taper:" + s.scope, 0);
    for (const TraceFrame& f : s.frames) frame(list, f.function, f.file, f.line);
    list.end();
    it->second = out_.memoize();
  }

  void frame(List& list, const std::string& name, const std::string& file, std::uint32_t line) {
    list.next_item();
    out_.begin_dict();
    out_.word("name");
    out_.text(name);
    out_.word("filename");
    out_.text(file);
    number("line", line);
    out_.end_dict();
  }

  PickleWriter& out_;
  const DeviceSnapshot& d_;
  FittedTrace fitted_;
  std::size_t number_;
  std::uint64_t base_;
  std::map<std::uint32_t, std::uint32_t> frame_memos_;
};

void write_settings(PickleWriter& out, const std::string& options) {
  out.begin_dict();
  out.text("PYTORCH_CUDA_ALLOC_CONF");
  out.text(options);
  out.text("max_split_size");
  out.minus_one();
  out.text("garbage_collection_threshold");
  out.zero_float();
  out.text("expandable_segments");
  out.boolean(true);
  out.text("pinned_num_register_threads");
  out.number(1);
  out.text("release_lock_on_cudamalloc");
  out.boolean(false);
  out.text("pinned_use_cuda_host_register");
  out.boolean(false);
  out.text("roundup_power2_divisions");
  out.begin_dict();
  for (int n = 1; n <= 32768; n *= 2) {
    out.text(std::to_string(n));
    out.number(0);
  }
  out.end_dict();
  out.end_dict();
}

}  // namespace

void write_pickle(const Snapshot& snapshot, const std::string& path) {
  for (const DeviceSnapshot& d : snapshot.devices) {
    const std::string fault = first_fault(d.trace);
    TAPER_CHECK(fault.empty(), "cannot write ", path, ": ", fault);
  }
  SnapshotFile file(path);
  PickleWriter out(file);
  std::vector<DeviceWriter> devices;
  devices.reserve(snapshot.devices.size());
  for (const DeviceSnapshot& d : snapshot.devices) devices.emplace_back(out, d, devices.size());
  out.begin_dict();
  out.text("segments");
  List segments(out);
  for (DeviceWriter& d : devices) d.segments(segments);
  segments.end();
  out.text("device_traces");
  List traces(out);
  for (DeviceWriter& d : devices) {
    traces.next_item();
    d.trace();
  }
  traces.end();
  out.text("allocator_settings");
  write_settings(out, snapshot.options);
  out.end_dict();
  out.stop();
  file.finish();
}

}  // namespace taper
