// Memory of the emulated devices: windows of address space, live blocks in them, copies and fills.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include <sys/mman.h>

#include "taper/cuda/emulated/access.h"
#include "taper/cuda/emulated/failing.h"
#include "taper/cuda/emulated/graphs.h"
#include "taper/cuda/emulated/runtime.h"
#include "taper/cuda/emulated/sanitizer.h"

namespace taper::emulated {
namespace {

constexpr uintptr_t kPage = 4096;
constexpr size_t kFilled = 256 << 10;  // of a block
constexpr unsigned char kFill = 0xff;

struct Block {
  size_t bytes;   // as asked
  size_t mapped;  // whole pages
};

// Note [Device addresses]
// A device's memory lies in one window of address space. A block is whole pages with a page that
// cannot be touched behind it, and becomes such pages again when freed; freed addresses are reused
// as late as possible. So a stale device pointer is known for what it is (an error code from a
// copy), and a kernel that uses one dies at once instead of reading another tensor.
struct Window {
  uintptr_t begin = 0, end = 0;
  uintptr_t next = 0;  // where the search for room starts
  size_t used = 0;
  std::map<uintptr_t, Block> blocks;
};

struct Memory {
  std::mutex lock;
  std::map<int, Window> windows;
  std::map<uintptr_t, size_t> pinned;
};

Memory& memory() {
  static Memory* all = new Memory;
  return *all;
}

uintptr_t address(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

void* pointer_to(uintptr_t place) {
  return reinterpret_cast<void*>(place);
}

size_t whole_pages(size_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

// Twice the device's memory, so that freed addresses can rest; less where address space is short.
bool open_window(Window& window) {
  if (window.begin != 0) return true;
  for (size_t bytes = whole_pages(2 * settings().memory) + kPage; bytes >= 1 << 20; bytes /= 2) {
    bytes = whole_pages(bytes);
    void* found =
        mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found == MAP_FAILED) continue;
    window.begin = window.next = address(found);
    window.end = window.begin + bytes;
    return true;
  }
  return false;
}

// First room of `bytes` at or after `from`; 0 if there is none.
uintptr_t find_room(const Window& window, uintptr_t from, size_t bytes) {
  uintptr_t place = from;
  for (auto block = window.blocks.lower_bound(from); block != window.blocks.end(); ++block) {
    if (block->first - place >= bytes) return place;
    place = block->first + block->second.mapped + kPage;
  }
  return place <= window.end && window.end - place >= bytes ? place : 0;
}

cudaError_t allocate(void** pointer, size_t bytes) {
  if (pointer == nullptr) return cudaErrorInvalidValue;
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  const bool open = access_is_open();
  Memory& all = memory();
  std::lock_guard guard(all.lock);
  Window& window = all.windows[current_device()];
  const size_t left = settings().memory - vmm_used(current_device());
  if (bytes > left || window.used + whole_pages(bytes) > left) {
    return cudaErrorMemoryAllocation;
  }
  if (!open_window(window)) return cudaErrorMemoryAllocation;
  const size_t mapped = whole_pages(bytes);
  uintptr_t place = find_room(window, window.next, mapped + kPage);
  if (place == 0) place = find_room(window, window.begin, mapped + kPage);
  if (place == 0) return cudaErrorMemoryAllocation;
  if (mprotect(pointer_to(place), mapped, PROT_READ | PROT_WRITE) != 0) {
    return cudaErrorMemoryAllocation;
  }
  window.blocks[place] = {bytes, mapped};
  window.next = place + mapped + kPage;
  window.used += mapped;
  *pointer = pointer_to(place);
  // What nobody wrote reads as NaN and -1, as far as filling it is cheap.
  std::memset(*pointer, kFill, std::min(mapped, kFilled));
  if (!open) mprotect(*pointer, mapped, PROT_NONE);
  poison(static_cast<char*>(*pointer) + bytes, mapped - bytes);
  return cudaSuccess;
}

// Empty, or how a kernel has written behind the block: what it was filled with there has changed.
// Under AddressSanitizer such a write does not get so far.
std::string written_behind([[maybe_unused]] uintptr_t place, [[maybe_unused]] const Block& block) {
#if !defined(TAPER_EMULATED_ASAN)
  const auto* bytes = static_cast<const unsigned char*>(pointer_to(place));
  for (size_t i = block.bytes; i < std::min(block.mapped, kFilled); ++i) {
    if (bytes[i] == kFill) continue;
    char text[160];
    std::snprintf(text, sizeof(text), "byte %zu of a block of %zu bytes at %p was written", i,
                  block.bytes, pointer_to(place));
    return text;
  }
#endif
  return "";
}

void give_back(Window& window, std::map<uintptr_t, Block>::iterator block) {
  void* begin = pointer_to(block->first);
  unpoison(begin, block->second.mapped);
  madvise(begin, block->second.mapped, MADV_DONTNEED);
  mprotect(begin, block->second.mapped, PROT_NONE);
  window.used -= block->second.mapped;
  window.blocks.erase(block);
}

bool find_block(Memory& all, const void* pointer, int* device) {
  for (auto& [number, window] : all.windows) {
    if (window.blocks.contains(address(pointer))) {
      *device = number;
      return true;
    }
  }
  return false;
}

cudaError_t release(const void* pointer) {
  const DeviceAccess access;  // before the lock, which it takes
  Memory& all = memory();
  std::lock_guard guard(all.lock);
  int device = 0;
  if (!find_block(all, pointer, &device)) return cudaErrorInvalidValue;
  Window& window = all.windows[device];
  const auto block = window.blocks.find(address(pointer));
  const std::string fault = written_behind(block->first, block->second);
  give_back(window, block);
  if (fault.empty()) return cudaSuccess;
  set_fault(device, cudaErrorIllegalAddress, fault);
  return cudaErrorIllegalAddress;
}

enum class Place { kHost, kPinned, kDevice, kNowhere };

// Where a range lies; kNowhere if it leaves its device block or was freed.
Place place_of(const void* pointer, size_t bytes, int* on = nullptr) {
  const VmmPlace vmm = vmm_place(pointer, bytes, on);
  if (vmm != VmmPlace::kElsewhere)
    return vmm == VmmPlace::kMapped ? Place::kDevice : Place::kNowhere;
  Memory& all = memory();
  std::lock_guard guard(all.lock);
  const uintptr_t begin = address(pointer);
  for (const auto& [device, window] : all.windows) {
    if (begin < window.begin || begin >= window.end) continue;
    auto block = window.blocks.upper_bound(begin);
    if (block == window.blocks.begin()) return Place::kNowhere;
    --block;
    const size_t offset = begin - block->first;
    if (on != nullptr) *on = device;
    const bool inside = offset <= block->second.bytes && bytes <= block->second.bytes - offset;
    return inside ? Place::kDevice : Place::kNowhere;
  }
  auto range = all.pinned.upper_bound(begin);
  if (range == all.pinned.begin()) return Place::kHost;
  --range;
  return begin - range->first < range->second ? Place::kPinned : Place::kHost;
}

struct Peers {
  int to, from;
};

bool is_host(Place place) {
  return place == Place::kHost || place == Place::kPinned;
}

bool agrees(cudaMemcpyKind kind, Place to, Place from) {
  switch (kind) {
    case cudaMemcpyHostToHost: return is_host(to) && is_host(from);
    case cudaMemcpyHostToDevice: return to == Place::kDevice && is_host(from);
    case cudaMemcpyDeviceToHost: return is_host(to) && from == Place::kDevice;
    case cudaMemcpyDeviceToDevice: return to == Place::kDevice && from == Place::kDevice;
    case cudaMemcpyDefault: return to != Place::kNowhere && from != Place::kNowhere;
  }
  return false;
}

// Copies on a stream; with pageable host memory on either side done before it returns, as CUDA's.
// The stream's device does it, and must reach both sides, unless they are told to be two devices'.
cudaError_t copy(void* to,
                 const void* from,
                 size_t bytes,
                 cudaMemcpyKind kind,
                 cudaStream_t name,
                 bool wait,
                 const Peers* peers = nullptr) {
  if (const cudaError_t fault = fault_of(current_device())) return fault;
  const std::shared_ptr<Stream> stream = Runtime::get().stream(name);
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) {
    return cudaErrorInvalidMemcpyDirection;
  }
  if (bytes == 0) return cudaSuccess;
  int to_device = -1, from_device = -1;
  const Place to_place = place_of(to, bytes, &to_device);
  const Place from_place = place_of(from, bytes, &from_device);
  if (!agrees(kind, to_place, from_place)) return cudaErrorInvalidValue;
  if (peers != nullptr && (peers->to != to_device || peers->from != from_device))
    return cudaErrorInvalidValue;
  const int to_reacher = peers != nullptr ? peers->to : stream->device;
  const int from_reacher = peers != nullptr ? peers->from : stream->device;
  if (!vmm_reaches(to_reacher, to, bytes) || !vmm_reaches(from_reacher, from, bytes))
    return cudaErrorInvalidValue;
  if (to_place == Place::kHost || from_place == Place::kHost) {
    if (const cudaError_t error = refuse_if_capturing(*stream)) return error;
  }
  const cudaError_t status = submit(stream, [=] {
    const DeviceAccess access;
    std::memcpy(to, from, bytes);
    return cudaSuccess;
  });
  if (wait || to_place == Place::kHost || from_place == Place::kHost) drain(*stream);
  return status;
}

cudaError_t fill(void* pointer, int value, size_t bytes, cudaStream_t name) {
  if (const cudaError_t fault = fault_of(current_device())) return fault;
  const std::shared_ptr<Stream> stream = Runtime::get().stream(name);
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (bytes == 0) return cudaSuccess;
  if (place_of(pointer, bytes) != Place::kDevice) return cudaErrorInvalidValue;
  return submit(stream, [=] {
    const DeviceAccess access;
    std::memset(pointer, value, bytes);
    return cudaSuccess;
  });
}

}  // namespace

void release_memory(int device) {
  Memory& all = memory();
  std::lock_guard guard(all.lock);
  Window& window = all.windows[device];
  while (!window.blocks.empty()) give_back(window, window.blocks.begin());
}

void open_blocks(bool touchable) {
  Memory& all = memory();
  std::lock_guard guard(all.lock);
  const int rights = touchable ? PROT_READ | PROT_WRITE : PROT_NONE;
  for (const auto& [device, window] : all.windows) {
    for (const auto& [place, block] : window.blocks) {
      mprotect(pointer_to(place), block.mapped, rights);
    }
  }
}

MemoryKind kind_of_memory(const void* pointer, int* device) {
  const Place place = place_of(pointer, 1, device);
  return place == Place::kDevice    ? MemoryKind::kLive
         : place == Place::kNowhere ? MemoryKind::kDead
                                    : MemoryKind::kHost;
}

size_t cuda_malloc_used(int device) {
  std::lock_guard guard(memory().lock);
  return memory().windows[device].used;
}

}  // namespace taper::emulated

using namespace taper::emulated;

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  if (const cudaError_t error = refuse_unsafe_call()) return tell(error);
  if (const cudaError_t fault = fault_of(current_device())) return tell(fault);
  return tell(allocate(pointer, bytes));
}

cudaError_t cudaFree(void* pointer) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  if (const cudaError_t error = refuse_unsafe_call()) return tell(error);
  if (const cudaError_t fault = fault_of(current_device())) return tell(fault);
  if (pointer == nullptr) return cudaSuccess;
  int device = 0;
  {
    std::lock_guard guard(memory().lock);
    if (!find_block(memory(), pointer, &device)) return tell(cudaErrorInvalidValue);
  }
  drain_device(device);
  return tell(release(pointer));
}

cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  if (const cudaError_t error = refuse_unsafe_call()) return tell(error);
  if (const cudaError_t fault = fault_of(current_device())) return tell(fault);
  if (pointer == nullptr) return tell(cudaErrorInvalidValue);
  *pointer = bytes == 0 ? nullptr : std::aligned_alloc(kPage, whole_pages(bytes));
  if (bytes == 0) return cudaSuccess;
  if (*pointer == nullptr) return tell(cudaErrorMemoryAllocation);
  std::lock_guard guard(memory().lock);
  memory().pinned[address(*pointer)] = bytes;
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* pointer) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  if (const cudaError_t error = refuse_unsafe_call()) return tell(error);
  if (pointer == nullptr) return cudaSuccess;
  for (size_t device = 0; device < Runtime::get().devices.size(); ++device) {
    drain_device(static_cast<int>(device));
  }
  std::lock_guard guard(memory().lock);
  if (memory().pinned.erase(address(pointer)) == 0) return tell(cudaErrorInvalidValue);
  std::free(pointer);
  return cudaSuccess;
}

cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  if (const cudaError_t error = refuse_unsafe_call()) return tell(error);
  if (const cudaError_t fault = fault_of(current_device())) return tell(fault);
  if (pointer == nullptr || bytes == 0) return tell(cudaErrorInvalidValue);
  std::lock_guard guard(memory().lock);
  if (!memory().pinned.emplace(address(pointer), bytes).second) return tell(cudaErrorInvalidValue);
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void* pointer) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  if (const cudaError_t error = refuse_unsafe_call()) return tell(error);
  std::lock_guard guard(memory().lock);
  return memory().pinned.erase(address(pointer)) == 1 ? cudaSuccess : tell(cudaErrorInvalidValue);
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  if (const cudaError_t fault = fault_of(current_device())) return tell(fault);
  int device = current_device();
  const Place place = place_of(pointer, 0, &device);
  if (place == Place::kNowhere) return tell(cudaErrorInvalidValue);
  void* same = const_cast<void*>(pointer);
  const bool is_device = place == Place::kDevice;
  const cudaMemoryType type = is_device                 ? cudaMemoryTypeDevice
                              : place == Place::kPinned ? cudaMemoryTypeHost
                                                        : cudaMemoryTypeUnregistered;
  *attributes = {type, place == Place::kHost ? -2 : device, place == Place::kHost ? nullptr : same,
                 is_device ? nullptr : same};
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  if (const cudaError_t fault = fault_of(current_device())) return tell(fault);
  std::lock_guard guard(memory().lock);
  *total = settings().memory;
  *free = *total - memory().windows[current_device()].used - vmm_used(current_device());
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  if (const cudaError_t error = refuse_unsafe_call()) return tell(error);
  return tell(copy(to, from, bytes, kind, nullptr, true));
}

cudaError_t cudaMemcpyAsync(
    void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  return tell(copy(to, from, bytes, kind, stream, false));
}

cudaError_t cudaMemcpyPeerAsync(
    void* to, int to_device, const void* from, int from_device, size_t bytes, cudaStream_t stream) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  const Peers peers{to_device, from_device};
  return tell(copy(to, from, bytes, cudaMemcpyDeviceToDevice, stream, false, &peers));
}

cudaError_t cudaMemset(void* pointer, int value, size_t bytes) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  return tell(fill(pointer, value, bytes, nullptr));
}

cudaError_t cudaMemsetAsync(void* pointer, int value, size_t bytes, cudaStream_t stream) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  return tell(fill(pointer, value, bytes, stream));
}
