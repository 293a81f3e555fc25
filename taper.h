// The umbrella header for users; nothing inside Taper includes it.
#pragma once
#include "taper/autograd/backward.h"
#include "taper/autograd/function.h"
#include "taper/autograd/grad_mode.h"
#include "taper/autograd/gradcheck.h"
#include "taper/autograd/ops/create.h"
#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/index.h"
#include "taper/autograd/ops/reduce.h"
#include "taper/autograd/ops/shape.h"
