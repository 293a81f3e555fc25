// Reads Taper's compact binary traces; the layout is in snapshot_binary.h.
#include "taper/allocator/snapshot_binary.h"
#include "taper/tools/alloc/trace_input.h"

namespace taper::tools {
namespace {

using binary::unzigzag;

class BinaryReader {
 public:
  explicit BinaryReader(TraceInput& input) : in_(input) {}

  std::uint64_t number() {
    std::uint64_t n = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      const std::uint64_t b = in_.byte();
      if (shift == 63 && b > 1) break;
      n |= (b & 0x7f) << shift;
      if (b < 0x80) return n;
    }
    in_.refuse("expected a number of at most 64 bits, got a longer one");
  }

  std::uint64_t below(std::uint64_t limit, const char* what) {
    const std::uint64_t n = number();
    if (n >= limit) in_.refuse(str("expected a ", what, " below ", limit, ", got ", n));
    return n;
  }

  std::uint32_t small(const char* what) {
    return static_cast<std::uint32_t>(below(std::uint64_t{1} << 32, what));
  }

  // How many of something follow, each of at least `least` bytes.
  std::uint64_t count(std::uint64_t least, const char* what) {
    const std::uint64_t n = number();
    if (n > in_.remaining() / least)
      in_.refuse(str(n, " ", what, " where ", in_.remaining(), " bytes remain"));
    return n;
  }

  std::string text() {
    std::string s = in_.text(number());
    in_.charge(3 * sizeof(std::string) + s.size());  // lists grow by doubling
    return s;
  }

  Trace trace() {
    Trace t;
    t.device = text();
    t.source = text();
    sites(t);
    const std::uint64_t streams = count(1, "streams");
    if (streams > 0x10000) in_.refuse(str("expected at most 65536 streams, got ", streams));
    t.streams.clear();
    for (std::uint64_t i = 0; i < streams; ++i) t.streams.push_back(number());
    const std::uint64_t offsets = count(5, "offsets");  // each has an event of 4 bytes
    t.offsets.reserve(offsets);
    std::uint64_t offset = 0;
    for (std::uint64_t i = 0; i < offsets; ++i) {
      offset += unzigzag(number());
      t.offsets.push_back(offset);
    }
    t.allocations = small("count of allocations");
    events(t);
    return t;
  }

 private:
  void sites(Trace& t) {
    const std::uint64_t count_of_texts = count(1, "texts");
    std::vector<std::string> texts;
    for (std::uint64_t i = 0; i < count_of_texts; ++i) texts.push_back(text());
    t.sites.clear();
    const std::uint64_t n = count(3, "sites");
    for (std::uint64_t i = 0; i < n; ++i) {
      TraceSite s;
      s.op = texts[below(texts.size(), "text")];
      s.scope = texts[below(texts.size(), "text")];
      const std::uint64_t frames = count(3, "frames");
      for (std::uint64_t k = 0; k < frames; ++k) {
        TraceFrame f;
        f.file = texts[below(texts.size(), "text")];
        f.function = texts[below(texts.size(), "text")];
        f.line = small("line");
        in_.charge(3 * sizeof f + f.file.size() + f.function.size());
        s.frames.push_back(std::move(f));
      }
      in_.charge(3 * sizeof s + s.op.size() + s.scope.size());
      t.sites.push_back(std::move(s));
    }
  }

  void events(Trace& t) {
    const std::uint64_t n = count(4, "events");
    t.events.reserve(n);
    std::uint64_t time = 0, allocations = 0;
    std::uint32_t entry = 0;
    for (std::uint64_t i = 0; i < n; ++i) {
      const unsigned head = in_.byte();
      TraceEvent e;
      e.action = static_cast<TraceAction>(head & 0x0f);
      if (e.action > TraceAction::kOom)
        in_.refuse(str("expected an action of 0 to 10, got ", head & 0x0f));
      e.time = time += unzigzag(number());
      e.bytes = number();
      e.block = static_cast<std::uint32_t>(allocations + unzigzag(number()));
      if ((head & binary::kHasSite) != 0) e.site = small("site");
      if ((head & binary::kHasEntry) != 0)
        e.entry = entry = static_cast<std::uint32_t>(entry + unzigzag(number()));
      if ((head & binary::kHasStream) != 0)
        e.stream = static_cast<std::uint16_t>(below(0x10000, "stream"));
      if ((head & binary::kHasPool) != 0) e.pool = static_cast<std::uint8_t>(below(0x100, "pool"));
      if (e.action == TraceAction::kAlloc) ++allocations;
      t.events.push_back(e);
    }
  }

  TraceInput& in_;
};

}  // namespace

std::vector<Trace> read_binary(TraceInput& input) {
  input.take(sizeof binary::kMagic - 1);
  const std::uint64_t version = input.little(4);
  if (version != binary::kVersion)
    input.refuse(str("expected version ", binary::kVersion, ", got ", version));
  BinaryReader reader(input);
  reader.text();  // the options: for people
  const std::uint64_t devices = reader.count(8, "devices");
  std::vector<Trace> out;
  for (std::uint64_t i = 0; i < devices; ++i) {
    input.charge(sizeof(Trace));
    out.push_back(reader.trace());
  }
  if (input.remaining() != 0) input.refuse("expected the end of the file");
  return out;
}

}  // namespace taper::tools
