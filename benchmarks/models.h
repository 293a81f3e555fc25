// The models that the train group trains, and one function each that makes a step of it.
#pragma once
#include <functional>

#include "taper/benchmarks/steps.h"
#include "taper/core/base/layout.h"

namespace bench {

// Forward, backward and Adam on random data.
using TrainingStep = std::function<void()>;

TrainingStep mlp_step(const MlpSizes& sizes);
TrainingStep cnn_step(const CnnSizes& sizes, taper::MemoryFormat format);
TrainingStep gpt_step(const GptSizes& sizes);

// An epoch of the MLP over Fashion-MNIST, shuffled, by the data loader; over drawn digits when
// `tiny`. Empty where there is no Fashion-MNIST.
TrainingStep fashion_mnist_epoch(const MlpSizes& sizes, bool tiny);

}  // namespace bench
