// Asks allocators on behalf of users.
#include "taper/core/memory.h"

#include <cstdio>

#include "taper/allocator/options.h"
#include "taper/allocator/page_map.h"
#include "taper/allocator/snapshot.h"
#include "taper/core/base/error.h"
#include "taper/core/base/text.h"
#include "taper/core/storage.h"

namespace taper::memory {
namespace {

void add_row(std::string& out, const char* name, std::uint64_t now, std::uint64_t peak) {
  char line[96];
  std::snprintf(line, sizeof line, "%-16s %12s %12s\n", name, size_text(now).c_str(),
                size_text(peak).c_str());
  out += line;
}

}  // namespace

AllocatorStats stats(Device device) {
  return allocator_for(device).stats();
}

void reset_peak_stats(Device device) {
  allocator_for(device).reset_peaks();
}

void empty_cache(Device device) {
  allocator_for(device).empty_cache();
}

std::string summary(Device device) {
  const Allocator& allocator = allocator_for(device);
  const AllocatorStats s = allocator.stats();
  std::string out = str("memory of ", device, ", ", to_string(allocator.options()), "\n");
  char line[128];
  std::snprintf(line, sizeof line, "%-16s %12s %12s\n", "", "now", "peak");
  out += line;
  add_row(out, "reserved", s.reserved, s.reserved_peak);
  add_row(out, "allocated", s.allocated, s.allocated_peak);
  add_row(out, "requested", s.requested, s.requested_peak);
  add_row(out, "pending", s.pending, s.pending_peak);
  add_row(out, "inactive split", s.inactive_split, s.inactive_split_peak);
  for (const auto& [name, bytes] :
       {std::pair{"active", s.active()}, std::pair{"releasable", s.releasable},
        std::pair{"largest free", s.largest_free}}) {
    std::snprintf(line, sizeof line, "%-16s %12s\n", name, size_text(bytes).c_str());
    out += line;
  }
  const std::pair<const char*, std::uint64_t> counts[] = {{"blocks", s.blocks},
                                                          {"allocations", s.allocations},
                                                          {"device calls", s.device_calls},
                                                          {"pages mapped", s.pages_mapped},
                                                          {"retries", s.retries},
                                                          {"out of memory", s.ooms}};
  for (const auto& [name, n] : counts) {
    std::snprintf(line, sizeof line, "%-16s %12llu\n", name, static_cast<unsigned long long>(n));
    out += line;
  }
  std::snprintf(line, sizeof line, "%-16s %11.1f%% internal, %.1f%% external\n", "fragmentation",
                100 * s.internal_fragmentation(), 100 * s.external_fragmentation());
  return out + line;
}

std::string map(Device device) {
  return page_map_text(allocator_for(device).memory_map());
}

void snapshot(const std::string& path) {
  cpu_allocator();  // the first, whether or not it was used
  write_snapshot(take_snapshot(all_allocators()), path);
}

void end_step(Device device) {
  if (!device.is_meta()) allocator_for(device).note_step();
}

}  // namespace taper::memory

const char* taper_mem_map() {
  static char text[std::size_t{1} << 16];
  taper::PageMapWriter writer(text, sizeof text);
  taper::cpu_allocator().write_map(writer);
  writer.finish();
  return text;
}
