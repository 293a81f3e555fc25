// The host's allocator: one huge-page arena, and a free list for each exact size.
#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <vector>

#include <sys/mman.h>

#include "taper/allocator/allocator.h"
#include "taper/core/base/error.h"
#include "taper/core/base/spin_lock.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace taper {
namespace {

constexpr std::size_t kPage = std::size_t{2} << 20;          // a huge page
constexpr std::size_t kLargestArena = std::size_t{1} << 40;  // address space, not memory
constexpr std::size_t kSmallestArena = std::size_t{64} << 20;
constexpr std::size_t kDirectSizes = 4096;  // up to 2 MiB by plain index

std::size_t round_up(std::size_t n, std::size_t to) {
  return (n + to - 1) / to * to;
}

// Under AddressSanitizer freed and padding bytes are poisoned, so that a stray access is found.
void poison([[maybe_unused]] const void* data, [[maybe_unused]] std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_poison_memory_region(data, bytes);
#endif
}

void unpoison([[maybe_unused]] const void* data, [[maybe_unused]] std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(data, bytes);
#endif
}

class CpuArena final : public Allocator {
 public:
  CpuArena() {
    // Under `ulimit -v`, and under valgrind, less is to be had: halve until it fits.
    for (std::size_t bytes = kLargestArena; bytes >= kSmallestArena; bytes /= 2) {
      void* p = mmap(nullptr, bytes + kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                     -1, 0);
      if (p == MAP_FAILED) continue;
      base_ = reinterpret_cast<char*>(round_up(reinterpret_cast<std::size_t>(p), kPage));
      capacity_ = bytes;
      return;
    }
  }

  Block allocate(std::size_t bytes, StreamId) override {
    if (bytes == 0) return {};
    TAPER_CHECK(bytes <= capacity_, "out of memory on cpu: asked for ", bytes, " bytes of ",
                capacity_);
    const std::size_t size = round_up(bytes, kBlockBytes);
    const std::lock_guard lock(mutex_);
    std::vector<char*>& free = list(size);
    char* data = nullptr;
    if (free.empty()) {
      data = extend(size);
    } else {
      data = free.back();
      free.pop_back();
    }
    ++stats_.allocations;
    stats_.requested += bytes;
    stats_.allocated += size;
    stats_.allocated_peak = std::max(stats_.allocated_peak, stats_.allocated);
    unpoison(data, bytes);
    return {data, size, 0};
  }

  void free(const Block& block, std::size_t requested, StreamId) noexcept override {
    if (block.data == nullptr) return;
    poison(block.data, block.bytes);
    const std::lock_guard lock(mutex_);
    list(block.bytes).push_back(static_cast<char*>(block.data));
    stats_.allocated -= block.bytes;
    stats_.requested -= requested;
  }

  void record_stream(const Block&, StreamId) override {}  // host work runs in program order

  // Hands the pages that lie wholly inside free blocks back; their addresses stay in the lists.
  void empty_cache() override {
    const std::lock_guard lock(mutex_);
    const auto drop = [this](std::size_t size, const std::vector<char*>& blocks) {
      for (char* b : blocks) {
        char* first = base_ + round_up(static_cast<std::size_t>(b - base_), kPage);
        char* last = base_ + static_cast<std::size_t>(b + size - base_) / kPage * kPage;
        if (first >= last) continue;
        madvise(first, static_cast<std::size_t>(last - first), MADV_DONTNEED);
        ++stats_.device_calls;
      }
    };
    for (std::size_t i = 0; i < kDirectSizes; ++i) drop(i * kBlockBytes, direct_[i]);
    for (const auto& [size, blocks] : large_) drop(size, blocks);
  }

  AllocatorStats stats() const override {
    const std::lock_guard lock(mutex_);
    return stats_;
  }

 private:
  std::vector<char*>& list(std::size_t size) {
    const std::size_t i = size / kBlockBytes;
    return i < kDirectSizes ? direct_[i] : large_[size];
  }

  // Takes `size` fresh bytes from the arena's end, committing pages as it grows.
  char* extend(std::size_t size) {
    // Large blocks start on a page, so that huge pages serve them whole.
    const std::size_t start = size >= kPage ? round_up(used_, kPage) : used_;
    TAPER_CHECK(start + size <= capacity_, "out of memory on cpu: asked for ", size, " bytes, ",
                stats_.allocated, " allocated, ", used_, " of ", capacity_, " reserved");
    const std::size_t end = round_up(start + size, kPage);
    if (end > committed_) {
      const std::size_t grow = end - committed_;
      TAPER_CHECK(mprotect(base_ + committed_, grow, PROT_READ | PROT_WRITE) == 0,
                  "out of memory on cpu: the system refused ", grow, " more bytes");
      madvise(base_ + committed_, grow, MADV_HUGEPAGE);
      poison(base_ + committed_, grow);
      committed_ = end;
      ++stats_.device_calls;
      stats_.reserved = committed_;
      stats_.reserved_peak = committed_;
    }
    used_ = start + size;
    return base_ + start;
  }

  mutable SpinLock mutex_;
  char* base_ = nullptr;
  std::size_t capacity_ = 0;   // address space
  std::size_t committed_ = 0;  // readable and writable
  std::size_t used_ = 0;       // given out at least once
  std::vector<char*> direct_[kDirectSizes];
  std::unordered_map<std::size_t, std::vector<char*>> large_;
  AllocatorStats stats_;
};

}  // namespace

Allocator& cpu_allocator() {
  static auto* arena = new CpuArena;  // never destroyed: tensors may die after main
  return *arena;
}

}  // namespace taper
