// A stable sort along one dim: the keys of all lines, sorted, and then the elements they stand for.
#include "taper/core/functors.h"
#include "taper/core/functors_order.h"
#include "taper/cuda/lines.cuh"
#include "taper/cuda/radix_sort.cuh"

namespace taper::cuda {
namespace {

constexpr Index kWave = Index{1} << 24;  // elements whose keys are in memory at a time

template <class E> using Key = std::conditional_t<sizeof(E) == 8, std::uint64_t, std::uint32_t>;

// The digits of a key in which elements of a dtype differ: 16-bit floats have the keys of f32.
struct DigitRange {
  int first, last;
};

DigitRange digits_of(DType dtype) {
  const auto size = static_cast<int>(element_size(dtype));
  if (dtype == kFloat16) return {1, 4};   // 10 bits of mantissa reach to bit 13
  if (dtype == kBFloat16) return {2, 4};  // 7 reach to bit 16
  return {0, size};
}

// The lines [first, first + count) of n elements each.
struct Wave {
  Index first, count, n;
};

template <class E>
__global__ void load_keys(Key<E>* keys, Lined<const E> in, Wave wave, bool descending) {
  for (Index i = first_index(); i < wave.count * wave.n; i += index_step()) {
    const E x = in.line(wave.first + i / wave.n)[i % wave.n * in.step];
    keys[i] = static_cast<Key<E>>(fn::unsigned_sort_key(x, descending));
  }
}

template <class Word>
__global__ void store_sorted(Lined<Word> values,
                             Lined<Index> indices,
                             Lined<const Word> in,
                             const std::uint32_t* items,
                             Wave wave) {
  for (Index i = first_index(); i < wave.count * wave.n; i += index_step()) {
    const Index line = wave.first + i / wave.n, at = i % wave.n;
    const Index item = items[i];
    values.line(line)[at * values.step] = in.line(line)[item * in.step];
    indices.line(line)[at * indices.step] = item;
  }
}

struct Operands {
  Layout others[3];  // of the values, the indices and the input
  Index steps[3];
  Lines lines;

  template <class T> Lined<T> lined(int k, const View& view) const {
    return {view.as<T>(), Dims(others[k]), steps[k]};
  }
};

template <class E>
void sort_in(const Exec& exec,
             const View& values,
             const View& indices,
             const View& in,
             const Operands& operands,
             bool descending) {
  const Index n = operands.lines.length, lines = operands.lines.count;
  const Index most = n < kWave ? kWave / n : 1;
  KeySorter<Key<E>> sorter(exec, lines < most ? lines : most, n);
  const DigitRange digits = digits_of(in.dtype);
  for (Index first = 0; first < lines; first += most) {
    const Wave wave{first, lines - first < most ? lines - first : most, n};
    const unsigned blocks = blocks_for(wave.count * n);
    launch_on(exec, blocks, kThreads, load_keys<E>, sorter.keys(), operands.lined<const E>(2, in),
              wave, descending);
    sorter.sort(wave.count, digits.first, digits.last);
    visit_word(sizeof(E), [&](auto type) {
      using Word = typename decltype(type)::type;
      launch_on(exec, blocks, kThreads, store_sorted<Word>, operands.lined<Word>(0, values),
                operands.lined<Index>(1, indices), operands.lined<const Word>(2, in),
                sorter.items(), wave);
    });
  }
}

}  // namespace

void sort(const Exec& exec, Out values, Out indices, In in, int dim, bool descending) {
  TAPER_ASSERT(values.dtype == in.dtype);
  const View* const views[] = {&values, &indices, &in};
  Operands operands;
  operands.lines = take_lines(views, dim, operands.others, operands.steps);
  if (operands.lines.count == 0 || operands.lines.length == 0) return;
  visit_dtype(in.dtype, [&](auto type) {
    sort_in<typename decltype(type)::type>(exec, values, indices, in, operands, descending);
  });
}

}  // namespace taper::cuda
