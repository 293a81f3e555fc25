// Division with a remainder, and powers. 2 elements read, one written, up to 100 operations.
#include "taper/cuda/elementwise.cuh"

// An integer divisor of 0 gives 0 here; the CPU column throws, which a device could only do by
// waiting for the result.
namespace taper::cuda {

template void binary<fn::FloorDivide>(const Exec&, Out, In, In);
template void binary<fn::Remainder>(const Exec&, Out, In, In);
template void binary<fn::Fmod>(const Exec&, Out, In, In);
template void binary<fn::Pow>(const Exec&, Out, In, In);

}  // namespace taper::cuda
