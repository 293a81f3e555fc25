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
//
// Accuracy in ulps of the result, as measured and asserted by tests/core/math_test.cpp: in float at
// most 1.7 (sigmoid 2.3), and correctly rounded but for one in millions where the double function
// is used; in double at most 2.7 (tan 3.3, erfc 3.8). Special values are those of C99.
