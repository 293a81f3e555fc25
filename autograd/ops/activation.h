// Activations that are made of others.
#pragma once
#include "taper/core/tensor.h"

namespace taper {

Tensor relu6(const TensorArg& x);                            // min(max(x, 0), 6)
Tensor celu(const TensorArg& x, double alpha = 1);           // x, below 0 alpha (e^(x / alpha) - 1)
Tensor selu(const TensorArg& x);                             // Klambauer et al. 2017
Tensor mish(const TensorArg& x);                             // x tanh(softplus(x)) (Misra 2019)
Tensor softsign(const TensorArg& x);                         // x / (1 + |x|)
Tensor tanhshrink(const TensorArg& x);                       // x - tanh(x)
Tensor hardshrink(const TensorArg& x, double lambda = 0.5);  // x, 0 where |x| <= lambda
Tensor softshrink(const TensorArg& x, double lambda = 0.5);  // x moved by lambda towards 0
Tensor hardsigmoid(const TensorArg& x);                      // relu6(x + 3) / 6
Tensor hardswish(const TensorArg& x);                        // x relu6(x + 3) / 6
Tensor threshold(const TensorArg& x, double threshold, double value);  // x, value where not above
Tensor glu(const TensorArg& x, std::int64_t dim = -1);  // a sigmoid(b), the halves of x along dim
// x, below 0 weight x; weight has one element, or one for each channel (dim 1) of x.
Tensor prelu(const TensorArg& x, const Tensor& weight);

}  // namespace taper
