// Planes cut into patches, and channels spread over a plane.
#pragma once
#include "taper/core/tensor.h"

namespace taper {

// The patches under a sliding window as columns: (N, C, H, W) or (C, H, W) -> (N, C kH kW, L), L
// being the number of places. Sizes are one number or (height, width).
Tensor im2col(const TensorArg& x,
              IntArrayRef kernel_size,
              IntArrayRef dilation = 1,
              IntArrayRef padding = 0,
              IntArrayRef stride = 1);

// (..., C r^2, H, W) -> (..., C, H r, W r), r being the factor (Shi et al. 2016); and back.
Tensor pixel_shuffle(const TensorArg& x, std::int64_t upscale_factor);
Tensor pixel_unshuffle(const TensorArg& x, std::int64_t downscale_factor);

}  // namespace taper
