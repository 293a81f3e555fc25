// Packs what a report shows: which blocks, on which axis of addresses, in how few bytes.
#include <algorithm>
#include <bit>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "taper/tools/alloc/report_choice.h"
#include "taper/tools/alloc/report_parts.h"

namespace taper::tools {
namespace {

using Json = nlohmann::json;

// What the parts of a page may take, in base64; with the page itself they stay below 5 MB.
constexpr std::size_t kBlockBudget = 3'400'000, kRangeBudget = 300'000, kSiteBudget = 400'000,
                      kGridBudget = 500'000;
constexpr std::size_t kBytesABlock = 14, kBytesARange = 12;  // about
constexpr std::uint64_t kPage = kPageBytes;
constexpr std::uint64_t kFewSteps = 4;  // fewer have no first quarter to warm up in

std::string base64(const std::vector<std::uint8_t>& bytes) {
  const char* digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t left = std::min<std::size_t>(bytes.size() - i, 3);
    std::uint32_t word = static_cast<std::uint32_t>(bytes[i]) << 16;
    if (left > 1) word |= static_cast<std::uint32_t>(bytes[i + 1]) << 8;
    if (left > 2) word |= bytes[i + 2];
    out += digits[word >> 18];
    out += digits[word >> 12 & 63];
    out += left > 1 ? digits[word >> 6 & 63] : '=';
    out += left > 2 ? digits[word & 63] : '=';
  }
  return out;
}

// Differences to the word before, zigzag, in groups of 7 bits: lists that hardly change are short.
std::string packed(const std::vector<std::uint32_t>& words) {
  std::vector<std::uint8_t> bytes;
  bytes.reserve(2 * words.size());
  std::uint32_t before = 0;
  for (const std::uint32_t w : words) {
    const std::uint32_t change = w - before;
    std::uint32_t rest = change << 1 ^ (change >> 31 != 0 ? ~std::uint32_t{0} : 0);
    for (; rest > 127; rest >>= 7) bytes.push_back(static_cast<std::uint8_t>(rest | 128));
    bytes.push_back(static_cast<std::uint8_t>(rest));
    before = w;
  }
  return base64(bytes);
}

// Curves keep 24 bits: they are drawn, not added up.
std::string packed_curve(const std::vector<std::uint64_t>& values) {
  std::vector<std::uint8_t> bytes(4 * values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto word = std::bit_cast<std::uint32_t>(static_cast<float>(values[i]));
    for (std::size_t k = 0; k < 4; ++k)
      bytes[4 * i + k] = static_cast<std::uint8_t>(word >> (8 * k));
  }
  return base64(bytes);
}

// The sites of the chosen blocks, the weightiest first, until their text is too long; each block
// then has the number of its site in that list, 0 for "not known".
Json sites_of(const Trace& trace,
              const std::vector<Life>& lives,
              const std::vector<std::uint32_t>& blocks,
              std::vector<std::uint32_t>& number) {
  std::vector<double> area(trace.sites.size(), 0);
  for (const std::uint32_t b : blocks) area[trace.events[lives[b].begin].site] += lives[b].area + 1;
  std::vector<std::uint32_t> order;
  for (std::uint32_t s = 1; s < area.size(); ++s) {
    if (area[s] > 0) order.push_back(s);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return area[a] > area[b]; });
  std::vector<std::uint32_t> listed(trace.sites.size(), 0);
  Json sites = Json::array({Json::array({"", "", "", 0, ""})});
  std::size_t length = 0;
  for (const std::uint32_t s : order) {
    const TraceSite& site = trace.sites[s];
    const TraceFrame frame = site.frames.empty() ? TraceFrame{} : site.frames.front();
    Json row = Json::array({site.op, site.scope, frame.file, frame.line, frame.function});
    length += row.dump(-1, ' ', true, Json::error_handler_t::replace).size();
    if (length > kSiteBudget) break;
    listed[s] = static_cast<std::uint32_t>(sites.size());
    sites.push_back(std::move(row));
  }
  number.clear();
  for (const std::uint32_t b : blocks) number.push_back(listed[trace.events[lives[b].begin].site]);
  return sites;
}

// What all runs share of the blocks.
Json blocks_of(const Trace& trace,
               const std::vector<Life>& lives,
               const std::vector<std::uint32_t>& blocks,
               const std::vector<std::uint32_t>& site) {
  std::vector<std::uint32_t> begin, end, size, entry, stream;
  std::vector<std::uint64_t> sizes;
  std::unordered_map<std::uint64_t, std::uint32_t> size_number;
  for (const std::uint32_t b : blocks) {
    const TraceEvent& e = trace.events[lives[b].begin];
    const auto known = size_number.emplace(e.bytes, static_cast<std::uint32_t>(sizes.size()));
    if (known.second) sizes.push_back(e.bytes);
    begin.push_back(lives[b].begin), end.push_back(lives[b].end);
    size.push_back(known.first->second);
    entry.push_back(e.entry), stream.push_back(e.stream);
  }
  return {{"count", blocks.size()},    {"all", lives.size()},  {"number", packed(blocks)},
          {"begin", packed(begin)},    {"end", packed(end)},   {"size", packed(size)},
          {"sizes", std::move(sizes)}, {"site", packed(site)}, {"entry", packed(entry)},
          {"stream", packed(stream)}};
}

// Addresses as they are drawn: wide gaps that nothing ever used are cut short, since a policy may
// reserve far more addresses than memory.
class AddressAxis {
 public:
  explicit AddressAxis(const ReportRun& run) {
    std::vector<Span> used;
    const auto add = [&](std::uint64_t offset, std::uint64_t bytes) {
      const std::uint64_t begin = offset / kPage * kPage;
      const std::uint64_t end = (offset + bytes + kPage - 1) / kPage * kPage;
      if (bytes > 0 && (used.empty() || begin < used.back().offset || end > used.back().end))
        used.push_back({begin, end, 0});
    };
    for (const ReportPlace& p : run.places) add(p.offset, p.bytes);
    for (const ReportRange& r : run.ranges) add(r.offset, r.bytes);
    std::sort(used.begin(), used.end(),
              [](const Span& a, const Span& b) { return a.offset < b.offset; });
    join(used, 0);
    std::uint64_t total = 0;
    for (const Span& s : spans_) total += s.end - s.offset;
    const std::vector<Span> apart = std::move(spans_);
    join(apart, total / 16);
    const std::uint64_t gap = (total / 50 + kPage - 1) / kPage * kPage;
    for (Span& s : spans_) {
      s.position = total_;
      total_ += s.end - s.offset + gap;
    }
    if (!spans_.empty()) total_ -= gap;
    while (total_ / unit_ >= ~std::uint32_t{0}) unit_ *= 2;
  }

  std::uint64_t position(std::uint64_t offset) const {
    const auto after =
        std::upper_bound(spans_.begin(), spans_.end(), offset,
                         [](std::uint64_t at, const Span& s) { return at < s.offset; });
    const Span& s = *std::prev(after);
    return s.position + (offset - s.offset);
  }

  std::uint32_t units(std::uint64_t bytes) const {
    return static_cast<std::uint32_t>(bytes / unit_);
  }

  std::uint64_t unit() const { return unit_; }

  std::uint64_t total() const { return total_; }

  Json json() const {
    Json rows = Json::array();
    for (const Span& s : spans_) rows.push_back({s.offset, s.end - s.offset, s.position});
    return rows;
  }

 private:
  struct Span {
    std::uint64_t offset, end, position;
  };

  void join(const std::vector<Span>& used, std::uint64_t gap) {
    spans_.clear();
    for (const Span& s : used) {
      if (!spans_.empty() && s.offset <= spans_.back().end + gap) {
        spans_.back().end = std::max(spans_.back().end, s.end);
      } else {
        spans_.push_back(s);
      }
    }
  }

  std::vector<Span> spans_;
  std::uint64_t total_ = 0, unit_ = kBlockBytes;
};

// How full the blocks that are not shown one by one make each cell of events and addresses, in
// 255ths.
Json grid_of(const ReportRun& run,
             const AddressAxis& axis,
             const std::vector<Life>& lives,
             const std::vector<std::uint32_t>& shown,
             std::size_t events,
             std::size_t runs) {
  if (shown.size() == lives.size() || axis.total() == 0) return nullptr;
  const std::size_t rows = 400;
  const std::size_t columns = std::clamp<std::size_t>(kGridBudget / runs * 3 / 4 / rows, 16, 400);
  const double width = static_cast<double>(events) / static_cast<double>(columns);
  const double height = static_cast<double>(axis.total()) / static_cast<double>(rows);
  std::vector<float> cells(rows * columns, 0);
  // What [low, high) shares with cell number `c` of a size.
  const auto share = [](double low, double high, std::size_t c, double size) {
    const double begin = static_cast<double>(c) * size;
    return std::max(0.0, std::min(high, begin + size) - std::max(low, begin)) / size;
  };
  auto next = shown.begin();
  for (std::uint32_t b = 0; b < lives.size(); ++b) {
    if (next != shown.end() && *next == b) {
      ++next;
      continue;
    }
    if (run.places[b].bytes == 0) continue;
    const double begin = lives[b].begin, end = lives[b].end;
    const auto low = static_cast<double>(axis.position(run.places[b].offset));
    const double high = low + static_cast<double>(run.places[b].bytes);
    for (auto c = static_cast<std::size_t>(begin / width);
         c < columns && static_cast<double>(c) * width < end; ++c) {
      const double part = share(begin, end, c, width);
      for (auto r = static_cast<std::size_t>(low / height);
           r < rows && static_cast<double>(r) * height < high; ++r)
        cells[r * columns + c] += static_cast<float>(part * share(low, high, r, height));
    }
  }
  std::vector<std::uint8_t> bytes;
  bytes.reserve(cells.size());
  for (const float c : cells)
    bytes.push_back(static_cast<std::uint8_t>(std::min(255.0f, c * 255.0f + 0.5f)));
  return {{"columns", columns}, {"rows", rows}, {"cells", base64(bytes)}};
}

std::string ranges_of(const ReportRun& run, const AddressAxis& axis, std::size_t runs) {
  std::vector<ReportRange> ranges;
  for (const ReportRange& r : run.ranges) {
    if (r.bytes > 0) ranges.push_back(r);
  }
  const std::size_t most = kRangeBudget / runs / kBytesARange;
  if (ranges.size() > most) {
    const auto area = [](const ReportRange& r) {
      return static_cast<double>(r.bytes) * static_cast<double>(r.end - r.begin);
    };
    std::stable_sort(ranges.begin(), ranges.end(),
                     [&](const ReportRange& a, const ReportRange& b) { return area(a) > area(b); });
    ranges.resize(most);
  }
  std::vector<std::uint32_t> words;
  for (const ReportRange& r : ranges) {
    words.push_back(axis.units(axis.position(r.offset)));
    words.push_back(axis.units(r.bytes));
    words.push_back(static_cast<std::uint32_t>(r.begin));
    words.push_back(static_cast<std::uint32_t>(r.end));
  }
  return packed(words);
}

Json result_of(const TwinResult& r) {
  const AllocatorStats& s = r.stats;
  return {{"finished", r.finished},
          {"stopped", r.stopped},
          {"failure", r.failure},
          {"maxLoad", r.max_load},
          {"steps", r.steps},
          {"mapsPerStep", r.steps < kFewSteps ? Json() : Json(r.maps_per_step)},
          {"hash", std::to_string(r.placement_hash)},
          {"seconds", r.seconds},
          {"reservedPeak", s.reserved_peak},
          {"allocatedPeak", s.allocated_peak},
          {"requestedPeak", s.requested_peak},
          {"pendingPeak", s.pending_peak},
          {"reserved", s.reserved},
          {"releasable", s.releasable},
          {"inactiveSplit", s.inactive_split},
          {"largestFree", s.largest_free},
          {"allocations", s.allocations},
          {"deviceCalls", s.device_calls},
          {"pagesMapped", s.pages_mapped},
          {"pagesUnmapped", s.pages_unmapped},
          {"streamWaits", s.stream_waits},
          {"retries", s.retries},
          {"ooms", s.ooms}};
}

Json peak_of(const ReportPeak& peak) {
  const AllocatorStats& s = peak.stats;
  return {{"event", peak.event},      {"reserved", s.reserved}, {"allocated", s.allocated},
          {"requested", s.requested}, {"pending", s.pending},   {"largestFree", s.largest_free}};
}

// Where a run puts the blocks that are shown one by one.
struct RunPlaces {
  AddressAxis axis;
  std::string at, bytes;
};

RunPlaces places_of(const ReportRun& run, const std::vector<std::uint32_t>& blocks) {
  AddressAxis axis(run);
  std::vector<std::uint32_t> at, bytes;
  for (const std::uint32_t b : blocks) {
    const ReportPlace& p = run.places[b];
    at.push_back(p.bytes == 0 ? 0 : axis.units(axis.position(p.offset)));
    bytes.push_back(axis.units(p.bytes + axis.unit() - 1));
  }
  return {std::move(axis), packed(at), packed(bytes)};
}

Json run_of(const ReportRun& run,
            const RunPlaces& places,
            const std::vector<Life>& lives,
            const std::vector<std::uint32_t>& blocks,
            std::size_t events,
            std::size_t runs) {
  const AddressAxis& axis = places.axis;
  Json curves;
  const std::pair<const char*, const ReportCurve*> named[] = {{"reserved", &run.reserved},
                                                              {"allocated", &run.allocated},
                                                              {"requested", &run.requested},
                                                              {"pending", &run.pending},
                                                              {"largestFree", &run.largest_free}};
  for (const auto& [name, curve] : named)
    curves[name] = {{"low", packed_curve(curve->low)}, {"high", packed_curve(curve->high)}};
  return {{"policy", run.policy},
          {"result", result_of(run.result)},
          {"peak", peak_of(run.peak)},
          {"perPoint", run.events_per_point},
          {"curves", std::move(curves)},
          {"unit", axis.unit()},
          {"total", axis.total()},
          {"spans", axis.json()},
          {"at", places.at},
          {"bytes", places.bytes},
          {"ranges", ranges_of(run, axis, runs)},
          {"grid", grid_of(run, axis, lives, blocks, events, runs)}};
}

// Where steps end; of very many only some.
std::vector<std::size_t> steps_of(const Trace& trace) {
  std::vector<std::size_t> steps;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    if (trace.events[i].action == TraceAction::kStep) steps.push_back(i);
  }
  const std::size_t every = steps.size() / 200 + 1;
  std::vector<std::size_t> some;
  for (std::size_t i = every - 1; i < steps.size(); i += every) some.push_back(steps[i]);
  return some;
}

}  // namespace

std::string report_data(const Trace& trace, const std::vector<ReportRun>& runs) {
  const std::vector<Life> lives = lives_of(trace);
  const std::size_t count = std::max<std::size_t>(runs.size(), 1), events = trace.events.size();
  // How long a block's data are shows when they are packed; then there may have to be fewer.
  Choice choice;
  Json blocks, sites;
  std::vector<RunPlaces> places;
  for (std::size_t most = kBlockBudget / kBytesABlock;;) {
    choice = choose(lives, runs, events, most);
    std::vector<std::uint32_t> site;
    sites = sites_of(trace, lives, choice.blocks, site);
    blocks = blocks_of(trace, lives, choice.blocks, site);
    std::size_t size = 0;
    for (const auto& list : blocks.items()) {
      if (list.value().is_string()) size += list.value().get_ref<const std::string&>().size();
    }
    places.clear();
    for (const ReportRun& run : runs) {
      places.push_back(places_of(run, choice.blocks));
      size += places.back().at.size() + places.back().bytes.size();
    }
    if (size <= kBlockBudget) break;
    most = static_cast<std::size_t>(0.98 * static_cast<double>(choice.blocks.size()) *
                                    static_cast<double>(kBlockBudget) / static_cast<double>(size));
  }
  Json data;
  data["device"] = trace.device;
  data["source"] = trace.source;
  data["events"] = events;
  data["page"] = kPage;
  data["steps"] = steps_of(trace);
  data["sites"] = std::move(sites);
  data["blocks"] = std::move(blocks);
  data["exact"] = Json::array();
  for (const Window& w : choice.windows) data["exact"].push_back({w.begin, w.end});
  data["runs"] = Json::array();
  for (std::size_t i = 0; i < runs.size(); ++i)
    data["runs"].push_back(run_of(runs[i], places[i], lives, choice.blocks, events, count));
  const std::string text = data.dump(-1, ' ', true, Json::error_handler_t::replace);
  std::string safe;  // no "</script>" in it, whatever the names are
  safe.reserve(text.size());
  for (const char c : text) {
    if (c == '<') safe += "\\u003c";
    else safe += c;
  }
  return safe;
}

}  // namespace taper::tools
