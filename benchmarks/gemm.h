// The gemm group: matrix products beside OpenBLAS, oneDNN and the peak of multiply-adds.
#pragma once
#include "taper/benchmarks/group.h"
#include "taper/benchmarks/product.h"

namespace bench {

extern const Group kGemm;

// Seconds of our product, on the threads that the library now uses.
double product_seconds(const Product& product);

}  // namespace bench
