// Arithmetic, and the choice of `where`. 2 to 3 elements moved and about one operation for each.
#include "taper/cuda/elementwise.cuh"

namespace taper::cuda {
namespace {

template <class Word> __global__ void choose_kernel(Rows rows, double, double) {
  constexpr int kSize = kPackOf<Word, Word>;
  for (Index i = first_index(); i < rows.count * rows.packs; i += index_step()) {
    const Place<4, kSize> place(rows, i);
    const auto condition = place.template load<bool>(rows, 1);
    const auto a = place.template load<Word>(rows, 2), b = place.template load<Word>(rows, 3);
    Pack<Word, kSize> out;
    for (int j = 0; j < kSize; ++j) out.of[j] = condition.of[j] ? a.of[j] : b.of[j];
    place.store(rows, out);
  }
}

// By how many elements an address misses the alignment of a pack.
Index misses(const void* address, std::int64_t size, int pack) {
  return static_cast<Index>(reinterpret_cast<std::uintptr_t>(address)) / size % pack;
}

Rows rows_of(std::initializer_list<const View*> views, int pack) {
  Layout layouts[Rows::kMostOperands];
  Layout* pointers[Rows::kMostOperands];
  int count = 0;
  for (const View* view : views) {
    layouts[count] = *view->layout;
    pointers[count] = &layouts[count];
    ++count;
  }
  Rows rows;
  if (layouts[0].numel() == 0) return rows;
  order_dims(pointers, count);
  const int last = layouts[0].ndim - 1;
  rows.ndim = last < 0 ? 0 : last;
  rows.length = last < 0 ? 1 : layouts[0].sizes[last];
  rows.count = layouts[0].numel() / rows.length;
  bool has_head = false;
  int k = 0;
  for (const View* view : views) {
    const Layout& layout = layouts[k];
    Rows::Operand& operand = rows.operands[k++];
    operand.data = view->data;
    operand.step = last < 0 ? 1 : layout.strides[last];
    operand.packed = operand.step == 1;
    for (int d = 0; d < rows.ndim; ++d) {
      rows.sizes[d] = layout.sizes[d];
      operand.strides[d] = layout.strides[d];
      operand.packed = operand.packed && layout.strides[d] % pack == 0;
    }
    if (!operand.packed) continue;
    const Index short_by = misses(view->data, element_size(view->dtype), pack);
    if (!has_head) rows.head = short_by;
    has_head = true;
    operand.packed = rows.head == short_by;
  }
  rows.packs = (rows.head + rows.length + pack - 1) / pack;
  return rows;
}

}  // namespace

void run_rows(const Exec& exec,
              RowsKernel kernel,
              int pack,
              std::initializer_list<const View*> views,
              double first,
              double second) {
  const Rows rows = rows_of(views, pack);
  launch_on(exec, blocks_for(rows.count * rows.packs), kThreads, kernel, rows, first, second);
}

void where(const Exec& exec, Out out, In condition, In a, In b) {
  visit_word(element_size(out.dtype), [&](auto type) {
    using Word = typename decltype(type)::type;
    run_rows(exec, choose_kernel<Word>, kPackOf<Word, Word>, {&out, &condition, &a, &b}, 0, 0);
  });
}

template void binary<fn::Add>(const Exec&, Out, In, In);
template void binary<fn::Sub>(const Exec&, Out, In, In);
template void binary<fn::Mul>(const Exec&, Out, In, In);
template void binary<fn::Div>(const Exec&, Out, In, In);
template void binary<fn::Maximum>(const Exec&, Out, In, In);
template void binary<fn::Minimum>(const Exec&, Out, In, In);
template void unary<fn::Neg>(const Exec&, Out, In);
template void unary<fn::Abs>(const Exec&, Out, In);
template void unary<fn::Sign>(const Exec&, Out, In);
template void unary<fn::Square>(const Exec&, Out, In);
template void unary<fn::Reciprocal>(const Exec&, Out, In);

}  // namespace taper::cuda
