// The meaning of every elementwise kernel: one functor each, compiled for CPU and CUDA alike.
#pragma once
#include "taper/core/functors_activation.h"
#include "taper/core/functors_arithmetic.h"
#include "taper/core/functors_cast.h"
#include "taper/core/functors_math.h"
