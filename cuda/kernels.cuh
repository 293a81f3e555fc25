// What the CUDA column is made of: one function for each slot that it serves, by file.
#pragma once

#ifdef __CUDACC__
#pragma nv_diag_suppress 1835  // tls_model on the host's variables: the device pass knows none
#endif

#include "taper/core/kernels.h"
