// NCHW against NHWC: the cache lines that an access pattern touches, counted, and its time.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <set>
#include <vector>

#include "taper/taper.h"

using namespace taper;

struct Layout4 {
  const char* name;
  Tensor x;  // always sizes (N, C, H, W); only the strides differ
};

const float* address(const Tensor& x, std::int64_t c, std::int64_t h, std::int64_t w) {
  return x.data_ptr<float>() + c * x.stride(1) + h * x.stride(2) + w * x.stride(3);
}

std::size_t lines(const std::vector<const float*>& loads) {
  std::set<std::uintptr_t> distinct;
  for (const float* p : loads) distinct.insert(reinterpret_cast<std::uintptr_t>(p) / 64);
  return distinct.size();
}

// Lines touched by the 16 consecutive loads of the inner loop that start at pixel (8, 0).
std::size_t lines_of_16(const Tensor& x, bool channel_inner) {
  std::vector<const float*> loads;
  for (std::int64_t i = 0; i < 16; ++i) {
    loads.push_back(channel_inner ? address(x, i, 8, 0) : address(x, 0, 8, i));
  }
  return lines(loads);
}

// Milliseconds to add up all elements, the outer loops over h and then w or c.
double walk(const Tensor& x, bool channel_inner, double* sum) {
  const std::int64_t outer = channel_inner ? x.size(3) : x.size(1),
                     inner = channel_inner ? x.size(1) : x.size(3);
  const std::int64_t outer_step = channel_inner ? x.stride(3) : x.stride(1);
  const std::int64_t inner_step = channel_inner ? x.stride(1) : x.stride(3);
  double best = 1e9;
  for (int repeat = 0; repeat < 3; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    double total = 0;
    for (std::int64_t h = 0; h < x.size(2); ++h) {
      for (std::int64_t o = 0; o < outer; ++o) {
        const float* p = x.data_ptr<float>() + h * x.stride(2) + o * outer_step;
        float part = 0;
        for (std::int64_t i = 0; i < inner; ++i) part += p[i * inner_step];
        total += static_cast<double>(part);
      }
    }
    *sum = total;
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    best = took.count() < best ? took.count() : best;
  }
  return best;
}

int main() {
  const std::int64_t C = 64, H = 200, W = 200;
  manual_seed(1);
  const Tensor nchw = rand({1, C, H, W});
  const Tensor nhwc = nchw.contiguous(MemoryFormat::kChannelsLast);
  const Layout4 layouts[] = {{"NCHW", nchw}, {"NHWC", nhwc}};
  bool good = true;

  std::printf("x is (1, %d, %d, %d) f32, %.0f MiB; a cache line holds 16 floats.\n\n",
              static_cast<int>(C), static_cast<int>(H), static_cast<int>(W),
              static_cast<double>(nchw.nbytes()) / (1 << 20));
  std::printf("                                 lines of 16 loads    whole tensor\n");
  for (const Layout4& l : layouts) {
    std::printf("%s   strides (%d, %d, %d, %d)\n", l.name, static_cast<int>(l.x.stride(0)),
                static_cast<int>(l.x.stride(1)), static_cast<int>(l.x.stride(2)),
                static_cast<int>(l.x.stride(3)));
    for (const bool channel_inner : {true, false}) {
      double sum = 0;
      const double ms = walk(l.x, channel_inner, &sum);
      const std::size_t n = lines_of_16(l.x, channel_inner);
      std::printf("  for h, %-23s %17zu %12.2f ms\n",
                  channel_inner ? "for w, for c (inner)" : "for c, for w (inner)", n, ms);
      const bool streams = (l.x.stride(1) == 1) == channel_inner;
      good = good && n == (streams ? 1U : 16U);
    }
  }
  std::printf(
      "\nOne line per load is no property of NCHW: it comes from a channel-inner loop over NCHW,\n"
      "and just as much from a W-inner loop over NHWC. The loop that follows stride 1 streams.\n");

  std::vector<const float*> pixel_nchw, pixel_nhwc;
  for (std::int64_t c = 0; c < C; ++c) {
    pixel_nchw.push_back(address(nchw, c, 8, 8));
    pixel_nhwc.push_back(address(nhwc, c, 8, 8));
  }
  std::printf("\nOne pixel, all %d channels: %zu lines in NCHW, %zu in NHWC.\n",
              static_cast<int>(C), lines(pixel_nchw), lines(pixel_nhwc));
  good = good && lines(pixel_nchw) == 64 && lines(pixel_nhwc) == 4;

  const Tensor image = rand({1, H, W, 3});
  const Tensor seen = image.permute({0, 3, 1, 2});
  std::printf("\nConverting to channels_last copied: %s.\n",
              nhwc.is_alias_of(nchw) ? "NO!" : "yes, every byte moved");
  std::printf("Permuting a buffer that is NHWC already: %s, is_contiguous(kChannelsLast) = %s.\n",
              seen.is_alias_of(image) ? "no byte moved" : "COPIED!",
              seen.is_contiguous(MemoryFormat::kChannelsLast) ? "true" : "false");
  good = good && !nhwc.is_alias_of(nchw) && seen.is_alias_of(image) &&
         seen.is_contiguous(MemoryFormat::kChannelsLast);
  return good ? 0 : 1;
}
