// Reads the traces of Taper's JSON snapshots; what they look like is at their writer.
#include <nlohmann/json.hpp>

#include "taper/allocator/snapshot.h"
#include "taper/tools/alloc/trace_input.h"

namespace taper::tools {
namespace {

constexpr std::size_t kDeepest = 32;
constexpr std::size_t kLongestRun = std::size_t{1} << 20;

// Hands the input to the parser byte by byte. The parser keeps what it is in several times over, so
// that is kept short.
class Bytes {
 public:
  using difference_type = std::ptrdiff_t;
  using value_type = char;
  using pointer = const char*;
  using reference = const char&;
  using iterator_category = std::input_iterator_tag;

  explicit Bytes(TraceInput* input) : input_(input) { ++*this; }

  Bytes() = default;

  const char& operator*() const { return c_; }

  Bytes& operator++() {
    if (input_->remaining() == 0) {
      input_ = nullptr;
      return *this;
    }
    c_ = static_cast<char>(input_->byte());
    const bool quote = c_ == '"' && !escaped_;
    escaped_ = c_ == '\\' && !escaped_;
    in_text_ = in_text_ != quote;
    run_ = quote || (c_ == ',' && !in_text_) ? 0 : run_ + 1;
    if (run_ > kLongestRun)
      input_->refuse_at(input_->offset(), str("a text or gap is longer than ", kLongestRun));
    return *this;
  }

  bool operator==(const Bytes& other) const { return input_ == other.input_; }

  bool operator!=(const Bytes& other) const { return input_ != other.input_; }

 private:
  TraceInput* input_ = nullptr;
  std::size_t run_ = 0;  // since the last quote or comma
  char c_ = 0;
  bool in_text_ = false, escaped_ = false;
};

// Follows the parser; nothing is built but traces. What it does not know it passes over.
class JsonReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit JsonReader(TraceInput& input) : in_(input) {}

  std::vector<Trace> traces;

  void check_header() const {
    if (format_ != "taper-snapshot")
      in_.refuse_at(0, str("expected the format 'taper-snapshot', got ", shown(format_)));
    if (version_ != 1) in_.refuse_at(0, str("expected version 1, got ", version_));
  }

  bool null() override { return other("null"); }
  bool boolean(bool) override { return other("a bool"); }
  bool number_integer(number_integer_t) override { return other("a negative number"); }
  bool number_float(number_float_t, const string_t&) override { return other("a fraction"); }
  bool binary(binary_t&) override { return other("binary data"); }

  bool number_unsigned(number_unsigned_t n) override {
    Trace* t = traces.empty() ? nullptr : &traces.back();
    switch (place()) {
      case Place::kTop:
        if (key_ == "version") version_ = n;
        return true;
      case Place::kDevice:
        if (key_ == "allocations") t->allocations = narrow<std::uint32_t>(n);
        return true;
      case Place::kStreams:
        if (t->streams.size() > 0xffff) refuse("more than 65,536 streams");
        t->streams.push_back(n);
        return true;
      case Place::kOffsets: t->offsets.push_back(n); return true;
      case Place::kFrame:
        if (key_ == "line") t->sites.back().frames.back().line = narrow<std::uint32_t>(n);
        return true;
      case Place::kEvent: event_number(t->events.back(), n); return true;
      default: return other("a number");
    }
  }

  bool string(string_t& s) override {
    Trace* t = traces.empty() ? nullptr : &traces.back();
    in_.charge(place() == Place::kOther || place() == Place::kEvent ? 0 : s.size());
    if (place() == Place::kTop && key_ == "format") format_ = s;
    else if (place() == Place::kDevice && key_ == "device") t->device = s;
    else if (place() == Place::kDevice && key_ == "source") t->source = s;
    else if (place() == Place::kSite && key_ == "op") t->sites.back().op = s;
    else if (place() == Place::kSite && key_ == "scope") t->sites.back().scope = s;
    else if (place() == Place::kFrame && key_ == "file") t->sites.back().frames.back().file = s;
    else if (place() == Place::kFrame && key_ == "function") {
      t->sites.back().frames.back().function = s;
    } else if (place() == Place::kEvent && key_ == "action") {
      t->events.back().action = action_of(s);
    } else if (key_ != "options") {
      return other("a text");
    }
    return true;
  }

  bool start_object(std::size_t) override {
    Trace* t = traces.empty() ? nullptr : &traces.back();
    switch (place()) {
      case Place::kStart: return enter(Place::kTop);
      case Place::kDevices:
        in_.charge(sizeof(Trace));
        traces.emplace_back();
        traces.back().streams.clear();
        traces.back().sites.clear();
        return enter(Place::kDevice);
      case Place::kSites:
        in_.charge(3 * sizeof(TraceSite));
        t->sites.emplace_back();
        return enter(Place::kSite);
      case Place::kFrames:
        in_.charge(3 * sizeof(TraceFrame));
        t->sites.back().frames.emplace_back();
        return enter(Place::kFrame);
      case Place::kEvents: t->events.emplace_back(); return enter(Place::kEvent);
      default: other("an object"); return enter(Place::kOther);
    }
  }

  bool start_array(std::size_t) override {
    const Place at = place();
    if (at == Place::kTop && key_ == "devices") return enter(Place::kDevices);
    if (at == Place::kDevice && key_ == "streams") return enter(Place::kStreams);
    if (at == Place::kDevice && key_ == "offsets") return enter(Place::kOffsets);
    if (at == Place::kDevice && key_ == "sites") return enter(Place::kSites);
    if (at == Place::kDevice && key_ == "events") return enter(Place::kEvents);
    if (at == Place::kSite && key_ == "frames") return enter(Place::kFrames);
    if (at != Place::kDevice || key_ != "segments") other("a list");
    return enter(Place::kOther);
  }

  bool key(string_t& k) override {
    key_ = k.substr(0, 32);
    return true;
  }

  bool end_object() override { return leave(); }

  bool end_array() override { return leave(); }

  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& e) override {
    const std::string text = e.what();
    refuse("expected JSON, got " + shown(text.substr(std::min(text.rfind("; ") + 2, text.size()))));
  }

 private:
  enum class Place {
    kStart,
    kTop,
    kDevices,
    kDevice,
    kStreams,
    kOffsets,
    kSites,
    kSite,
    kFrames,
    kFrame,
    kEvents,
    kEvent,
    kOther
  };

  Place place() const { return places_.empty() ? Place::kStart : places_.back(); }

  bool enter(Place p) {
    if (places_.size() == kDeepest) refuse(str("nested deeper than ", kDeepest));
    places_.push_back(p);
    return true;
  }

  bool leave() {
    places_.pop_back();
    return true;
  }

  [[noreturn]] void refuse(const std::string& problem) const {
    in_.refuse_at(in_.offset(), problem);
  }

  // Something where nothing, or something else, is expected. Unknown keys of a known object may
  // hold anything.
  bool other(const char* what) const {
    static constexpr std::string_view kKnown[] = {
        "format",  "version",  "options", "devices", "device", "source",     "streams",
        "sites",   "op",       "scope",   "frames",  "file",   "function",   "line",
        "offsets", "segments", "events",  "action",  "time",   "bytes",      "block",
        "site",    "entry",    "stream",  "pool",    "base",   "allocations"};
    if (place() == Place::kOther) return true;
    const bool in_list = place() == Place::kDevices || place() == Place::kStreams ||
                         place() == Place::kOffsets || place() == Place::kSites ||
                         place() == Place::kFrames || place() == Place::kEvents;
    bool known = in_list || place() == Place::kStart;
    for (const std::string_view k : kKnown) known = known || k == key_;
    if (known)
      refuse(str(what, " is not expected", key_.empty() ? "" : " at the key " + shown(key_)));
    return true;
  }

  template <class T> T narrow(std::uint64_t n) const {
    if (n > static_cast<T>(-1))
      refuse(str("expected at most ", static_cast<T>(-1), " as ", shown(key_), ", got ", n));
    return static_cast<T>(n);
  }

  TraceAction action_of(const std::string& name) const {
    for (int i = 0; i <= static_cast<int>(TraceAction::kOom); ++i) {
      if (name == to_string(static_cast<TraceAction>(i))) return static_cast<TraceAction>(i);
    }
    refuse("expected an action, got " + shown(name));
  }

  void event_number(TraceEvent& e, std::uint64_t n) const {
    if (key_ == "time") e.time = n;
    else if (key_ == "bytes") e.bytes = n;
    else if (key_ == "block") e.block = narrow<std::uint32_t>(n);
    else if (key_ == "site") e.site = narrow<std::uint32_t>(n);
    else if (key_ == "entry") e.entry = narrow<std::uint32_t>(n);
    else if (key_ == "stream") e.stream = narrow<std::uint16_t>(n);
    else if (key_ == "pool") e.pool = narrow<std::uint8_t>(n);
  }

  TraceInput& in_;
  std::vector<Place> places_;
  std::string key_, format_;
  std::uint64_t version_ = 0;
};

}  // namespace

std::vector<Trace> read_json(TraceInput& input) {
  JsonReader reader(input);
  nlohmann::json::sax_parse(Bytes(&input), Bytes(), &reader);
  reader.check_header();
  return std::move(reader.traces);
}

}  // namespace taper::tools
