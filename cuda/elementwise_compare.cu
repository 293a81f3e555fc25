// Comparisons, logic and bits. 2 elements read, one written, one operation.
#include "taper/cuda/elementwise.cuh"

namespace taper::cuda {

template void binary<fn::Eq>(const Exec&, Out, In, In);
template void binary<fn::Ne>(const Exec&, Out, In, In);
template void binary<fn::Lt>(const Exec&, Out, In, In);
template void binary<fn::Le>(const Exec&, Out, In, In);
template void binary<fn::Gt>(const Exec&, Out, In, In);
template void binary<fn::Ge>(const Exec&, Out, In, In);
template void binary<fn::LogicalAnd>(const Exec&, Out, In, In);
template void binary<fn::LogicalOr>(const Exec&, Out, In, In);
template void binary<fn::LogicalXor>(const Exec&, Out, In, In);
template void unary<fn::LogicalNot>(const Exec&, Out, In);
template void binary<fn::BitwiseAnd>(const Exec&, Out, In, In);
template void binary<fn::BitwiseOr>(const Exec&, Out, In, In);
template void binary<fn::BitwiseXor>(const Exec&, Out, In, In);
template void unary<fn::BitwiseNot>(const Exec&, Out, In);

}  // namespace taper::cuda
