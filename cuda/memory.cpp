// The allocator of a CUDA device: cudaMalloc, with a list of free blocks for each stream and size.
#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "taper/allocator/allocator.h"
#include "taper/cuda/check.h"
#include "taper/cuda/runtime.h"

#ifdef TAPER_CUDA_EMULATED
#include "taper/cuda/emulated/sanitizer.h"
#endif

namespace taper {
namespace cuda {
namespace {

// Device memory is the host's in the emulated build, where AddressSanitizer can watch it. Not with
// late streams: work that they were given before the block was freed may write there yet.
void poison([[maybe_unused]] void* data, [[maybe_unused]] size_t bytes) {
#ifdef TAPER_CUDA_EMULATED
  if (!emulated::streams_are_late()) emulated::poison(data, bytes);
#endif
}

void unpoison([[maybe_unused]] void* data, [[maybe_unused]] size_t bytes) {
#ifdef TAPER_CUDA_EMULATED
  emulated::unpoison(data, bytes);
#endif
}

class DevicePool final : public Allocator {
 public:
  explicit DevicePool(int device) : device_(device) {}

  Block allocate(size_t bytes, StreamId stream) override {
    if (bytes == 0) return {};
    TAPER_CHECK(bytes <= kMostBytes, "out of memory on cuda:", device_, ": asked for ", bytes);
    const size_t size = (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
    const std::lock_guard lock(mutex_);
    std::vector<void*>& free = free_[{stream, size}];
    void* data = nullptr;
    if (free.empty()) {
      data = take_from_device(size);
    } else {
      data = free.back();
      free.pop_back();
    }
    ++stats_.allocations;
    stats_.requested += bytes;
    stats_.allocated += size;
    stats_.allocated_peak = std::max(stats_.allocated_peak, stats_.allocated);
    unpoison(data, bytes);
    poison(static_cast<char*>(data) + bytes, size - bytes);
    return {data, size, 0};
  }

  void free(const Block& block, size_t requested, StreamId stream) noexcept override {
    if (block.data == nullptr) return;
    const std::lock_guard lock(mutex_);
    if (const auto used = users_.find(block.data); used != users_.end()) {
      for (const StreamId user : used->second) wait_for_user(user, stream);
      users_.erase(used);
    }
    poison(block.data, block.bytes);
    free_[{stream, block.bytes}].push_back(block.data);
    stats_.allocated -= block.bytes;
    stats_.requested -= requested;
  }

  void record_stream(const Block& block, StreamId stream) override {
    if (block.data == nullptr) return;
    const std::lock_guard lock(mutex_);
    std::vector<StreamId>& users = users_[block.data];
    if (std::find(users.begin(), users.end(), stream) == users.end()) users.push_back(stream);
  }

  void empty_cache() override {
    const std::lock_guard lock(mutex_);
    give_back_free();
  }

  AllocatorStats stats() const override {
    const std::lock_guard lock(mutex_);
    return stats_;
  }

 private:
  static constexpr size_t kMostBytes = size_t{1} << 48;

  void* take_from_device(size_t size) {
    const DeviceGuard guard(device_);
    void* data = nullptr;
    cudaError_t status = cudaMalloc(&data, size);
    if (status == cudaErrorMemoryAllocation) {
      static_cast<void>(cudaGetLastError());
      give_back_free();
      status = cudaMalloc(&data, size);
    }
    if (status == cudaErrorMemoryAllocation) {
      static_cast<void>(cudaGetLastError());
      fail(str("out of memory on cuda:", device_, ": asked for ", size, " bytes, ",
               stats_.allocated, " allocated, ", stats_.reserved, " reserved"));
    }
    TAPER_CUDA_CHECK(status);
    ++stats_.device_calls;
    stats_.reserved += size;
    stats_.reserved_peak = std::max(stats_.reserved_peak, stats_.reserved);
    return data;
  }

  void give_back_free() {
    const DeviceGuard guard(device_);
    for (auto& [key, blocks] : free_) {
      for (void* data : blocks) {
        unpoison(data, key.second);
        cudaFree(data);
        ++stats_.device_calls;
        stats_.reserved -= key.second;
      }
      blocks.clear();
    }
  }

  // The memory goes to `stream` in its order, so `stream` waits for what `user` has been given.
  void wait_for_user(StreamId user, StreamId stream) noexcept {
    if (user == stream) return;
    try {
      const Device here(kCUDA, device_);
      cuda::wait_for(here, stream_of(here, stream), here, stream_of(here, user));
    } catch (const Error&) {
      // The device is broken: its next call says so.
    }
  }

  const int device_;
  mutable std::mutex mutex_;
  std::map<std::pair<StreamId, size_t>, std::vector<void*>> free_;
  std::unordered_map<void*, std::vector<StreamId>> users_;  // besides the block's own stream
  AllocatorStats stats_;
};

}  // namespace
}  // namespace cuda

Allocator& cuda_allocator(int index) {
  // Never destroyed: tensors may die after main.
  static auto* pools = [] {
    auto* all = new std::deque<cuda::DevicePool>;
    for (int device = 0; device < cuda::device_count(); ++device) all->emplace_back(device);
    return all;
  }();
  TAPER_CHECK(index >= 0 && static_cast<size_t>(index) < pools->size(),
              "there is no device cuda:", index, "; this machine has ", pools->size());
  return (*pools)[static_cast<size_t>(index)];
}

}  // namespace taper
