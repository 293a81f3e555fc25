// One HTML page that shows what policies did with a trace: curves, addresses over time, and what
// pins each page.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "taper/allocator/trace.h"
#include "taper/allocator/twin.h"

namespace taper::tools {

// The least and the most within each point's events.
struct ReportCurve {
  std::vector<std::uint64_t> low, high;
};

struct ReportPlace {
  std::uint64_t offset = 0, bytes = 0;  // no bytes: it was not placed
};

// Memory that was reserved as one segment during the events [begin, end).
struct ReportRange {
  std::uint64_t offset = 0, bytes = 0;
  std::uint64_t begin = 0, end = 0;
};

// The event after which most is reserved, of those the first after which most is allocated.
struct ReportPeak {
  std::size_t event = 0;
  AllocatorStats stats;  // then
};

// What one policy did. The blocks' sizes, lifetimes and origins are those of the trace.
struct ReportRun {
  std::string policy;
  TwinResult result;
  std::uint64_t events_per_point = 1;  // of the curves
  ReportCurve reserved, allocated, requested, pending, largest_free;
  ReportPeak peak;
  std::vector<ReportPlace> places;  // by block number
  std::vector<ReportRange> ranges;
};

// Watches run_twin for a report. Reads the memory map at most `kMaps` times, so that segments are
// known to 1 / kMaps of the trace.
class ReportRecorder final : public TwinObserver {
 public:
  static constexpr std::size_t kPoints = 2000, kMaps = 400;

  // `trace` must outlive the recorder.
  ReportRecorder(const Trace& trace, std::string policy);

  void after(std::size_t event, const Allocator& allocator) override;
  void placed(std::size_t event, std::uint64_t offset, std::uint64_t bytes) override;

  // What was seen; the recorder is spent.
  ReportRun take(const TwinResult& result);

 private:
  void read_map(std::size_t event, const Allocator& allocator);

  const Trace& trace_;
  ReportRun run_;
  std::vector<ReportRange> open_;  // by offset
  std::size_t seen_ = 0;           // events
  std::size_t next_map_ = 0;       // the event from which the map may be read again
  std::uint64_t map_changes_ = ~std::uint64_t{0};
};

// The page, in one file that refers to nothing outside. Of a large trace it shows the blocks that
// took most (bytes times events), and the sum of the others.
std::string report_html(const Trace& trace, const std::vector<ReportRun>& runs);

}  // namespace taper::tools
