// The host's memory: how much there is and is left, and the one allocator over it.
#include "taper/allocator/cpu_device.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

#include <pthread.h>
#include <sys/mman.h>

#include "taper/allocator/allocator.h"
#include "taper/allocator/options.h"
#include "taper/allocator/poison.h"
#include "taper/allocator/ring.h"
#include "taper/allocator/snapshot.h"
#include "taper/core/base/error.h"
#include "taper/core/base/source_loc.h"
#include "taper/core/base/text.h"

namespace taper {
namespace {

constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

// The number in a file of one number; kNoLimit for "max", and where there is no such file.
std::size_t number_in(const char* file) {
  std::size_t n = kNoLimit;
  if (std::FILE* f = std::fopen(file, "re")) {
    if (std::fscanf(f, "%zu", &n) != 1) n = kNoLimit;
    std::fclose(f);
  }
  return n;
}

// The number behind a name at a line's beginning: "MemTotal:  123 kB", "inactive_file 123".
std::size_t named_number(const char* file, const char* name) {
  std::size_t n = kNoLimit;
  std::FILE* f = std::fopen(file, "re");
  if (f == nullptr) return n;
  char line[128];
  const std::size_t length = std::strlen(name);
  while (std::fgets(line, sizeof line, f) != nullptr) {
    if (std::strncmp(line, name, length) == 0) {
      n = std::strtoull(line + length, nullptr, 10);
      break;
    }
  }
  std::fclose(f);
  return n;
}

std::size_t meminfo(const char* name) {
  const std::size_t kilobytes = named_number("/proc/meminfo", name);
  return kilobytes == kNoLimit ? kNoLimit : kilobytes * 1024;
}

// A container sees its own cgroup at the root: version 2, or else version 1.
std::size_t cgroup_limit() {
  return std::min(number_in("/sys/fs/cgroup/memory.max"),
                  number_in("/sys/fs/cgroup/memory/memory.limit_in_bytes"));
}

// What the cgroup may still take; the pages of files that it caches would go.
std::size_t cgroup_left() {
  const std::size_t limit = cgroup_limit();
  if (limit == kNoLimit) return kNoLimit;
  std::size_t used = number_in("/sys/fs/cgroup/memory.current");
  const char* stat = "/sys/fs/cgroup/memory.stat";
  if (used == kNoLimit) {
    used = number_in("/sys/fs/cgroup/memory/memory.usage_in_bytes");
    stat = "/sys/fs/cgroup/memory/memory.stat";
  }
  if (used == kNoLimit) return kNoLimit;
  for (const char* files : {"inactive_file ", "active_file "}) {
    const std::size_t bytes = named_number(stat, files);
    if (bytes != kNoLimit) used -= std::min(used, bytes);
  }
  return limit > used ? limit - used : 0;
}

std::uint64_t milliseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

}  // namespace

CpuDevice::CpuDevice(bool huge_pages)
    : huge_pages_(huge_pages), capacity_(std::min(meminfo("MemTotal:"), cgroup_limit())) {}

CpuDevice::~CpuDevice() {
  if (mapping_ != nullptr) munmap(mapping_, mapping_bytes_);
}

std::size_t CpuDevice::reserve(std::size_t most, std::size_t least) {
  const auto half = [](std::size_t bytes) { return bytes / 2 / kPageBytes * kPageBytes; };
  // Under `ulimit -v`, and under valgrind, less is to be had.
  std::size_t bytes = most;
  for (; bytes >= least; bytes = half(bytes)) {
    mapping_bytes_ = bytes + kPageBytes;
    void* p = mmap(nullptr, mapping_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    if (p == MAP_FAILED) continue;
    mapping_ = static_cast<char*>(p);
    break;
  }
  TAPER_CHECK(bytes >= least, "the system refuses even ", size_text(least),
              " of address space (ulimit -v?)");
  if (bytes < most && half(bytes) >= least) {  // some is left to everybody else in the process
    bytes = half(bytes);
    munmap(mapping_ + bytes + kPageBytes, mapping_bytes_ - bytes - kPageBytes);
    mapping_bytes_ = bytes + kPageBytes;
  }
  // A core dump holds what is mapped, and not the rest: gdb's would be as long as the reservation.
  madvise(mapping_, mapping_bytes_, MADV_DONTDUMP);
  const auto address = reinterpret_cast<std::uintptr_t>(mapping_);
  base_ = mapping_ + (kPageBytes - address % kPageBytes) % kPageBytes;
  return bytes;
}

char* CpuDevice::base() const {
  return base_;
}

bool CpuDevice::create(std::size_t count, PhysicalPage* pages) {
  std::fill(pages, pages + count, PhysicalPage{0});
  return true;  // the system says no when they are mapped
}

bool CpuDevice::map(std::size_t first, ArrayRef<PhysicalPage> pages) {
  char* begin = base_ + first * kPageBytes;
  const std::size_t bytes = pages.size() * kPageBytes;
  if (available() < bytes) looked_at_.store(0, std::memory_order_relaxed);
  if (available() < bytes) return false;
  if (mprotect(begin, bytes, PROT_READ | PROT_WRITE) != 0) return false;
  madvise(begin, bytes, MADV_DODUMP);
  if (huge_pages_) madvise(begin, bytes, MADV_HUGEPAGE);
  return true;
}

// Stays readable and writable: so the system's table of areas does not grow with every hole.
void CpuDevice::unmap(std::size_t first, ArrayRef<PhysicalPage> pages) {
  madvise(base_ + first * kPageBytes, pages.size() * kPageBytes, MADV_DONTNEED);
  looked_at_.store(0, std::memory_order_relaxed);  // there is more now
}

void CpuDevice::poison(const void* data, std::size_t bytes) {
  poison_host(data, bytes);
}

void CpuDevice::unpoison(const void* data, std::size_t bytes) {
  unpoison_host(data, bytes);
}

std::size_t CpuDevice::capacity() const {
  return capacity_;
}

std::size_t CpuDevice::available() const {
  const std::uint64_t now = milliseconds();
  if (looked_at_.load(std::memory_order_relaxed) + 10 <= now) {
    const std::size_t machine = std::min(meminfo("MemAvailable:"), capacity_);
    available_.store(std::min(machine, cgroup_left()), std::memory_order_relaxed);
    looked_at_.store(now, std::memory_order_relaxed);
  }
  return available_.load(std::memory_order_relaxed);
}

bool CpuDevice::wants_memory_back() const {
  return available() < capacity_ / 32;
}

namespace {

// What trace:FILE asks for, at exit. A failure is told: nobody is left to catch it.
void write_trace() {
  try {
    write_snapshot(take_snapshot(all_allocators()), cpu_allocator().options().trace_file);
  } catch (const Error& e) {
    std::fprintf(stderr, "taper: %s\n", e.what());
  }
}

// In the order in which threads take them: a block's site is entered under its heap's lock.
void lock_for_fork() {
  cpu_allocator().lock_all();
  lock_sites();
  lock_scopes();
}

void unlock_after_fork() {
  unlock_scopes();
  unlock_sites();
  cpu_allocator().unlock_all();
}

}  // namespace

Allocator& cpu_allocator() {
  // Never destroyed: tensors may die after main.
  static Allocator* const allocator = [] {
    const AllocatorOptions options = environment_allocator_options();
    Allocator* made =
        make_allocator(options, std::make_unique<CpuDevice>(options.huge_pages)).release();
    register_allocator(*made);
    if (!options.trace_file.empty()) std::atexit(write_trace);
    return made;
  }();
  // A child has only the thread that forked, and must not find the others' locks taken.
  static const int at_fork = pthread_atfork(lock_for_fork, unlock_after_fork, unlock_after_fork);
  static_cast<void>(at_fork);
  return *allocator;
}

}  // namespace taper
