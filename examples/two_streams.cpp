// Work on two streams of a device: what the race checker says where a wait is missing.
#include <cstdio>

#include "taper/taper.h"

using namespace taper;

// Two products at once. The sum needs both; with `waits` it waits for the one on the side stream.
Tensor both_products(const Tensor& x, const Tensor& a, const Tensor& b, Stream side, bool waits) {
  wait_for(side, current_stream());  // x, a and b may still be in the making
  Tensor left;
  {
    const StreamGuard guard(side);
    left = x.mm(a);
  }
  const Tensor right = x.mm(b);
  if (waits) wait_for(current_stream(), side);
  return left + right;
}

int main() {
  if (cuda::device_count() == 0) return 77;  // a test that is skipped
  const Tensor x = ones({8, 16}).to(kCUDA), a = ones({16, 4}).to(kCUDA), b = a * 2;
  const Stream side = make_stream();
  for (const bool waits : {false, true}) {
    const lens::RaceCheck check;
    try {
      const Tensor sum = both_products(x, a, b, side, waits);
      std::printf("with the wait: %g, %s\n", sum[0][0].item<double>(), check.report().c_str());
    } catch (const Error& e) {
      std::printf("without: %s\n\n", e.what());
    }
  }
}
