// Takes a snapshot of running allocators.
#include "taper/allocator/snapshot.h"

#include <map>

#include "taper/allocator/memory_device.h"
#include "taper/allocator/options.h"
#include "taper/allocator/ring.h"

namespace taper {
namespace {

// Blocks name sites by the process's numbers; a file has its own.
void number_sites(DeviceSnapshot& d) {
  std::map<std::uint32_t, std::uint32_t> numbers{{0, 0}};
  for (SegmentInfo& s : d.segments) {
    for (BlockInfo& b : s.blocks) {
      const auto [it, fresh] = numbers.try_emplace(b.site, 0);
      if (fresh) {
        const TraceSite site = site_of(b.site);
        std::uint32_t n = 0;
        while (n < d.trace.sites.size() && !(d.trace.sites[n] == site)) ++n;
        if (n == d.trace.sites.size()) d.trace.sites.push_back(site);
        it->second = n;
      }
      b.site = it->second;
    }
  }
}

}  // namespace

Snapshot take_snapshot(ArrayRef<const Allocator*> allocators) {
  Snapshot out;
  for (const Allocator* a : allocators) {
    if (out.devices.empty()) out.options = to_string(a->options());
    DeviceSnapshot d;
    d.device = a->device().name();
    d.base = reinterpret_cast<std::uintptr_t>(a->device().base());
    d.segments = a->memory_map();
    d.trace = a->recent_events();
    if (d.trace.device.empty()) d.trace.device = d.device;
    number_sites(d);
    out.devices.push_back(std::move(d));
  }
  return out;
}

void write_snapshot(const Snapshot& snapshot, const std::string& path) {
  if (path.ends_with(".pickle")) write_pickle(snapshot, path);
  else if (path.ends_with(".json")) write_json(snapshot, path);
  else write_binary(snapshot, path);
}

}  // namespace taper
