// The hunt for the number that went bad first: which line made the NaN or infinity that reached
// the loss or a gradient.
#pragma once
#include <memory>
#include <string>

#include "taper/autograd/tape.h"
#include "taper/core/kernels.h"

namespace taper::lens {

// While it lives, what every kernel writes is looked at, on all threads. Infinities are legal on
// the way (masked scores before a softmax): where they come from is remembered, and told only when
// backward() starts from a NaN or infinity, or a gradient holds one. Then backward() throws Error
// with the line that made the number; or, with kReport, the log gets one warning and it goes on.
//   lens::Hunt hunt;
//   loss.backward();  // "the loss is nan; it began in forward: #12 log at train.cpp:42 ..."
// Costs some 4 % of a training step on the CPU (./dev bench lens); on CUDA each kernel is waited
// for.
class Hunt final : public Probe {
 public:
  enum class Found : std::uint8_t { kThrow, kReport };

  explicit Hunt(Found found = Found::kThrow);
  ~Hunt() override;
  Hunt(const Hunt&) = delete;
  Hunt& operator=(const Hunt&) = delete;

  // What was found; or else where infinities were made that have done no harm so far.
  std::string report() const;

  void before(const KernelCall& call) override;
  void after(const KernelCall& call) override;

  // Backward shows what it starts from, and what it is about to give to each node.
  static void look_at_roots(ArrayRef<Tensor> roots, ArrayRef<Tensor> gradients);
  static void look_at(const Node& node, ArrayRef<Tensor> grads);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Hunts alive; while there is none, backward pays for reading this alone.
extern std::atomic<int> hunts;

}  // namespace taper::lens
