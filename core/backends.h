// What this build and machine offer: version, instruction set, CUDA devices.
#pragma once
#include <string>

namespace taper {

const char* version();  // "0.1.0"

// The instruction set whose kernels run on this CPU: "avx2".
const char* cpu_isa();

namespace cuda {

int device_count();  // emulated devices count; 0 in a build without CUDA
// Why there are none: "there is no NVIDIA driver here". Empty where there are some.
std::string why_no_device();

// There is a real device. False in the emulated build: it is for tests, and programs that ask
// this question want speed.
bool is_available();

}  // namespace cuda
}  // namespace taper
