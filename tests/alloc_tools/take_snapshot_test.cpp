// A snapshot of an allocator: its map, its events, and one numbering of the sites.
#include <gtest/gtest.h>

#include "taper/allocator/options.h"
#include "taper/allocator/ring.h"
#include "taper/allocator/sim_device.h"
#include "taper/allocator/snapshot.h"
#include "taper/core/base/source_loc.h"

namespace taper::testing {
namespace {

// An allocator that only shows what it is told to.
class Shown final : public Allocator {
 public:
  Shown() { device_.reserve(kPageBytes, kPageBytes); }

  std::vector<SegmentInfo> map;
  Trace events;

  Block allocate(std::size_t, StreamId) override { return {}; }
  void free(const Block&, std::size_t, StreamId) noexcept override {}
  void record_stream(const Block&, StreamId) override {}
  void empty_cache() override {}
  PoolId make_pool(bool) override { return 0; }
  void begin_pool(PoolId, StreamId) override {}
  void end_pool(StreamId) override {}
  void release_pool(PoolId) override {}

  void note_step() override {}

  void write_map(PageMapWriter&) const override {}

  void lock_all() const override {}

  void unlock_all() const override {}
  AllocatorStats stats() const override { return {}; }
  AllocatorStats stream_stats(StreamId) const override { return {}; }
  AllocatorStats pool_stats(PoolId) const override { return {}; }
  void reset_peaks() override {}
  std::vector<SegmentInfo> memory_map() const override { return map; }
  Trace recent_events() const override { return events; }
  const AllocatorOptions& options() const override { return options_; }
  const MemoryDevice& device() const override { return device_; }

 private:
  AllocatorOptions options_;
  SimDevice device_;
};

std::uint32_t site_here() {
  const SourceLoc at = SourceLoc::current();
  const Call call(at, "matmul");
  return current_site();
}

TEST(TakeSnapshot, NumbersSitesAsItsTraceDoes) {
  const std::uint32_t site = site_here();
  ASSERT_NE(site, 0U);
  Shown a;
  a.events.sites.push_back({"other", "", {}});
  const auto block = [&](std::uint64_t offset, std::uint32_t s) {
    return BlockInfo{offset, 512, 512, BlockState::kLive, s, 0};
  };
  a.map = {{0, 2048, 0, 0, false, {block(0, site), block(512, 0), block(1024, site)}}};
  const Allocator* all[] = {&a, &a};
  const Snapshot s = take_snapshot({all, 2});
  ASSERT_EQ(s.devices.size(), 2U);
  EXPECT_EQ(s.options, "policy:taper");
  for (const DeviceSnapshot& d : s.devices) {
    EXPECT_EQ(d.device, "sim");
    EXPECT_EQ(d.trace.device, "sim");
    EXPECT_EQ(d.base, reinterpret_cast<std::uintptr_t>(a.device().base()));
    ASSERT_EQ(d.trace.sites.size(), 3U);
    EXPECT_TRUE(d.trace.sites[2] == site_of(site));
    EXPECT_EQ(d.segments[0].blocks[0].site, 2U);
    EXPECT_EQ(d.segments[0].blocks[1].site, 0U);
    EXPECT_EQ(d.segments[0].blocks[2].site, 2U);
  }
}

}  // namespace
}  // namespace taper::testing
