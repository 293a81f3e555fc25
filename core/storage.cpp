// Takes storages from allocators and gives them back; keeps the log of their writers.
#include "taper/core/storage.h"

#include <mutex>

#include "taper/allocator/allocator.h"
#include "taper/core/base/error.h"

namespace taper {
namespace {

std::mutex
    writers_mutex;  // one for all: writes in place are rare beside ops, and it is held briefly

constexpr int kPinnedDevices = 16;  // an allocator knows about a thousand streams

}  // namespace

Ref<Storage> Storage::allocate(std::size_t bytes, Device device) {
  Ref<Storage> storage(new Storage);
  storage->bytes_ = bytes;
  storage->device_ = device;
  if (device.is_cuda()) storage->stream_ = current_stream(device).id();
  if (!device.is_meta()) {
    storage->block_ = allocator_for(device).allocate(bytes, storage->stream_);
    storage->data_ = storage->block_.data;
  }
  return storage;
}

Ref<Storage> Storage::allocate_pinned(std::size_t bytes) {
  Ref<Storage> storage(new Storage);
  storage->bytes_ = bytes;
  storage->stream_ = kHostStream;
  storage->pinned_ = true;
  storage->block_ = pinned_allocator().allocate(bytes, kHostStream);
  storage->data_ = storage->block_.data;
  return storage;
}

void Storage::record_stream(const Stream& stream) {
  if (block_.data == nullptr || !stream.device().is_cuda()) return;
  if (!pinned_) {
    if (device_ == stream.device() && stream.id() != stream_)
      allocator_for(device_).record_stream(block_, stream.id());
  } else if (stream.id() < kPinnedStreams && stream.device().index() < kPinnedDevices) {
    pinned_allocator().record_stream(block_, pinned_stream(stream.device().index(), stream.id()));
  } else {
    stream.synchronize();
  }
}

Ref<Storage> Storage::borrow(void* data, std::size_t bytes, Device device, MemoryOwner* owner) {
  Ref<Storage> storage(new Storage);
  storage->bytes_ = bytes;
  storage->device_ = device;
  storage->data_ = data;
  storage->owner_ = owner;
  return storage;
}

void Storage::destroy(Storage* storage) {
  if (storage->block_.data != nullptr) {
    Allocator& from = storage->pinned_ ? pinned_allocator() : allocator_for(storage->device_);
    from.free(storage->block_, storage->bytes_, storage->stream_);
  }
  delete storage->owner_;
  delete storage->writers_.load(std::memory_order_acquire);
  delete storage;
}

void Storage::note_write(const char* op) {
  const std::lock_guard lock(writers_mutex);
  auto* writers = writers_.load(std::memory_order_relaxed);
  if (writers == nullptr) {
    writers = new std::vector<Mutation>;
    writers->reserve(kWritersKept);
    writers_.store(writers, std::memory_order_release);
  }
  const Mutation mutation{version_.fetch_add(1, std::memory_order_acq_rel) + 1, op,
                          call_site.loc()};
  if (writers->size() == kWritersKept) writers->erase(writers->begin());
  writers->push_back(mutation);
}

std::vector<Mutation> Storage::last_writers() const {
  const std::lock_guard lock(writers_mutex);
  const auto* writers = writers_.load(std::memory_order_relaxed);
  if (writers == nullptr) return {};
  return {writers->rbegin(), writers->rend()};
}

Allocator& cuda_allocator(int index);  // cuda/: throws in a build without CUDA

Allocator& allocator_for(Device device) {
  TAPER_CHECK(!device.is_meta(), "the meta device has shapes but no memory");
  return device.is_cpu() ? cpu_allocator() : cuda_allocator(device.index());
}

}  // namespace taper
