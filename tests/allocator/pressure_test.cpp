// What the arena does when others need the device's memory.
#include <vector>

#include <gtest/gtest.h>

#include "taper/allocator/allocator.h"
#include "taper/allocator/options.h"
#include "taper/allocator/out_of_memory.h"
#include "taper/allocator/sim_device.h"

namespace taper {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

// A device of which others take `others` bytes.
class SharedDevice final : public SimDevice {
 public:
  SharedDevice() : SimDevice({.capacity = 1024 * kMiB}) {}

  bool create(std::size_t count, PhysicalPage* pages) override {
    return count * kPageBytes <= available() && SimDevice::create(count, pages);
  }

  std::size_t available() const override {
    const std::size_t left = SimDevice::available();
    return left > others ? left - others : 0;
  }

  bool wants_memory_back() const override { return pressed; }

  std::size_t others = 0;
  bool pressed = false;
};

struct Shared {
  Shared() {
    auto owned = std::make_unique<SharedDevice>();
    device = owned.get();
    allocator = make_allocator(AllocatorOptions(), std::move(owned));
  }

  SharedDevice* device = nullptr;
  std::unique_ptr<Allocator> allocator;
};

TEST(Pressure, FreePagesGoBackWhenTheDeviceWantsThem) {
  Shared s;
  const Block kept = s.allocator->allocate(10 * kMiB, 0);
  const Block large = s.allocator->allocate(400 * kMiB, 0);
  s.allocator->free(large, 400 * kMiB, 0);
  EXPECT_EQ(s.allocator->stats().reserved, 410 * kMiB);
  const Block fits =
      s.allocator->allocate(100 * kMiB, 0);  // no call of the device: nothing changes
  EXPECT_EQ(s.allocator->stats().reserved, 410 * kMiB);
  s.device->pressed = true;
  const Block more = s.allocator->allocate(350 * kMiB, 0);
  EXPECT_EQ(s.allocator->stats().reserved, 460 * kMiB);  // what is out, and no more
  EXPECT_EQ(s.device->created_pages() * kPageBytes, 460 * kMiB);
  for (const auto& [block, bytes] :
       {std::pair{kept, 10 * kMiB}, {fits, 100 * kMiB}, {more, 350 * kMiB}})
    s.allocator->free(block, bytes, 0);
}

TEST(Pressure, FreePagesAreMovedWhereTheDeviceHasNoMore) {
  Shared s;
  // Every second one of 32 blocks of 10 MiB: 160 MiB are free, 10 together.
  Block blocks[32];
  for (Block& b : blocks) b = s.allocator->allocate(10 * kMiB, 0);
  for (int i = 0; i < 32; i += 2) s.allocator->free(blocks[i], 10 * kMiB, 0);
  s.device->others = 1024 * kMiB - 320 * kMiB;
  const Block large = s.allocator->allocate(160 * kMiB, 0);
  EXPECT_EQ(s.allocator->stats().reserved, 320 * kMiB);
  EXPECT_THROW(s.allocator->allocate(kMiB, 0), OutOfMemory);
  try {
    s.allocator->allocate(kMiB, 0);
  } catch (const OutOfMemory& e) {
    EXPECT_EQ(e.report().others, 704 * kMiB);
    EXPECT_EQ(e.report().unused, 0u);
  }
  s.allocator->free(large, 160 * kMiB, 0);
  for (int i = 1; i < 32; i += 2) s.allocator->free(blocks[i], 10 * kMiB, 0);
}

// A device whose address space is as small as it may be.
class NarrowDevice final : public SimDevice {
 public:
  std::size_t reserve(std::size_t, std::size_t least) override {
    return SimDevice::reserve(least, least);
  }
};

TEST(Narrow, AFullAddressSpaceIsSeenWholeAndSaidToBeTheReason) {
  const auto allocator = make_allocator(AllocatorOptions(), std::make_unique<NarrowDevice>());
  std::vector<Block> blocks;
  std::string text;
  while (text.empty()) {
    try {
      blocks.push_back(allocator->allocate(4 * kMiB, 0));
    } catch (const OutOfMemory& e) {
      const MemoryReport& r = e.report();
      EXPECT_EQ(r.capacity, r.live);
      EXPECT_EQ(r.unused, 0u);
      text = e.what();
    }
  }
  EXPECT_NE(text.find("ulimit -v"), std::string::npos) << text;
  std::uint64_t live = 0;
  for (const SegmentInfo& segment : allocator->memory_map()) live += segment.bytes;
  EXPECT_EQ(live, blocks.size() * 4 * kMiB);
  for (const Block& b : blocks) allocator->free(b, 4 * kMiB, 0);
}

TEST(Narrow, TheLargestWindowCannotBeAskedForAtOnce) {
  SimDevice::Settings settings;
  settings.capacity = std::size_t{1} << 44;
  const auto allocator = make_allocator(AllocatorOptions(), std::make_unique<SimDevice>(settings));
  const Block small = allocator->allocate(4096, 0);
  for (const std::size_t less : {std::size_t{0}, std::size_t{512}, kPageBytes}) {
    const std::size_t bytes = (std::size_t{2} << 40) - less;
    EXPECT_THROW(allocator->allocate(bytes, 0), OutOfMemory) << bytes;
  }
  allocator->free(small, 4096, 0);
}

}  // namespace
}  // namespace taper
