// Recurrent layers over whole sequences: the op classes, and functions that run one layer.
#pragma once
#include "taper/autograd/op.h"

namespace taper {

// Note [Rows of sequences]
// B sequences lie as rows (N, ...): first the first step of all, then the second step of those that
// have one, and so on, the longest sequence first. batch_sizes holds how many have a first step,
// a second, ...; it never grows, and its sum is N. So a step's rows are together, and the states
// before them are the first of the step before.

// What a layer gives of each row, (N, H).
struct LstmStates {
  Tensor h, c;
};

// x holds x_t W_ih^T and the biases of all gates, (N, 4 H); w_hh (4 H, H), h0 and c0 (B, H).
LstmStates lstm_layer(const TensorArg& x,
                      const Tensor& w_hh,
                      const Tensor& h0,
                      const Tensor& c0,
                      std::vector<std::int64_t> batch_sizes);

// x (N, 3 H), w_hh (3 H, H), b_hh (3 H) or undefined, h0 (B, H) -> h (N, H).
Tensor gru_layer(const TensorArg& x,
                 const Tensor& w_hh,
                 const Tensor& b_hh,
                 const Tensor& h0,
                 std::vector<std::int64_t> batch_sizes);

namespace ops {

// (x, w_hh, h0, c0) -> (h, c, gates), the gates (N, 4 H) as core/recurrent_step.h has them. They
// are an output so that derivatives of the derivative, which is written in them, reach them.
class Lstm final : public OpOf<Lstm> {
 public:
  static constexpr const char* kName = "lstm";

  explicit Lstm(std::vector<std::int64_t> batch_sizes) : batch_sizes_(std::move(batch_sizes)) {}

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

 private:
  Grads composite(const Reverse& r) const;
  Grads fused(const Reverse& r) const;

  std::vector<std::int64_t> batch_sizes_;
};

// (x, w_hh, b_hh, h0) -> (h, gates); b_hh may be undefined.
class Gru final : public OpOf<Gru> {
 public:
  static constexpr const char* kName = "gru";

  explicit Gru(std::vector<std::int64_t> batch_sizes) : batch_sizes_(std::move(batch_sizes)) {}

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

 private:
  Grads composite(const Reverse& r) const;
  Grads fused(const Reverse& r) const;

  std::vector<std::int64_t> batch_sizes_;
};

}  // namespace ops
}  // namespace taper
