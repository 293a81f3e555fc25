// What the Lens knows of each kernel: how much it reads, writes and computes, and at which numbers
// it leaves the finite ones.
#pragma once
#include "taper/core/kernels.h"

namespace taper::lens {

// Operands have the output's sizes, and each element is made from theirs alone.
bool is_elementwise(int slot);

// Where finite operands give an infinity or a NaN: "log x is -inf at x = 0, nan below"; "" where
// there is nothing special to say.
const char* limits_of_kernel(int slot);
// The same of an op's derivative: "sqrt: dx = g / (2 sqrt x) is infinite at x = 0".
const char* limits_of_gradient(const char* op);

// Elements that differ by address; stride 0 counts once.
std::uint64_t bytes_of(const View& view);

// Additions and multiplications of one call, by the table in slot_info.cpp.
double flops_of(const KernelCall& call);

}  // namespace taper::lens
