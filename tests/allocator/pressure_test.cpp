// What the arena does when others need the device's memory.
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

}  // namespace
}  // namespace taper
