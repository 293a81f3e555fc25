// Writes a snapshot as JSON.
//
//   {"format": "taper-snapshot", "version": 1, "options": "policy:taper",
//    "devices": [{"device": "cuda:0", "source": "train", "base": 140000000,
//      "streams": [0], "sites": [{"op": "", "scope": "", "frames": [{"file", "function",
//      "line"}]}], "allocations": 1, "offsets": [0], "segments": [{"offset", "bytes", "stream",
//      "pool", "small",
//                    "blocks": [{"offset", "bytes", "requested", "state": "live", "site",
//                    "entry"}]}],
//      "events": [{"action": "alloc", "time", "bytes", "block", "site", "entry", "stream",
//      "pool"}]}]}
//
// Numbers are whole, of 0 to 2^64 - 1; bytes and nanoseconds. A number that is 0 is left out of
// blocks and events; "state" is live, pending or free; "action" is one of to_string(TraceAction).
#include <cstdio>

#include "taper/allocator/snapshot.h"
#include "taper/allocator/snapshot_file.h"
#include "taper/core/base/error.h"
#include "taper/core/base/utf8.h"

namespace taper {
namespace {

class JsonWriter {
 public:
  explicit JsonWriter(SnapshotFile& file) : file_(file) {}

  void open(char c) {
    file_.byte(static_cast<unsigned char>(c));
    first_ = true;
  }

  void close(char c) {
    file_.byte(static_cast<unsigned char>(c));
    first_ = false;
  }

  void comma() {
    if (!first_) file_.byte(',');
    first_ = false;
  }

  void key(const char* name) {
    comma();
    file_.byte('"');
    file_.put(name);
    file_.put("\":");
  }

  void text(const char* name, const std::string& s) {
    key(name);
    file_.put(json_quoted(s));
  }

  void number(const char* name, std::uint64_t n) {
    key(name);
    file_.put(std::to_string(n));
  }

  void number_if(const char* name, std::uint64_t n) {
    if (n != 0) number(name, n);
  }

  void numbers(const char* name, const std::vector<std::uint64_t>& list) {
    begin_list(name);
    for (const std::uint64_t n : list) {
      comma();
      file_.put(std::to_string(n));
    }
    close(']');
  }

  void begin_list(const char* name) {
    key(name);
    open('[');
  }

  void begin_item() {
    comma();
    open('{');
  }

 private:
  SnapshotFile& file_;
  bool first_ = true;
};

void write_sites(JsonWriter& out, const Trace& t) {
  out.begin_list("sites");
  for (const TraceSite& s : t.sites) {
    out.begin_item();
    out.text("op", s.op);
    out.text("scope", s.scope);
    out.begin_list("frames");
    for (const TraceFrame& f : s.frames) {
      out.begin_item();
      out.text("file", f.file);
      out.text("function", f.function);
      out.number("line", f.line);
      out.close('}');
    }
    out.close(']');
    out.close('}');
  }
  out.close(']');
}

void write_segments(JsonWriter& out, const std::vector<SegmentInfo>& segments) {
  constexpr const char* kStates[] = {"live", "pending", "free"};
  out.begin_list("segments");
  for (const SegmentInfo& s : segments) {
    out.begin_item();
    out.number("offset", s.offset);
    out.number("bytes", s.bytes);
    out.number("stream", s.stream);
    out.number("pool", s.pool);
    out.number("small", s.small ? 1 : 0);
    out.begin_list("blocks");
    for (const BlockInfo& b : s.blocks) {
      out.begin_item();
      out.text("state", kStates[static_cast<int>(b.state)]);
      out.number_if("offset", b.offset);
      out.number_if("bytes", b.bytes);
      out.number_if("requested", b.requested);
      out.number_if("site", b.site);
      out.number_if("entry", b.entry);
      out.close('}');
    }
    out.close(']');
    out.close('}');
  }
  out.close(']');
}

void write_events(JsonWriter& out, const Trace& t) {
  out.begin_list("events");
  for (const TraceEvent& e : t.events) {
    out.begin_item();
    out.text("action", to_string(e.action));
    out.number_if("time", e.time);
    out.number_if("bytes", e.bytes);
    out.number_if("block", e.block);
    out.number_if("site", e.site);
    out.number_if("entry", e.entry);
    out.number_if("stream", e.stream);
    out.number_if("pool", e.pool);
    out.close('}');
  }
  out.close(']');
}

}  // namespace

const char* to_string(TraceAction action) {
  switch (action) {
    case TraceAction::kAlloc: return "alloc";
    case TraceAction::kFree: return "free";
    case TraceAction::kRecordStream: return "record_stream";
    case TraceAction::kWork: return "work";
    case TraceAction::kWait: return "wait";
    case TraceAction::kSynchronize: return "synchronize";
    case TraceAction::kEmptyCache: return "empty_cache";
    case TraceAction::kStep: return "step";
    case TraceAction::kMap: return "map";
    case TraceAction::kUnmap: return "unmap";
    case TraceAction::kOom: return "oom";
  }
  return "unknown";
}

void write_json(const Snapshot& snapshot, const std::string& path) {
  for (const DeviceSnapshot& d : snapshot.devices) {
    const std::string fault = first_fault(d.trace);
    TAPER_CHECK(fault.empty(), "cannot write ", path, ": ", fault);
  }
  SnapshotFile file(path);
  JsonWriter out(file);
  out.open('{');
  out.text("format", "taper-snapshot");
  out.number("version", 1);
  out.text("options", snapshot.options);
  out.begin_list("devices");
  for (const DeviceSnapshot& d : snapshot.devices) {
    out.begin_item();
    out.text("device", d.device);
    out.text("source", d.trace.source);
    out.number("base", d.base);
    out.numbers("streams", d.trace.streams);
    write_sites(out, d.trace);
    out.number("allocations", d.trace.allocations);
    out.numbers("offsets", d.trace.offsets);
    write_segments(out, d.segments);
    write_events(out, d.trace);
    out.close('}');
  }
  out.close(']');
  out.close('}');
  file.byte('\n');
  file.finish();
}

}  // namespace taper
