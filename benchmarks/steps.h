// The matrix products that a training step is made of: what no faster code around them can save.
#pragma once
#include <string>
#include <vector>

#include "taper/benchmarks/product.h"

namespace bench {

struct StepProduct {
  Product product;
  int times;  // in one step
};

// The models of the train group.
struct MlpSizes {
  long batch;
};

struct CnnSizes {
  long batch;
};

struct GptSizes {
  long batch, context, width, heads, blocks, letters;
};

std::vector<StepProduct> products_of(const MlpSizes& sizes);
std::vector<StepProduct> products_of(const CnnSizes& sizes);
std::vector<StepProduct> products_of(const GptSizes& sizes);

struct ModelSizes {
  MlpSizes mlp, large_mlp;
  CnnSizes cnn;
  GptSizes gpt;
};

ModelSizes model_sizes(bool tiny);
std::vector<StepProduct> training_products(bool tiny);  // of all of them

}  // namespace bench
