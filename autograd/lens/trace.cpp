// The trace event format: slices, names of tracks, and arrows from forward to backward.
#include "taper/autograd/lens/trace.h"

#include <cstdio>
#include <fstream>
#include <map>

#include "taper/core/base/utf8.h"

namespace taper::lens {
namespace {

// The format counts in microseconds.
std::string micro(std::int64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", static_cast<double>(ns) / 1e3);
  return text;
}

std::uint32_t track_of(const ProfileEvent& e) {
  return 2 * e.thread + (e.backward ? 1 : 0);
}

// What the user did: a call of a function, or in backward the gradient of an entry. Calls of one
// line with nothing in between look like one.
bool is_same_call(const ProfileEvent& a, const ProfileEvent& b) {
  if (a.backward) return a.entry == b.entry;
  return a.loc.file == b.loc.file && a.loc.line == b.loc.line && a.function == b.function;
}

// "operator()" of a module without the types of its arguments.
std::string name_of(const ProfileEvent& e) {
  if (e.backward) return str(e.op, " backward");
  const std::string name = e.function;
  return name.substr(0, name.find('<', name.starts_with("operator") ? 9 : 0));
}

class Trace {
 public:
  explicit Trace(const std::string& path) : file_(path) {
    file_ << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
             "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"Taper\"}}";
  }

  void name(std::uint32_t track) {
    const std::string text = str("thread ", track / 2, track % 2 == 0 ? " forward" : " backward");
    file_ << ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":" << track
          << ",\"name\":\"thread_name\",\"args\":{\"name\":" << json_quoted(text) << "}}"
          << ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":" << track
          << ",\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":" << track << "}}";
  }

  // Around the kernels of a call.
  void slice(const std::string& name, const ProfileEvent& e, std::int64_t end) {
    file_ << ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":" << track_of(e)
          << ",\"name\":" << json_quoted(name) << ",\"cat\":\"call\",\"ts\":" << micro(e.start)
          << ",\"dur\":" << micro(end - e.start)
          << ",\"args\":{\"line\":" << json_quoted(taper::to_string(e.loc)) << "}}";
  }

  void kernel(const ProfileEvent& e) {
    const double time = e.duration > 0 ? static_cast<double>(e.duration) : 1;
    file_ << ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":" << track_of(e)
          << ",\"name\":" << json_quoted(e.kernel)
          << ",\"cat\":\"kernel\",\"ts\":" << micro(e.start) << ",\"dur\":" << micro(e.duration)
          << ",\"args\":{\"op\":" << json_quoted(e.op)
          << ",\"line\":" << json_quoted(taper::to_string(e.loc))
          << ",\"module\":" << json_quoted(scope_name(e.scope)) << ",\"entry\":" << e.entry
          << ",\"bytes read\":" << e.read << ",\"bytes written\":" << e.written
          << ",\"flops\":" << static_cast<std::uint64_t>(e.flops)
          << ",\"GFLOP/s\":" << micro(static_cast<std::int64_t>(1e3 * e.flops / time)) << "}}";
  }

  // From the forward of an entry to its backward.
  void arrow(const ProfileEvent& from, const ProfileEvent& to) {
    end_of_arrow("s", "", from);
    end_of_arrow("f", "\"bp\":\"e\",", to);
  }

  bool finish() {
    file_ << "\n]}\n";
    file_.close();
    return !file_.fail();
  }

 private:
  void end_of_arrow(const char* kind, const char* binding, const ProfileEvent& e) {
    file_ << ",\n{\"ph\":\"" << kind << "\"," << binding << "\"pid\":1,\"tid\":" << track_of(e)
          << ",\"id\":" << e.entry
          << ",\"name\":\"gradient\",\"cat\":\"tape\",\"ts\":" << micro(e.start) << "}";
  }

  std::ofstream file_;
};

}  // namespace

void write_trace(const std::string& path, const std::vector<ProfileEvent>& events) {
  Trace trace(path);
  std::map<std::uint32_t, std::vector<const ProfileEvent*>> tracks;
  for (const ProfileEvent& e : events) tracks[track_of(e)].push_back(&e);
  std::map<std::uint64_t, const ProfileEvent*> forward, backward;  // the first kernel of each
  for (const auto& [track, on_it] : tracks) {
    trace.name(track);
    for (std::size_t i = 0; i < on_it.size();) {
      std::size_t end = i + 1;
      while (end < on_it.size() && is_same_call(*on_it[i], *on_it[end])) ++end;
      const ProfileEvent& first = *on_it[i];
      const ProfileEvent& last = *on_it[end - 1];
      if (end - i > 1) trace.slice(name_of(first), first, last.start + last.duration);
      for (; i < end; ++i) {
        const ProfileEvent& e = *on_it[i];
        trace.kernel(e);
        if (e.entry != 0) (e.backward ? backward : forward).try_emplace(e.entry, &e);
      }
    }
  }
  for (const auto& [entry, to] : backward) {
    const auto from = forward.find(entry);
    if (from != forward.end()) trace.arrow(*from->second, *to);
  }
  TAPER_CHECK(trace.finish(), "the trace cannot be written to ", path);
}

}  // namespace taper::lens
