// Patches and shuffles as views and one copy.
#include "taper/autograd/ops/patches.h"

#include "taper/autograd/ops/conv.h"
#include "taper/autograd/ops/pad.h"
#include "taper/autograd/ops/shape.h"

namespace taper {

Tensor im2col(const TensorArg& x,
              IntArrayRef kernel_size,
              IntArrayRef dilation,
              IntArrayRef padding,
              IntArrayRef stride) {
  const Call call(x.loc);
  std::int64_t kernel[2], step[2], room[2], spread[2];
  ops::read_pair(kernel, kernel_size, "im2col: kernel_size");
  ops::read_pair(spread, dilation, "im2col: dilation");
  ops::read_pair(room, padding, "im2col: padding");
  ops::read_pair(step, stride, "im2col: stride");
  TAPER_CHECK(x->dim() == 3 || x->dim() == 4, "im2col: needs x (N, C, H, W) or (C, H, W), got ",
              x->sizes());
  if (x->dim() == 3)
    return im2col(x->unsqueeze(0), kernel_size, dilation, padding, stride).squeeze(0);
  Tensor t = pad(*x, {room[1], room[1], room[0], room[0]});
  for (int d = 0; d < 2; ++d) {
    const std::int64_t reach = spread[d] * (kernel[d] - 1) + 1;
    TAPER_CHECK(
        kernel[d] > 0 && spread[d] > 0 && step[d] > 0 && room[d] >= 0 && reach <= t.size(2 + d),
        "im2col: a window of ", kernel_size, " with dilation ", dilation, ", padding ", padding,
        " and stride ", stride, " does not fit x ", x->sizes());
    t = t.unfold(2 + d, reach, step[d]).slice(4 + d, std::nullopt, std::nullopt, spread[d]);
  }
  // (N, C, H', W', kH, kW)
  const std::int64_t rows = x->size(1) * kernel[0] * kernel[1], columns = t.size(2) * t.size(3);
  return t.permute({0, 1, 4, 5, 2, 3}).reshape({x->size(0), rows, columns});
}

namespace {

// The sizes of x before its last three dims.
Sizes leading(const Tensor& x) {
  Sizes sizes;
  for (std::int64_t d = 0; d < x.dim() - 3; ++d) sizes.push_back(x.size(d));
  return sizes;
}

Sizes with_last(const Tensor& x, IntArrayRef last) {
  Sizes sizes = leading(x);
  for (const std::int64_t s : last) sizes.push_back(s);
  return sizes;
}

}  // namespace

Tensor pixel_shuffle(const TensorArg& x, std::int64_t upscale_factor) {
  const Call call(x.loc);
  const std::int64_t r = upscale_factor;
  TAPER_CHECK(x->dim() >= 3 && r > 0 && x->size(-3) % (r * r) == 0, "pixel_shuffle: needs x ",
              "(..., C r^2, H, W), got ", x->sizes(), " and the factor ", r);
  const std::int64_t c = x->size(-3) / (r * r), h = x->size(-2), w = x->size(-1);
  const Tensor apart =
      x->reshape({checked_numel(leading(*x)), c, r, r, h, w}).permute({0, 1, 4, 2, 5, 3});
  return apart.reshape(with_last(*x, {c, h * r, w * r}));
}

Tensor pixel_unshuffle(const TensorArg& x, std::int64_t downscale_factor) {
  const Call call(x.loc);
  const std::int64_t r = downscale_factor;
  TAPER_CHECK(x->dim() >= 3 && r > 0 && x->size(-2) % r == 0 && x->size(-1) % r == 0,
              "pixel_unshuffle: needs x (..., C, H r, W r), got ", x->sizes(), " and the factor ",
              r);
  const std::int64_t c = x->size(-3), h = x->size(-2) / r, w = x->size(-1) / r;
  const Tensor apart =
      x->reshape({checked_numel(leading(*x)), c, h, r, w, r}).permute({0, 1, 3, 5, 2, 4});
  return apart.reshape(with_last(*x, {c * r * r, h, w}));
}

}  // namespace taper
