// The elementary functions, the same to the bit on every CPU and GPU, in loops that vectorise.
#pragma once

#include "taper/core/math_base.h"
#include "taper/core/math_erf.h"
#include "taper/core/math_exp.h"
#include "taper/core/math_inverse_trig.h"
#include "taper/core/math_log.h"
#include "taper/core/math_pow.h"
#include "taper/core/math_round.h"
#include "taper/core/math_trig.h"

// Note [The same bits everywhere]
// Every function is a fixed sequence of IEEE operations and explicit fmas, with selects instead of
// branches, so the result does not depend on the instruction set, the compiler or the device; NaN
// payloads aside. Files that include this must be compiled with -ffp-contract=off (nvcc:
// --fmad=false) and without -ffast-math; a loop `out[i] = math::exp(in[i])` vectorises under
// -O3 -fno-math-errno -fno-trapping-math. Subnormals are neither flushed nor taken for zero.
