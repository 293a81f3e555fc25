// A batch's way to pinned memory or to a device, on a stream that is for copies alone.
#pragma once
#include <optional>
#include <type_traits>
#include <utility>

#include "taper/core/stream.h"
#include "taper/core/tensor.h"

namespace taper::data {

// Calls f with each tensor of a batch: of a tensor, an Example, and what begin() and end() span, at
// any depth. What is none of these holds no tensor.
template <class Batch, class F> void each_tensor(Batch&& batch, const F& f) {
  if constexpr (std::is_same_v<std::remove_cvref_t<Batch>, Tensor>) {
    if (batch.defined()) f(batch);
  } else if constexpr (requires {
                         batch.data;
                         batch.target;
                       }) {
    each_tensor(batch.data, f);
    each_tensor(batch.target, f);
  } else if constexpr (requires {
                         batch.begin();
                         batch.end();
                       }) {
    for (auto&& part : batch) each_tensor(part, f);
  }
}

// Copies tensors to a CUDA device beside what the device works on. One to each batch; receive() may
// be called on another thread than send().
class Transfer {
 public:
  // Throws where there is no such device.
  explicit Transfer(Device device);

  // Throws where no memory can be pinned, for want of a device.
  static void check_can_pin();

  // The tensor in pinned memory; one that does not lie on the host, as it is.
  static Tensor pinned(const Tensor& t);

  // Replaces each tensor by one on the device. They have arrived when receive() has been called.
  template <class Batch> void send(Batch& batch) {
    each_tensor(batch, [this](Tensor& t) { wait_for_writer(t); });
    const StreamGuard guard(copies_);
    each_tensor(batch, [this](Tensor& t) { t = start(t); });
    arrived_.record(copies_);
  }

  // Makes the current stream of this thread wait for them. The host does not wait.
  template <class Batch> void receive(Batch& batch) const {
    const Stream user = current_stream(copies_.device());
    arrived_.block(user);
    each_tensor(batch, [&](Tensor& t) { t.record_stream(user); });
  }

 private:
  void wait_for_writer(const Tensor& t) const;
  Tensor start(const Tensor& t) const;

  Stream copies_;  // one for each device, for all loaders
  Event arrived_;
};

}  // namespace taper::data
