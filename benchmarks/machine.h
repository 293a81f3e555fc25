// What this machine can do at best, measured here and now: fused multiply-adds and copying.
#pragma once
#include <string>
#include <vector>

namespace bench {

// Instruction sets that the library has kernels for and this machine runs, worst first.
std::vector<std::string> machine_isas();

// f32 operations per second of multiply-adds in registers, on so many threads; 0: not known.
double peak_flops(const std::string& isa, int threads);
double peak_flops(int threads);  // of the instruction set that the library runs

// Bytes per second, read and written, of copying 64 MB between buffers that stay: the best of a
// plain loop and memcpy.
double stream_bytes(int threads);

}  // namespace bench
