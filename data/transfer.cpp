// The streams on which batches are copied.
#include "taper/data/transfer.h"

#include <mutex>

#include "taper/core/base/error.h"
#include "taper/core/storage.h"

namespace taper::data {
namespace {

// Streams live as long as the process: a loader that made its own would leave one behind.
Stream copy_stream(Device device) {
  static std::mutex lock;
  static std::optional<Stream> streams[kMaxDevices];
  const std::lock_guard guard(lock);
  std::optional<Stream>& stream = streams[device.index() % kMaxDevices];
  if (!stream) stream = make_stream(device);
  return *stream;
}

}  // namespace

Transfer::Transfer(Device device) : copies_(copy_stream(device)) {}

void Transfer::check_can_pin() {
  static_cast<void>(pinned_allocator());
}

Tensor Transfer::pinned(const Tensor& t) {
  return t.is_cpu() ? t.pin_memory() : t;
}

// What lies on a device may still be being written, on this thread's stream there.
void Transfer::wait_for_writer(const Tensor& t) const {
  if (t.is_cuda()) wait_for(copies_, current_stream(t.device()));
}

Tensor Transfer::start(const Tensor& t) const {
  return pinned(t).to(copies_.device(), /*non_blocking=*/true);
}

}  // namespace taper::data
