// Losses: the op classes and the public functions.
#pragma once
#include "taper/autograd/op.h"

namespace taper {

// What is done with the losses of the elements. LibTorch's at::Reduction names stand beside ours.
enum class Reduction : std::uint8_t {
  kNone,
  kMean,
  kSum,
  kBatchMean,    // kl_div: the sum over size(0)
  None = kNone,  // NOLINT(readability-identifier-naming)
  Mean = kMean,  // NOLINT(readability-identifier-naming)
  Sum = kSum,    // NOLINT(readability-identifier-naming)
};

inline constexpr Reduction kNone = Reduction::kNone;
inline constexpr Reduction kMean = Reduction::kMean;
inline constexpr Reduction kSum = Reduction::kSum;
inline constexpr Reduction kBatchMean = Reduction::kBatchMean;

// -weight[target] * x[target] over classes. x: (N, C), (C) or (N, C, d1, ...), log-probabilities;
// target: (N), () or (N, d1, ...), integers in [0, C) or ignore_index, else Error; weight: (C).
// kMean divides by the weights of the targets that count: NaN when all are ignored.
Tensor nll_loss(const TensorArg& x,
                const Tensor& target,
                const Tensor& weight = {},
                Reduction reduction = kMean,
                std::int64_t ignore_index = -100);

// nll_loss(log_softmax(x)), x being scores. A floating target of x's shape holds probabilities.
// Szegedy et al. 2016: label_smoothing s mixes the target with the uniform distribution, s / C.
Tensor cross_entropy(const TensorArg& x,
                     const Tensor& target,
                     const Tensor& weight = {},
                     Reduction reduction = kMean,
                     std::int64_t ignore_index = -100,
                     double label_smoothing = 0);

// Elementwise; x and target broadcast.
Tensor mse_loss(const TensorArg& x, const TensorArg& target, Reduction reduction = kMean);
Tensor l1_loss(const TensorArg& x, const TensorArg& target, Reduction reduction = kMean);
// huber_loss / beta; l1_loss for beta 0.
Tensor smooth_l1_loss(const TensorArg& x,
                      const TensorArg& target,
                      Reduction reduction = kMean,
                      double beta = 1);
// d^2 / 2 where |d| < delta, delta (|d| - delta / 2) elsewhere (Huber 1964).
Tensor huber_loss(const TensorArg& x,
                  const TensorArg& target,
                  Reduction reduction = kMean,
                  double delta = 1);
// -t ln x - (1 - t) ln(1 - x), logarithms not below -100; x in [0, 1], the shape of target.
Tensor binary_cross_entropy(const TensorArg& x,
                            const Tensor& target,
                            const Tensor& weight = {},
                            Reduction reduction = kMean);
// The same of sigmoid(x), stable; pos_weight multiplies the t ln x part.
Tensor binary_cross_entropy_with_logits(const TensorArg& x,
                                        const Tensor& target,
                                        const Tensor& weight = {},
                                        const Tensor& pos_weight = {},
                                        Reduction reduction = kMean);
// t (ln t - x), x being log-probabilities; with log_target, target is ln t.
Tensor kl_div(const TensorArg& x,
              const TensorArg& target,
              Reduction reduction = kMean,
              bool log_target = false);

namespace ops {

// (x (N, C, ...), target (N, ...), weight (C) or undefined)
// y = -sum w[t] x[t] / n: dy = -w[t] dx[t] / n; n is 1, or the sum of w[t] for kMean
class NllLoss final : public OpOf<NllLoss> {
 public:
  static constexpr const char* kName = "nll_loss";

  NllLoss(Reduction reduction, std::int64_t ignore_index)
      : reduction_(reduction), ignore_index_(ignore_index) {}

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

 private:
  Reduction reduction_;
  std::int64_t ignore_index_;
  Sizes sizes_;  // of x
};

// Huber's function of d: its derivative is d clamped to [-delta, delta].
class Huber final : public OpOf<Huber> {
 public:
  static constexpr const char* kName = "huber";

  explicit Huber(double delta) : delta_(delta) {}

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

 private:
  double delta_;
};

// (x, t) -> -t ln x - (1 - t) ln(1 - x), each logarithm at least -100:
// dy = (x - t) / max(x (1 - x), 1e-12) dx + (ln(1 - x) - ln x) dt
class BinaryCrossEntropy final : public OpOf<BinaryCrossEntropy> {
 public:
  static constexpr const char* kName = "binary_cross_entropy";

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;
};

}  // namespace ops
}  // namespace taper
