// Exec: where and how one kernel runs, and the typed views that it reads and writes.
#pragma once
#include <atomic>

#include "taper/allocator/block.h"
#include "taper/core/base/device.h"
#include "taper/core/base/dtype.h"
#include "taper/core/base/layout.h"
#include "taper/core/stream.h"

namespace taper {

// Memory as a kernel sees it: the address of the first element, its type, and the layout, whose
// offset is already counted into `data`. Borrowed for the call; data is null for no operand.
struct View {
  void* data = nullptr;
  const Layout* layout = nullptr;
  DType dtype = DType::kFloat32;

  TAPER_INLINE bool defined() const { return layout != nullptr; }

  template <class T> TAPER_INLINE T* as() const { return static_cast<T*>(data); }
};

struct In : View {};     // read
struct Out : View {};    // written; what was there does not matter
struct InOut : View {};  // read and written

using InList = ArrayRef<In>;

// A probe that looks for NaN and infinities leaves one of these to the kernel. A kernel that can
// lets each of its threads look at what it has written while that is in its own cache; what no
// kernel looked at the probe reads itself.
struct FiniteWatch {
  const void* looked_at = nullptr;  // data of the output of which every element was looked at
  std::atomic<bool> found{false};   // one that is not finite
};

// For the kernel that this thread calls next; null unless somebody looks.
extern thread_local constinit FiniteWatch* finite_watch __attribute__((tls_model("initial-exec")));

// Lets scatter_add, index_add and index_put add f32 and f64 on a CUDA device by atomics. That saves
// sorting where they lead, but the order of the sums, and so their last bits, differ from run to
// run. Off until asked for; under set_deterministic(true) these ops then throw. For all threads.
void allow_atomic_adds(bool on);
bool atomic_adds_allowed();

// How one kernel runs. A kernel allocates nothing but scratch, which dies with the Exec.
class Exec {
 public:
  // On the stream that is current for the device.
  explicit Exec(Device on)
      : device(on), stream(on.is_cuda() ? current_cuda_streams[on.index()] : StreamId{0}) {}

  Exec(Device on, StreamId in) : device(on), stream(in) {}

  ~Exec();
  Exec(const Exec&) = delete;
  Exec& operator=(const Exec&) = delete;

  // Uninitialised memory of the device, 512-byte aligned, good until the Exec dies.
  void* scratch(std::size_t bytes) const;

  Device device;
  StreamId stream;
  bool non_blocking = false;  // copies from and to pinned memory need not be done on return

 private:
  struct Piece {
    Block block;
    std::size_t requested;
  };

  mutable SmallVector<Piece, 2> pieces_;
};

}  // namespace taper
