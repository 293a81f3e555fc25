// Elementwise kernels take packs of 16 bytes: every start, length, step and way to stretch gives
// the bits of the CPU column.
#include "taper/tests/cuda/parity.h"

namespace taper::cuda {
namespace {

constexpr DType kEveryWidth[] = {kFloat64, kFloat32, kBFloat16, kUInt8, kBool};

// The view of `layout` that starts at element `first` of a twin's storage.
template <class V> V from(bool cpu, Twin& twin, const Layout& layout, std::int64_t first) {
  V view = cpu ? twin.on_cpu<V>() : twin.on_cuda<V>();
  view.data = view.template as<std::byte>() + first * element_size(view.dtype);
  view.layout = &layout;
  return view;
}

// One operand: where it starts in its storage, and how it lies from there.
struct Piece {
  Twin twin;
  Layout layout;
  std::int64_t first;

  Piece(DType dtype, const Layout& lies, std::int64_t start, Random& random)
      : twin(dtype, contiguous_layout({4000}), random), layout(lies), first(start) {}
};

template <class Slot, class... Pieces> void check_pieces(Slot slot, Piece& out, Pieces&... in) {
  const auto run = [&](bool cpu) {
    return [&, cpu](const auto& kernel, const Exec& exec) {
      kernel(exec, from<Out>(cpu, out.twin, out.layout, out.first),
             from<In>(cpu, in.twin, in.layout, in.first)...);
    };
  };
  Both<>::run(slot, run(true), run(false));
  compare(out.twin);
}

TEST(ParityElementwise, EveryStartAndLength) {
  Random random(1);
  for (const DType dtype : kEveryWidth) {
    for (const std::int64_t n : {1, 15, 16, 17, 50}) {
      const Layout layout = contiguous_layout({n});
      for (std::int64_t start = 0; start < 17; ++start) {
        for (const std::int64_t other : {std::int64_t{0}, start, std::int64_t{3}}) {
          SCOPED_TRACE(str(dtype, " ", n, " from ", start, " and ", other));
          Piece out(dtype, layout, start, random), a(dtype, layout, start, random);
          Piece b(dtype, layout, other, random), chosen(kBool, layout, other, random);
          Piece is(kBool, layout, other, random);
          check_pieces(&Kernels::add, out, a, b);
          check_pieces(&Kernels::lt, is, a, b);
          check_pieces(&Kernels::where, out, chosen, a, b);
          Piece wide(kFloat32, layout, other, random);
          check_pieces(&Kernels::copy, wide, a);
        }
      }
    }
  }
}

// Rows that are whole packs, nearly so, or shorter; stretched inside, outside and in the middle;
// permuted; and with rows that start at other alignments.
TEST(ParityElementwise, RowsOfEveryLie) {
  Random random(2);
  for (const DType dtype : kEveryWidth) {
    for (const std::int64_t cols : {1, 2, 5, 16, 33}) {
      const Layout dense = contiguous_layout({3, 4, cols});
      std::vector<Layout> lies = {dense, dense, dense, dense, dense, dense, dense};
      lies[1].strides[2] = 0;
      lies[2].strides[0] = 0;
      lies[3].strides[1] = 0;
      for (int d = 0; d < 2; ++d) lies[4].strides[d] = d == 0 ? 4 * (cols + 16) : cols + 16;
      lies[5].strides[0] = 1;
      lies[5].strides[1] = 3 * cols;
      lies[5].strides[2] = 3;
      lies[6].strides[2] = -1;
      for (size_t i = 0; i < lies.size(); ++i) {
        for (size_t j = 0; j < lies.size(); ++j) {
          SCOPED_TRACE(str(dtype, " ", cols, " columns, lies ", i, " and ", j));
          const std::int64_t a_start = i == 6 ? cols - 1 : 16, b_start = j == 6 ? cols - 1 : 1;
          Piece out(dtype, j % 2 == 0 ? dense : lies[4], 16, random);
          Piece a(dtype, lies[i], a_start, random), b(dtype, lies[j], b_start, random);
          check_pieces(&Kernels::mul, out, a, b);
          check_pieces(&Kernels::copy, out, a);
        }
      }
    }
  }
}

}  // namespace
}  // namespace taper::cuda
