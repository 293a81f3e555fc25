// Reads the traces that are lines of text: RMM's log, STAlloc's events, lifetimes.
#include <algorithm>
#include <charconv>

#include "taper/tools/alloc/address_trace.h"

namespace taper::tools {
namespace {

// Takes what stands before the separator, or all that is left.
std::string_view field(std::string_view& line, char separator) {
  const std::size_t end = std::min(line.find(separator), line.size());
  const std::string_view out = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return out;
}

// A whole number, also as 0x1f or (nil), as printf writes pointers.
std::uint64_t number(std::string_view text, const TraceInput& input, const char* what) {
  std::uint64_t n = 0;
  if (text == "(nil)") return 0;
  const bool hex = text.substr(0, 2) == "0x";
  const char* end = text.data() + text.size();
  const auto r = std::from_chars(text.data() + (hex ? 2 : 0), end, n, hex ? 16 : 10);
  if (text.empty() || r.ec != std::errc() || r.ptr != end)
    input.refuse(str("expected a whole number as ", what, ", got ", shown(text)));
  return n;
}

void expect_end(std::string_view line, const TraceInput& input) {
  if (!line.empty()) input.refuse(str("expected the line to end, got ", shown(line)));
}

// 12:34:56.789012, or with ':' before the microseconds; nanoseconds.
std::uint64_t clock_time(std::string_view text, const TraceInput& input) {
  std::string_view rest = text;
  const std::uint64_t hours = number(field(rest, ':'), input, "Time");
  const std::uint64_t minutes = number(field(rest, ':'), input, "Time");
  const char separator = rest.find('.') != std::string_view::npos ? '.' : ':';
  const std::uint64_t seconds = number(field(rest, separator), input, "Time");
  const std::uint64_t micros = number(rest, input, "Time");
  if (hours > 23 || minutes > 59 || seconds > 60 || micros > 999'999)
    input.refuse(str("expected a time as 12:34:56.789012, got ", shown(text)));
  return (((hours * 60 + minutes) * 60 + seconds) * 1'000'000 + micros) * 1000;
}

std::uint64_t stream_of(std::string_view text, const TraceInput& input) {
  if (text == "default") return 0;
  if (text == "legacy") return 1;  // as CUDA numbers them
  if (text == "per thread") return 2;
  return number(text, input, "Stream");
}

std::vector<Trace> only(Trace trace, const char* device) {
  trace.device = device;
  std::vector<Trace> out;
  out.push_back(std::move(trace));
  return out;
}

}  // namespace

std::vector<Trace> read_rmm(TraceInput& input) {
  constexpr std::uint64_t kHalfADay = std::uint64_t{12} * 3600 * 1'000'000'000;
  AddressTrace out(input);
  std::string_view line;
  input.line(line);
  if (line != "Thread,Time,Action,Pointer,Size,Stream")
    input.refuse(str("expected 'Thread,Time,Action,Pointer,Size,Stream', got ", shown(line)));
  std::uint64_t last = 0, days = 0;
  while (input.line(line)) {
    if (line.empty()) continue;
    AddressTrace::Event e;
    field(line, ',');  // the thread: lines are in order
    e.time = clock_time(field(line, ','), input) + days;
    if (e.time + kHalfADay < last) {  // past midnight
      days += 2 * kHalfADay;
      e.time += 2 * kHalfADay;
    }
    last = e.time;
    const std::string_view action = field(line, ',');
    e.address = number(field(line, ','), input, "Pointer");
    e.bytes = number(field(line, ','), input, "Size");
    e.stream = stream_of(field(line, ','), input);
    expect_end(line, input);
    if (action == "allocate failure") out.told(TraceAction::kOom, e);
    else if (action != "allocate" && action != "free") {
      input.refuse(str("expected allocate, free or allocate failure, got ", shown(action)));
    } else if (e.address == 0) {
      continue;  // no memory
    } else if (action == "allocate") {
      out.alloc(e);
    } else {
      out.free(e);
    }
  }
  return only(out.finish(), "cuda:0");
}

std::vector<Trace> read_stalloc(TraceInput& input) {
  AddressTrace out(input);
  std::string_view line;
  while (input.line(line)) {
    if (line.empty()) continue;
    AddressTrace::Event e;
    const std::string_view action = field(line, ' ');
    e.address = number(field(line, ' '), input, "pointer");
    e.bytes = number(field(line, ' '), input, "size");
    e.stream = number(field(line, ' '), input, "stream");
    expect_end(line, input);
    if (action != "0" && action != "1") {
      input.refuse(str("expected 1 to allocate or 0 to free, got ", shown(action)));
    } else if (e.address == 0) {
      continue;  // no memory
    } else if (action == "1") {
      out.alloc(e);
    } else {
      out.free(e);
    }
  }
  return only(out.finish(), "cuda:0");
}

// At one time, what ends comes before what begins.
std::vector<Trace> read_lifetimes(TraceInput& input) {
  struct Lifetime {
    std::uint64_t lower, upper, bytes;
  };

  std::vector<Lifetime> rows;
  std::string_view line;
  input.line(line);
  if (line != "id,lower,upper,size")
    input.refuse(str("expected 'id,lower,upper,size', got ", shown(line)));
  while (input.line(line)) {
    if (line.empty()) continue;
    Lifetime r{};
    field(line, ',');
    r.lower = number(field(line, ','), input, "lower");
    r.upper = number(field(line, ','), input, "upper");
    r.bytes = number(field(line, ','), input, "size");
    expect_end(line, input);
    if (r.lower >= r.upper)
      input.refuse(str("expected lower < upper, got ", r.lower, " and ", r.upper));
    if (rows.size() == UINT32_MAX) input.refuse("too many blocks");
    rows.push_back(r);
  }
  std::vector<std::uint32_t> begins(rows.size()), ends(rows.size()), block(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) begins[i] = ends[i] = static_cast<std::uint32_t>(i);
  std::sort(begins.begin(), begins.end(), [&](std::uint32_t a, std::uint32_t b) {
    return rows[a].lower != rows[b].lower ? rows[a].lower < rows[b].lower : a < b;
  });
  std::sort(ends.begin(), ends.end(), [&](std::uint32_t a, std::uint32_t b) {
    return rows[a].upper != rows[b].upper ? rows[a].upper < rows[b].upper : a < b;
  });
  TraceBuilder out("");
  out.trace.events.reserve(2 * rows.size());
  std::size_t ended = 0;
  for (const std::uint32_t i : begins) {
    for (; rows[ends[ended]].upper <= rows[i].lower; ++ended) {
      out.now = rows[ends[ended]].upper;
      out.free(block[ends[ended]]);
    }
    out.now = rows[i].lower;
    block[i] = out.alloc(rows[i].bytes);
  }
  for (; ended < ends.size(); ++ended) {
    out.now = rows[ends[ended]].upper;
    out.free(block[ends[ended]]);
  }
  return only(std::move(out.trace), "");
}

}  // namespace taper::tools
