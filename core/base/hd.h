// How one function is compiled for both machines, and once for each instruction set.
#pragma once

// TAPER_HD goes before a function that host and device both call. TAPER_INLINE is the same and
// always inlined: such a function leaves no symbol behind, so the linker has nothing to merge.
#if defined(__CUDACC__)
#define TAPER_HD __host__ __device__
#define TAPER_INLINE __host__ __device__ __forceinline__
#else
#define TAPER_HD
#define TAPER_INLINE [[gnu::always_inline]] inline
#endif

// Note [One namespace for each instruction set]
// A kernel file is compiled several times, with -DTAPER_ISA=baseline, avx2, avx512 or neon. An
// inline function that the compiler does not inline becomes a weak symbol, of which the linker
// keeps any one: were the names equal, the baseline path could end up running an AVX body. So all
// that kernels call lives in
//     namespace taper::math { inline namespace TAPER_ISA { ... } }
// Ordinary files, and nvcc, do not set TAPER_ISA and get `portable`.
#ifndef TAPER_ISA
#define TAPER_ISA portable
#endif

namespace taper {
inline namespace TAPER_ISA {

// std::bit_cast is a host function to nvcc; this one is for both.
template <class To, class From> TAPER_INLINE constexpr To bit_cast(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, from);
}

}  // namespace TAPER_ISA
}  // namespace taper
