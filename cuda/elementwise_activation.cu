// The activations and their derivatives. 1 to 2 elements read, one written, up to 40 operations.
#include "taper/cuda/elementwise.cuh"

namespace taper::cuda {

template void unary<fn::Sigmoid>(const Exec&, Out, In);
template void unary<fn::Relu>(const Exec&, Out, In);
template void unary<fn::Silu>(const Exec&, Out, In);
template void unary<fn::Gelu>(const Exec&, Out, In);
template void unary<fn::GeluTanh>(const Exec&, Out, In);
template void unary<fn::LogSigmoid>(const Exec&, Out, In);
template void binary<fn::SigmoidGrad>(const Exec&, Out, In, In);
template void binary<fn::TanhGrad>(const Exec&, Out, In, In);
template void binary<fn::ReluGrad>(const Exec&, Out, In, In);
template void binary<fn::SiluGrad>(const Exec&, Out, In, In);
template void binary<fn::GeluGrad>(const Exec&, Out, In, In);
template void binary<fn::GeluTanhGrad>(const Exec&, Out, In, In);
template void binary<fn::LogSigmoidGrad>(const Exec&, Out, In, In);
template void unary2<fn::Clamp>(const Exec&, Out, In, double, double);
template void unary2<fn::LeakyRelu>(const Exec&, Out, In, double, double);
template void unary2<fn::Elu>(const Exec&, Out, In, double, double);
template void unary2<fn::Softplus>(const Exec&, Out, In, double, double);
template void binary2<fn::ClampGrad>(const Exec&, Out, In, In, double, double);
template void binary2<fn::LeakyReluGrad>(const Exec&, Out, In, In, double, double);
template void binary2<fn::EluGrad>(const Exec&, Out, In, In, double, double);
template void binary2<fn::SoftplusGrad>(const Exec&, Out, In, In, double, double);

}  // namespace taper::cuda
