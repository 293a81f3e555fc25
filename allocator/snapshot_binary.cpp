// Writes traces as compact binary.
#include "taper/allocator/snapshot_binary.h"

#include <map>

#include "taper/allocator/snapshot.h"
#include "taper/allocator/snapshot_file.h"
#include "taper/core/base/error.h"

namespace taper {
namespace {

using binary::zigzag;

class BinaryWriter {
 public:
  explicit BinaryWriter(SnapshotFile& file) : file_(file) {}

  void number(std::uint64_t n) {
    for (; n >= 0x80; n >>= 7) file_.byte(static_cast<unsigned char>(n | 0x80));
    file_.byte(static_cast<unsigned char>(n));
  }

  void text(const std::string& s) {
    number(s.size());
    file_.put(s);
  }

  void trace(const Trace& t) {
    sites(t);
    number(t.streams.size());
    for (const std::uint64_t s : t.streams) number(s);
    number(t.offsets.size());
    std::uint64_t last = 0;
    for (const std::uint64_t offset : t.offsets) {
      number(zigzag(offset - last));
      last = offset;
    }
    number(t.allocations);
    events(t);
  }

 private:
  void sites(const Trace& t) {
    std::map<std::string, std::size_t> numbers;
    std::vector<const std::string*> texts;
    const auto add = [&](const std::string& s) {
      const auto [it, fresh] = numbers.try_emplace(s, texts.size());
      if (fresh) texts.push_back(&it->first);
    };
    for (const TraceSite& s : t.sites) {
      add(s.op);
      add(s.scope);
      for (const TraceFrame& f : s.frames) {
        add(f.file);
        add(f.function);
      }
    }
    number(texts.size());
    for (const std::string* s : texts) text(*s);
    number(t.sites.size());
    for (const TraceSite& s : t.sites) {
      number(numbers[s.op]);
      number(numbers[s.scope]);
      number(s.frames.size());
      for (const TraceFrame& f : s.frames) {
        number(numbers[f.file]);
        number(numbers[f.function]);
        number(f.line);
      }
    }
  }

  void events(const Trace& t) {
    number(t.events.size());
    std::uint64_t time = 0, allocations = 0, entry = 0;
    for (const TraceEvent& e : t.events) {
      unsigned head = static_cast<unsigned>(e.action);
      if (e.site != 0) head |= binary::kHasSite;
      if (e.entry != 0) head |= binary::kHasEntry;
      if (e.stream != 0) head |= binary::kHasStream;
      if (e.pool != 0) head |= binary::kHasPool;
      file_.byte(static_cast<unsigned char>(head));
      number(zigzag(e.time - time));
      number(e.bytes);
      number(zigzag(e.block - allocations));
      if (e.site != 0) number(e.site);
      if (e.entry != 0) {
        number(zigzag(e.entry - entry));
        entry = e.entry;
      }
      if (e.stream != 0) number(e.stream);
      if (e.pool != 0) number(e.pool);
      time = e.time;
      if (e.action == TraceAction::kAlloc) ++allocations;
    }
  }

  SnapshotFile& file_;
};

}  // namespace

void write_binary(const Snapshot& snapshot, const std::string& path) {
  for (const DeviceSnapshot& d : snapshot.devices) {
    const std::string fault = first_fault(d.trace);
    TAPER_CHECK(fault.empty(), "cannot write ", path, ": ", fault);
  }
  SnapshotFile file(path);
  file.put(binary::kMagic);
  for (int i = 0; i < 4; ++i) file.byte(static_cast<unsigned char>(binary::kVersion >> (8 * i)));
  BinaryWriter writer(file);
  writer.text(snapshot.options);
  writer.number(snapshot.devices.size());
  for (const DeviceSnapshot& d : snapshot.devices) {
    writer.text(d.device);
    writer.text(d.trace.source);
    writer.trace(d.trace);
  }
  file.finish();
}

}  // namespace taper
