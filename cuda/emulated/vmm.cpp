// Virtual memory of the emulated devices: physical pages in a file without a name, mapped where
// asked.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <cuda.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "taper/cuda/emulated/access.h"
#include "taper/cuda/emulated/failing.h"
#include "taper/cuda/emulated/runtime.h"
#include "taper/cuda/emulated/sanitizer.h"

namespace taper::emulated {
namespace {

constexpr size_t kPage = size_t{2} << 20;     // the granularity of real devices
constexpr size_t kFilled = size_t{64} << 10;  // of each page

struct Physical {
  int device = 0;
  size_t bytes = 0;
  off_t place = 0;  // in the file
  int mappings = 0;
  bool released = false;  // by its owner; it lives on while it is mapped
  bool fresh = true;
};

struct Mapping {
  size_t bytes = 0;
  CUmemGenericAllocationHandle handle = 0;
  uint64_t devices = 0;  // a bit for each that may touch it
};

struct Space {
  std::mutex lock;
  int file = -1;
  off_t end = 0;
  std::map<size_t, std::vector<off_t>> holes;  // in the file, by size
  std::map<CUmemGenericAllocationHandle, Physical> physical;
  CUmemGenericAllocationHandle next = 1;
  std::map<uintptr_t, size_t> reserved;
  std::map<uintptr_t, Mapping> mapped;
  std::map<int, size_t> used;  // by device
};

Space& space() {
  static Space* all = new Space;
  return *all;
}

// Where nothing is mapped nothing can be touched.
bool close(uintptr_t at, size_t bytes) {
  void* p = reinterpret_cast<void*>(at);
  unpoison(p, bytes);
  return mmap(p, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
              0) == p;
}

void drop(Space& s, std::map<CUmemGenericAllocationHandle, Physical>::iterator it) {
  const Physical& p = it->second;
  if (!p.released || p.mappings != 0) return;
  fallocate(s.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, p.place,
            static_cast<off_t>(p.bytes));
  s.holes[p.bytes].push_back(p.place);
  s.used[p.device] -= p.bytes;
  s.physical.erase(it);
}

bool inside_reservation(const Space& s, uintptr_t at, size_t bytes) {
  auto range = s.reserved.upper_bound(at);
  if (range == s.reserved.begin()) return false;
  --range;
  return at - range->first <= range->second && bytes <= range->second - (at - range->first);
}

}  // namespace

size_t vmm_used(int device) {
  Space& s = space();
  std::lock_guard guard(s.lock);
  return s.used[device];
}

VmmPlace vmm_place(const void* pointer, size_t bytes, int* device) {
  Space& s = space();
  std::lock_guard guard(s.lock);
  uintptr_t at = reinterpret_cast<uintptr_t>(pointer);
  if (!inside_reservation(s, at, 0)) return VmmPlace::kElsewhere;
  const uintptr_t end = at + bytes;
  do {  // mapping after mapping
    auto mapping = s.mapped.upper_bound(at);
    if (mapping == s.mapped.begin()) return VmmPlace::kUnmapped;
    --mapping;
    if (at - mapping->first >= mapping->second.bytes) return VmmPlace::kUnmapped;
    if (device != nullptr) *device = s.physical.at(mapping->second.handle).device;
    at = mapping->first + mapping->second.bytes;
  } while (at < end);
  return VmmPlace::kMapped;
}

bool vmm_reaches(int device, const void* pointer, size_t bytes) {
  Space& s = space();
  std::lock_guard guard(s.lock);
  const uintptr_t at = reinterpret_cast<uintptr_t>(pointer);
  if (!inside_reservation(s, at, 0)) return true;
  auto mapping = std::prev(s.mapped.upper_bound(at));
  for (; mapping != s.mapped.end() && mapping->first < at + bytes; ++mapping) {
    if ((mapping->second.devices >> device & 1) == 0) return false;
  }
  return true;
}

void open_mappings(bool touchable) {
  Space& s = space();
  std::lock_guard guard(s.lock);
  const int rights = touchable ? PROT_READ | PROT_WRITE : PROT_NONE;
  for (const auto& [at, mapping] : s.mapped) {
    if (mapping.devices != 0) mprotect(reinterpret_cast<void*>(at), mapping.bytes, rights);
  }
}

}  // namespace taper::emulated

using namespace taper::emulated;

CUresult cuMemAddressReserve(
    CUdeviceptr* pointer, size_t bytes, size_t alignment, CUdeviceptr, unsigned long long) {
  if (const int error = injected(__func__)) return static_cast<CUresult>(error);
  if (bytes == 0 || bytes % kPage != 0) return CUDA_ERROR_INVALID_VALUE;
  const size_t align = std::max(alignment, kPage);
  void* found =
      mmap(nullptr, bytes + align, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (found == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(found) + align - 1) / align * align;
  std::lock_guard guard(space().lock);
  space().reserved[begin] = bytes;
  *pointer = begin;
  return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle,
                     size_t bytes,
                     const CUmemAllocationProp* properties,
                     unsigned long long) {
  if (const int error = injected(__func__)) return static_cast<CUresult>(error);
  if (bytes == 0 || bytes % kPage != 0) return CUDA_ERROR_INVALID_VALUE;
  const int device = properties->location.id;
  if (cuda_malloc_used(device) + vmm_used(device) + bytes > settings().memory)
    return CUDA_ERROR_OUT_OF_MEMORY;
  Space& s = space();
  std::lock_guard guard(s.lock);
  if (s.file < 0) s.file = memfd_create("emulated device memory", MFD_CLOEXEC);
  if (s.file < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  Physical p{device, bytes, s.end};
  std::vector<off_t>& holes = s.holes[bytes];
  if (holes.empty()) {
    if (ftruncate(s.file, s.end + static_cast<off_t>(bytes)) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
    s.end += static_cast<off_t>(bytes);
  } else {
    p.place = holes.back();
    holes.pop_back();
  }
  s.used[device] += bytes;
  *handle = s.next++;
  s.physical[*handle] = p;
  return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  if (const int error = injected(__func__)) return static_cast<CUresult>(error);
  Space& s = space();
  std::lock_guard guard(s.lock);
  const auto it = s.physical.find(handle);
  if (it == s.physical.end() || it->second.released) return CUDA_ERROR_INVALID_VALUE;
  it->second.released = true;
  drop(s, it);
  return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr at,
                  size_t bytes,
                  size_t offset,
                  CUmemGenericAllocationHandle handle,
                  unsigned long long) {
  if (const int error = injected(__func__)) return static_cast<CUresult>(error);
  Space& s = space();
  std::lock_guard guard(s.lock);
  const auto it = s.physical.find(handle);
  if (it == s.physical.end() || it->second.released) return CUDA_ERROR_INVALID_VALUE;
  if (offset != 0 || bytes != it->second.bytes || at % kPage != 0) return CUDA_ERROR_INVALID_VALUE;
  if (!inside_reservation(s, at, bytes) || s.mapped.contains(at)) return CUDA_ERROR_INVALID_VALUE;
  void* p = reinterpret_cast<void*>(at);
  if (mmap(p, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, s.file, it->second.place) != p)
    return CUDA_ERROR_OUT_OF_MEMORY;
  s.mapped[at] = {bytes, handle};
  ++it->second.mappings;
  return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr at, size_t bytes) {
  if (const int error = injected(__func__)) return static_cast<CUresult>(error);
  Space& s = space();
  std::lock_guard guard(s.lock);
  const uintptr_t end = at + bytes;
  for (uintptr_t p = at; p < end;) {
    const auto mapping = s.mapped.find(p);
    if (mapping == s.mapped.end() || p + mapping->second.bytes > end)
      return CUDA_ERROR_INVALID_VALUE;
    if (!close(p, mapping->second.bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
    p += mapping->second.bytes;
    const auto physical = s.physical.find(mapping->second.handle);
    --physical->second.mappings;
    drop(s, physical);
    s.mapped.erase(mapping);
  }
  return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr at,
                        size_t bytes,
                        const CUmemAccessDesc* descriptions,
                        size_t count) {
  if (const int error = injected(__func__)) return static_cast<CUresult>(error);
  if (vmm_place(reinterpret_cast<void*>(at), bytes, nullptr) != VmmPlace::kMapped)
    return CUDA_ERROR_INVALID_VALUE;
  const bool open = access_is_open();
  if (mprotect(reinterpret_cast<void*>(at), bytes, PROT_READ | PROT_WRITE) != 0)
    return CUDA_ERROR_OUT_OF_MEMORY;
  Space& s = space();
  std::lock_guard guard(s.lock);
  for (auto m = s.mapped.lower_bound(at); m != s.mapped.end() && m->first < at + bytes; ++m) {
    Physical& p = s.physical.at(m->second.handle);
    // What nobody wrote reads as NaN and -1, as far as filling it is cheap.
    if (p.fresh) std::memset(reinterpret_cast<void*>(m->first), 0xff, kFilled);
    p.fresh = false;
    for (size_t i = 0; i < count; ++i) m->second.devices |= 1ull << descriptions[i].location.id;
  }
  if (!open) mprotect(reinterpret_cast<void*>(at), bytes, PROT_NONE);
  return CUDA_SUCCESS;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol,
                                             void** function,
                                             unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* found) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  const std::pair<const char*, void*> all[] = {
      {"cuMemAddressReserve", reinterpret_cast<void*>(cuMemAddressReserve)},
      {"cuMemCreate", reinterpret_cast<void*>(cuMemCreate)},
      {"cuMemRelease", reinterpret_cast<void*>(cuMemRelease)},
      {"cuMemMap", reinterpret_cast<void*>(cuMemMap)},
      {"cuMemUnmap", reinterpret_cast<void*>(cuMemUnmap)},
      {"cuMemSetAccess", reinterpret_cast<void*>(cuMemSetAccess)}};
  *function = nullptr;
  for (const auto& [name, address] : all) {
    if (std::string(name) == symbol) *function = address;
  }
  *found = *function == nullptr ? cudaDriverEntryPointSymbolNotFound : cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
