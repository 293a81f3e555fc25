// A CUDA device's memory for the allocator: the driver's virtual memory; and the pinned host's.
#include <cstdlib>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include <cuda.h>

#include "taper/allocator/allocator.h"
#include "taper/allocator/cpu_device.h"
#include "taper/allocator/options.h"
#include "taper/core/base/text.h"
#include "taper/core/storage.h"
#include "taper/cuda/check.h"
#include "taper/cuda/graph.h"
#include "taper/cuda/marks.h"
#include "taper/cuda/runtime.h"

#ifdef TAPER_CUDA_EMULATED
#include "taper/cuda/emulated/sanitizer.h"
#endif

namespace taper {
namespace cuda {
namespace {

template <class F> F find_in_driver(const char* name) {
  constexpr unsigned kSince = 12000;  // CUDA 12.0
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  TAPER_CUDA_CHECK(
      cudaGetDriverEntryPointByVersion(name, &function, kSince, cudaEnableDefault, &found));
  TAPER_CHECK(function != nullptr, "the CUDA driver is too old: it has no ", name);
  return reinterpret_cast<F>(function);
}

// Looked up at run time: the library starts on machines that have no driver.
struct Driver {
  decltype(&cuMemAddressReserve) reserve =
      find_in_driver<decltype(&cuMemAddressReserve)>("cuMemAddressReserve");
  decltype(&cuMemCreate) create = find_in_driver<decltype(&cuMemCreate)>("cuMemCreate");
  decltype(&cuMemRelease) release = find_in_driver<decltype(&cuMemRelease)>("cuMemRelease");
  decltype(&cuMemMap) map = find_in_driver<decltype(&cuMemMap)>("cuMemMap");
  decltype(&cuMemUnmap) unmap = find_in_driver<decltype(&cuMemUnmap)>("cuMemUnmap");
  decltype(&cuMemSetAccess) set_access =
      find_in_driver<decltype(&cuMemSetAccess)>("cuMemSetAccess");
};

class VmmDevice final : public MemoryDevice {
 public:
  explicit VmmDevice(int device) : device_(device), marks_(device) {
    const DeviceGuard guard(device_);
    TAPER_CUDA_CHECK(cudaFree(nullptr));  // the driver's calls need the device to be set up
    driver_ = std::make_unique<Driver>();
    size_t free = 0;
    TAPER_CUDA_CHECK(cudaMemGetInfo(&free, &capacity_));
  }

  size_t reserve(size_t most, size_t least) override {
    const DeviceGuard guard(device_);
    for (size_t bytes = most; bytes >= least; bytes = bytes / 2 / kPageBytes * kPageBytes) {
      CUdeviceptr at = 0;
      if (driver_->reserve(&at, bytes, kPageBytes, 0, 0) != CUDA_SUCCESS) continue;
      base_ = reinterpret_cast<char*>(at);
      return bytes;
    }
    fail(str(name(), " refuses even ", size_text(least), " of address space"));
  }

  char* base() const override { return base_; }

  bool create(size_t count, PhysicalPage* pages) override {
    const DeviceGuard guard(device_, std::nothrow);
    if (!guard.is_set()) return false;
    take_back_again();
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = here();
    for (size_t i = 0; i < count; ++i) {
      CUmemGenericAllocationHandle handle = 0;
      if (driver_->create(&handle, kPageBytes, &properties, 0) != CUDA_SUCCESS) {
        destroy({pages, i});
        return false;
      }
      pages[i] = handle;
    }
    return true;
  }

  void destroy(ArrayRef<PhysicalPage> pages) override {
    const DeviceGuard guard(device_, std::nothrow);
    for (const PhysicalPage page : pages) release(page);
  }

  bool map(size_t first, ArrayRef<PhysicalPage> pages) override {
    const DeviceGuard guard(device_, std::nothrow);
    if (!guard.is_set()) return false;
    take_back_again();
    for (size_t i = 0; i < pages.size(); ++i) {
      if (driver_->map(address(first + i), kPageBytes, 0, pages[i], 0) == CUDA_SUCCESS) continue;
      if (i != 0) take_away({first, i});
      return false;
    }
    CUmemAccessDesc access{};
    access.location = here();
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    const size_t bytes = pages.size() * kPageBytes;
    if (driver_->set_access(address(first), bytes, &access, 1) == CUDA_SUCCESS) return true;
    take_away({first, pages.size()});
    return false;
  }

  void unmap(size_t first, ArrayRef<PhysicalPage> pages) override {
    const DeviceGuard guard(device_, std::nothrow);
    take_away({first, pages.size()});
  }

  StreamMark mark(StreamId stream) override { return marks_.add(stream); }

  void wait(StreamId stream, StreamId other, StreamMark mark) override {
    marks_.wait(stream, other, mark);
  }

  bool reached(StreamId stream, StreamMark mark) override { return marks_.reached(stream, mark); }

  void synchronize(StreamId stream, StreamMark mark) override { marks_.synchronize(stream, mark); }

#ifdef TAPER_CUDA_EMULATED
  // Device memory is the host's there, where AddressSanitizer can watch it. Not with late streams:
  // work that they were given before the block was freed may write there yet.
  void poison(const void* data, size_t bytes) override {
    if (!emulated::streams_are_late()) emulated::poison(data, bytes);
  }

  void unpoison(const void* data, size_t bytes) override {
    emulated::unpoison(data, bytes);
  }
#endif

  size_t capacity() const override {
    return capacity_;
  }

  size_t available() const override {
    const DeviceGuard guard(device_);
    size_t free = 0, total = 0;
    TAPER_CUDA_CHECK(cudaMemGetInfo(&free, &total));
    return free;
  }

  std::string name() const override {
    return str("cuda:", device_);
  }

 private:
  CUmemLocation here() const {
    CUmemLocation location{};
    location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    location.id = device_;
    return location;
  }

  CUdeviceptr address(size_t page) const {
    return reinterpret_cast<CUdeviceptr>(base_ + page * kPageBytes);
  }

  struct Range {
    size_t first, count;
  };

  // Giving back cannot fail for the allocator; what the driver refuses is tried again later.
  void take_away(Range pages) {
    if (driver_->unmap(address(pages.first), pages.count * kPageBytes) != CUDA_SUCCESS)
      still_mapped_.push_back(pages);
  }

  void release(PhysicalPage page) {
    if (driver_->release(page) != CUDA_SUCCESS) unreleased_.push_back(page);
  }

  void take_back_again() {
    for (const Range& pages : std::exchange(still_mapped_, {})) take_away(pages);
    for (const PhysicalPage page : std::exchange(unreleased_, {})) release(page);
  }

  const int device_;
  std::unique_ptr<Driver> driver_;
  std::vector<Range> still_mapped_;
  std::vector<PhysicalPage> unreleased_;
  Marks marks_;
  char* base_ = nullptr;
  size_t capacity_ = 0;
};

// The host's pages, known to the devices: copies from and to them are asynchronous, so its streams
// are those of all of them and the host's own, and freed memory waits for them as a device's does.
class PinnedDevice final : public CpuDevice {
 public:
  explicit PinnedDevice(bool huge_pages) : CpuDevice(huge_pages) {
    for (int device = 0; device < device_count(); ++device) marks_.emplace_back(device);
  }

  // What the host does is done when it returns: its marks have always been reached.
  StreamMark mark(StreamId stream) override {
    return stream == kHostStream ? 0 : marks_of(stream).add(id_of(stream));
  }

  void wait(StreamId stream, StreamId other, StreamMark mark) override {
    if (stream == kHostStream) return synchronize(other, mark);
    if (other == kHostStream) return;
    TAPER_ASSERT(device_of(stream) == device_of(other));  // only the host owns blocks, see Storage
    marks_of(stream).wait(id_of(stream), id_of(other), mark);
  }

  bool reached(StreamId stream, StreamMark mark) override {
    return stream == kHostStream || marks_of(stream).reached(id_of(stream), mark);
  }

  void synchronize(StreamId stream, StreamMark mark) override {
    if (stream != kHostStream) marks_of(stream).synchronize(id_of(stream), mark);
  }

  bool map(size_t first, ArrayRef<PhysicalPage> pages) override {
    if (!CpuDevice::map(first, pages)) return false;
    const UncapturedCalls allowed;
    for (const size_t number : std::exchange(still_registered_, {})) unregister(number);
    for (size_t i = 0; i < pages.size(); ++i) {  // one by one, as they are unmapped in any groups
      if (cudaHostRegister(page(first + i), kPageBytes, cudaHostRegisterPortable) == cudaSuccess)
        continue;
      static_cast<void>(cudaGetLastError());
      while (i-- > 0) unregister(first + i);
      CpuDevice::unmap(first, pages);
      return false;
    }
    return true;
  }

  void unmap(size_t first, ArrayRef<PhysicalPage> pages) override {
    const UncapturedCalls allowed;
    for (size_t i = 0; i < pages.size(); ++i) unregister(first + i);
    CpuDevice::unmap(first, pages);
  }

#ifdef TAPER_CUDA_EMULATED
  // A late copy reads what was freed before it ran, and may: the memory waits for it.
  void poison(const void* data, size_t bytes) override {
    if (!emulated::streams_are_late()) CpuDevice::poison(data, bytes);
  }
#endif

  std::string name() const override {
    return "pinned host memory";
  }

 private:
  void* page(size_t number) const {
    return base() + number * kPageBytes;
  }

  // As for a device's pages, what is refused is tried again later.
  void unregister(size_t number) {
    if (cudaHostUnregister(page(number)) == cudaSuccess) return;
    static_cast<void>(cudaGetLastError());
    still_registered_.push_back(number);
  }

  std::vector<size_t> still_registered_;

  // See pinned_stream().
  static size_t device_of(StreamId stream) {
    return (stream - 1) / kPinnedStreams;
  }

  static StreamId id_of(StreamId stream) {
    return (stream - 1) % kPinnedStreams;
  }

  Marks& marks_of(StreamId stream) {
    return marks_.at(device_of(stream));
  }

  std::deque<Marks> marks_;
};

// TAPER_ALLOC, but that plain malloc serves the host alone.
AllocatorOptions device_options() {
  AllocatorOptions options = environment_allocator_options();
  if (options.policy == AllocatorPolicy::kMalloc) options = AllocatorOptions();
  return options;
}

}  // namespace
}  // namespace cuda

Allocator& cuda_allocator(int index) {
  // Never destroyed: tensors may die after main.
  static auto* all = [] {
    const int count = cuda::checked_device_count();
    static auto* made = new std::deque<std::unique_ptr<Allocator>>;
    // If a device fails, those before it stay, and the next try goes on there.
    for (int device = static_cast<int>(made->size()); device < count; ++device) {
      made->push_back(
          make_allocator(cuda::device_options(), std::make_unique<cuda::VmmDevice>(device)));
      register_allocator(*made->back());
    }
    return made;
  }();
  if (index < 0 || static_cast<size_t>(index) >= all->size()) cuda::fail_no_device(index);
  return *(*all)[static_cast<size_t>(index)];
}

Allocator& pinned_allocator() {
  static Allocator* const pinned = [] {
    TAPER_CHECK(
        cuda::checked_device_count() > 0,
        "memory is pinned for CUDA devices, and this machine has none: ", cuda::why_no_device());
    AllocatorOptions options = cuda::device_options();
    options.limit = 0;  // that of the device
    Allocator* made =
        make_allocator(options, std::make_unique<cuda::PinnedDevice>(options.huge_pages)).release();
    register_allocator(*made);
    return made;
  }();
  return *pinned;
}

}  // namespace taper
