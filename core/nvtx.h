// Ranges for NVIDIA's profilers: module scopes and ops on the timeline under their names.
#pragma once
#include "taper/core/kernels.h"

namespace taper::lens {

// While it lives, every kernel call lies in a range "linear: matmul at train.cpp:12", and that in
// one for each module around it: "encoder", "encoder.3", ... They are of the NVTX domain "taper",
// on the timeline of the thread that calls. A module's range begins at its first kernel and ends
// where the thread calls the next one outside of it.
//
// TAPER_NVTX=1 makes one for the whole process; a second one does nothing while there is one.
// Throws Error in a build without CUDA.
class NvtxRanges final : public Probe {
 public:
  NvtxRanges();
  ~NvtxRanges() override;
  NvtxRanges(const NvtxRanges&) = delete;
  NvtxRanges& operator=(const NvtxRanges&) = delete;

  void before(const KernelCall& call) override;
  void after(const KernelCall& call) override;

 private:
  bool installed_;
};

}  // namespace taper::lens
