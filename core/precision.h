// How matrices are multiplied: f32 in full or with operands rounded to tf32, and by whose code.
#pragma once
#include <cstdint>
#include <string_view>

#include "taper/core/base/hd.h"

namespace taper {

// Note [tf32]
// NVIDIA's tensor cores take f32 matrices only as tf32: 8 bits of exponent as f32 has, 10 of
// mantissa in place of 23, so that a product of two numbers is good to about 1e-3; sums are in f32.
// It is many times faster there, and off until asked for. Then every backend rounds the operands of
// f32 matmul alike, so that the CPU shows what the device will compute; the bias is not rounded.

// torch.set_float32_matmul_precision: "highest" (the start), or "high" for tf32. "medium" means the
// same as "high" here; anything else throws Error. For all threads, from their next product on.
void set_float32_matmul_precision(std::string_view precision);
std::string_view get_float32_matmul_precision();

bool matmul_rounds_to_tf32();

// TAPER_GEMM, whose matrix products are used: "own" (Taper's), "openblas" on the CPU, "cublas" on a
// CUDA device; empty where nothing is said. Throws Error if it says anything else.
std::string_view gemm_choice();

inline namespace TAPER_ISA {

// To nearest, ties away from zero, as PTX's cvt.rna.tf32.f32, the rounding that all devices with
// tf32 have in hardware. Infinities and NaN stay; what is nearer to 2^128 becomes infinity.
TAPER_INLINE float round_to_tf32(float x) {
  const auto bits = bit_cast<std::uint32_t>(x);
  const bool finite = (bits & 0x7f800000u) != 0x7f800000u;
  return bit_cast<float>(finite ? (bits + 0x1000u) & 0xffffe000u : bits);
}

}  // namespace TAPER_ISA
}  // namespace taper
