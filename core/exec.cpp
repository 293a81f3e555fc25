// Scratch memory of kernels, and the probe that watches their calls.
#include "taper/core/exec.h"

#include "taper/allocator/allocator.h"
#include "taper/core/kernels.h"
#include "taper/core/storage.h"

namespace taper {

Probe* probe = nullptr;

Exec::~Exec() {
  for (const Piece& p : pieces_) allocator_for(device).free(p.block, p.requested, stream);
}

void* Exec::scratch(std::size_t bytes) const {
  pieces_.push_back({allocator_for(device).allocate(bytes, stream), bytes});
  return pieces_.back().block.data;
}

}  // namespace taper
