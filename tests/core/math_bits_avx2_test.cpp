// The functions as the AVX2 kernels are compiled, with the fma instruction: the same bits.
#include <concepts>
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

// Only what follows is compiled for AVX2, and all of it lies in the namespace avx2 or in this file:
// no body of another header's inline function may get into the program in that form.
#if defined(__x86_64__) && !defined(__clang__)
#include <immintrin.h>
#pragma GCC target("avx2,fma")
#undef TAPER_ISA
#define TAPER_ISA avx2
// g++ reads the whole file before the pragma acts, so the macros do not know of it.
#if !defined(__AVX2__)
#define __AVX2__ 1
#define __FMA__ 1
#define __SSE4_1__ 1
#endif
#include "taper/tests/core/math_bits.h"

namespace taper::math_bits {
namespace {

TEST(MathBits, AreTheSameWithAvx2) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    GTEST_SKIP() << "this processor has no AVX2";
  }
  size_t count = 0;
  for_each_digest([&](const Digest& digest) {
    EXPECT_EQ(digest.bits, kExpected[count].bits) << digest.name;
    ++count;
  });
}

}  // namespace
}  // namespace taper::math_bits
#else
TEST(MathBits, AreTheSameWithAvx2) {
  GTEST_SKIP() << "needs g++ on x86-64, for its target pragma";
}
#endif
