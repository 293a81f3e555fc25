// The elementary functions. 1 to 2 elements read, one written, 10 to 60 operations.
#include "taper/cuda/elementwise.cuh"

namespace taper::cuda {

template void unary<fn::Exp>(const Exec&, Out, In);
template void unary<fn::Expm1>(const Exec&, Out, In);
template void unary<fn::Log>(const Exec&, Out, In);
template void unary<fn::Log1p>(const Exec&, Out, In);
template void unary<fn::Sqrt>(const Exec&, Out, In);
template void unary<fn::Rsqrt>(const Exec&, Out, In);
template void unary<fn::Sin>(const Exec&, Out, In);
template void unary<fn::Cos>(const Exec&, Out, In);
template void unary<fn::Tan>(const Exec&, Out, In);
template void unary<fn::Asin>(const Exec&, Out, In);
template void unary<fn::Acos>(const Exec&, Out, In);
template void unary<fn::Atan>(const Exec&, Out, In);
template void unary<fn::Sinh>(const Exec&, Out, In);
template void unary<fn::Cosh>(const Exec&, Out, In);
template void unary<fn::Tanh>(const Exec&, Out, In);
template void unary<fn::Erf>(const Exec&, Out, In);
template void unary<fn::Floor>(const Exec&, Out, In);
template void unary<fn::Ceil>(const Exec&, Out, In);
template void unary<fn::Round>(const Exec&, Out, In);
template void unary<fn::Trunc>(const Exec&, Out, In);
template void binary<fn::Atan2>(const Exec&, Out, In, In);

}  // namespace taper::cuda
