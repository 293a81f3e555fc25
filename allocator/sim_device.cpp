// The simulated device: counts pages and time, and stops at any use of them that a real one
// forbids.
#include "taper/allocator/sim_device.h"

#include <algorithm>

#include "taper/core/base/error.h"

namespace taper {
namespace {

// An address that no host mapping has: a stray access faults, and pickles hold it exactly.
char* const kBase = reinterpret_cast<char*>(std::uintptr_t{1} << 46);

constexpr std::size_t kChunk = std::size_t{1} << 15;  // pages

enum PageState : std::uint8_t { kUnused, kCreated, kMapped };

}  // namespace

SimDevice::SimDevice(Settings settings)
    : settings_(std::move(settings)), random_(settings_.timing_seed) {}

bool SimDevice::refuse() {
  return ++calls_ == settings_.fail_at;
}

std::uint64_t& SimDevice::clock(StreamId stream) {
  if (stream >= clocks_.size()) clocks_.resize(stream + 1);
  return clocks_[stream];
}

PhysicalPage& SimDevice::at(std::size_t page) {
  if (page / kChunk >= at_.size()) at_.resize(page / kChunk + 1);
  std::vector<PhysicalPage>& chunk = at_[page / kChunk];
  if (chunk.empty()) chunk.resize(kChunk);
  return chunk[page % kChunk];
}

std::size_t SimDevice::reserve(std::size_t most, std::size_t) {
  TAPER_ASSERT(reserved_ == 0);
  reserved_ = most;
  return most;
}

char* SimDevice::base() const {
  return kBase;
}

bool SimDevice::create(std::size_t count, PhysicalPage* pages) {
  if (refuse() || (created_ + count) * kPageBytes > settings_.capacity) return false;
  for (std::size_t i = 0; i < count; ++i) {
    if (spare_.empty()) {
      state_.push_back(kUnused);
      spare_.push_back(state_.size() - 1);
    }
    pages[i] = spare_.back();
    spare_.pop_back();
    state_[pages[i]] = kCreated;
  }
  created_ += count;
  return true;
}

void SimDevice::destroy(ArrayRef<PhysicalPage> pages) {
  for (const PhysicalPage p : pages) {
    TAPER_ASSERT(p < state_.size() && state_[p] == kCreated);
    state_[p] = kUnused;
    spare_.push_back(p);
  }
  created_ -= pages.size();
}

bool SimDevice::map(std::size_t first, ArrayRef<PhysicalPage> pages) {
  if (refuse()) return false;
  TAPER_ASSERT((first + pages.size()) * kPageBytes <= reserved_);
  for (std::size_t i = 0; i < pages.size(); ++i) {
    TAPER_ASSERT(pages[i] < state_.size() && state_[pages[i]] == kCreated && at(first + i) == 0);
    state_[pages[i]] = kMapped;
    at(first + i) = pages[i];
  }
  mapped_ += pages.size();
  return true;
}

void SimDevice::unmap(std::size_t first, ArrayRef<PhysicalPage> pages) {
  for (std::size_t i = 0; i < pages.size(); ++i) {
    TAPER_ASSERT(at(first + i) == pages[i]);
    state_[pages[i]] = kCreated;
    at(first + i) = 0;
  }
  mapped_ -= pages.size();
}

StreamMark SimDevice::mark(StreamId stream) {
  const std::lock_guard lock(mutex_);
  return std::max(clock(stream), host_);
}

void SimDevice::wait(StreamId stream, StreamId, StreamMark mark) {
  const std::lock_guard lock(mutex_);
  clock(stream) = std::max(clock(stream), mark);
}

bool SimDevice::reached(StreamId, StreamMark mark) {
  const std::lock_guard lock(mutex_);
  return mark <= host_;
}

void SimDevice::synchronize(StreamId, StreamMark mark) {
  advance_host(mark);
}

std::size_t SimDevice::capacity() const {
  return settings_.capacity;
}

std::size_t SimDevice::available() const {
  return settings_.capacity - created_ * kPageBytes;
}

std::string SimDevice::name() const {
  return settings_.name;
}

void SimDevice::advance_host(std::uint64_t to) {
  const std::lock_guard lock(mutex_);
  host_ = std::max(host_, to);
}

void SimDevice::work(StreamId stream, std::uint64_t nanoseconds) {
  const std::lock_guard lock(mutex_);
  if (settings_.timing_seed != 0) {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;  // Knuth's MMIX generator
    const std::uint64_t sixteenths = 4 + (random_ >> 33) % 61;        // 4/16 to 64/16
    nanoseconds = nanoseconds * sixteenths / 16;
  }
  clock(stream) = std::max(clock(stream), host_) + nanoseconds;
}

void SimDevice::synchronize_all() {
  const std::lock_guard lock(mutex_);
  for (const std::uint64_t t : clocks_) host_ = std::max(host_, t);
}

std::uint64_t SimDevice::host_time() const {
  const std::lock_guard lock(mutex_);
  return host_;
}

std::uint64_t SimDevice::stream_time(StreamId stream) const {
  const std::lock_guard lock(mutex_);
  return stream < clocks_.size() ? clocks_[stream] : 0;
}

std::uint64_t SimDevice::calls() const {
  return calls_;
}

std::uint64_t SimDevice::mapped_pages() const {
  return mapped_;
}

std::uint64_t SimDevice::created_pages() const {
  return created_;
}

}  // namespace taper
