// Arithmetic, and the choice of `where`. 2 to 3 elements moved and about one operation for each.
#include "taper/cuda/elementwise.cuh"

namespace taper::cuda {
namespace {

template <class Word>
__global__ void choose(
    Word* out, Operand<bool> condition, Operand<Word> a, Operand<Word> b, Index n) {
  for (Index i = first_index(); i < n; i += index_step()) {
    const Operand<Word>& chosen = condition.data[i * condition.step] ? a : b;
    out[i] = chosen.data[i * chosen.step];
  }
}

}  // namespace

void where(const Exec& exec, Out out, In condition, In a, In b) {
  Operands<3> operands(exec, out, condition, a, b);
  visit_word(element_size(out.dtype), [&](auto type) {
    using Word = typename decltype(type)::type;
    launch_on(exec, blocks_for(operands.count()), kThreads, choose<Word>, operands.out<Word>(),
              operands.in<bool>(0), operands.in<Word>(1), operands.in<Word>(2), operands.count());
  });
  operands.finish();
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
