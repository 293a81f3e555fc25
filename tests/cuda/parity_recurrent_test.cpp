// Steps of an LSTM and a GRU on the CUDA column, and their gradients, give the CPU column's bits.
#include "taper/tests/cuda/parity.h"

namespace taper::cuda {
namespace {

constexpr DType kFloating[] = {kFloat64, kFloat32, kFloat16, kBFloat16};

As<InOut> in_out(Twin& twin) {
  return {twin};
}

As<Out> out(Twin& twin) {
  return {twin};
}

// Rows of `cols` elements, `gap` apart from one another.
Layout rows(std::int64_t count, std::int64_t cols, std::int64_t gap) {
  Layout layout = contiguous_layout({count, cols});
  layout.strides[0] += gap;
  return layout;
}

struct Problem {
  Twin gates, dgates, x, state, dx, dstate, h, c, before, dh, dc, d_before;

  Problem(DType dtype, std::int64_t batch, std::int64_t size, std::int64_t gap, Random& random)
      : gates(dtype, rows(batch, 4 * size, gap), random),
        dgates(dtype, rows(batch, 4 * size, 0), random),
        x(dtype, rows(batch, 3 * size, 2 * gap), random),
        state(dtype, rows(batch, 3 * size, 0), random),
        dx(dtype, rows(batch, 3 * size, gap), random),
        dstate(dtype, rows(batch, 3 * size, 0), random),
        h(dtype, rows(batch, size, gap), random),
        c(dtype, rows(batch, size, 0), random),
        before(dtype, rows(batch, size, 3 * gap), random),
        dh(dtype, rows(batch, size, 0), random),
        dc(dtype, rows(batch, size, gap), random),
        d_before(dtype, rows(batch, size, 0), random) {}

  void check_lstm() {
    check<InOut>(&Kernels::lstm, gates, out(h), out(c), in(before));
    compare(h);
    compare(c);
    check(&Kernels::lstm_grad, dgates, in_out(d_before), in(dh), in(dc), in(gates), in(c),
          in(before));
    compare(d_before);
  }

  void check_gru() {
    check(&Kernels::gru, gates, out(h), in(x), in(state), in(before));
    compare(h);
    check(&Kernels::gru_grad, dx, out(dstate), in_out(d_before), in(dh), in(gates), in(before));
    compare(dstate);
    compare(d_before);
  }
};

// The numbers hold infinities, NaN and signed zeros.
TEST(ParityRecurrent, EveryDTypeAndShape) {
  const std::int64_t shapes[][2] = {{1, 1}, {3, 5}, {33, 129}, {1, 5000}, {0, 4}};
  for (const auto& [batch, size] : shapes) {
    for (const DType dtype : kFloating) {
      for (const std::int64_t gap : {0, 5}) {
        SCOPED_TRACE(str(dtype, " (", batch, ", ", size, "), gap ", gap));
        Random random(static_cast<size_t>(batch * 31 + size));
        Problem lstm(dtype, batch, size, gap, random), gru(dtype, batch, size, gap, random);
        lstm.check_lstm();
        gru.check_gru();
      }
    }
  }
}

}  // namespace
}  // namespace taper::cuda
