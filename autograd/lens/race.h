// The race checker: two kernels on two streams that touch the same bytes, with nothing between them
// that puts one before the other.
#pragma once
#include <memory>
#include <string>

#include "taper/core/kernels.h"

namespace taper::lens {

// While it lives, every kernel on a CUDA device is looked at, on all threads: which bytes it reads
// and writes, on which stream, and what that stream has waited for. Two that share bytes, one of
// them writing, must be ordered: by one stream, an Event, a synchronize(), a blocking copy, or the
// allocator when it gives freed memory to another stream. It looks at orders, not at times: what
// nothing orders is found even where it happened to run well.
//   lens::RaceCheck check;
//   train_step();  // throws Error: "mul at train.cpp:12 on cuda:0 stream 1 writes f32 (64, 128),
//                  // which add at train.cpp:10 on stream 2 reads; nothing orders them ..."
// The kernel that completes a race has been launched when this throws. CPU kernels are looked at
// where they meet what a device copies without blocking; item() and data_ptr() of a pinned tensor
// are not. All threads of the host count as one. One check at a time.
class RaceCheck final : public Probe {
 public:
  enum class Found : std::uint8_t { kThrow, kReport };  // kReport: a warning in the log

  explicit RaceCheck(Found found = Found::kThrow);
  ~RaceCheck() override;
  RaceCheck(const RaceCheck&) = delete;
  RaceCheck& operator=(const RaceCheck&) = delete;

  // All that was found, each pair of lines once.
  std::string report() const;
  // Pairs of lines found.
  std::size_t count() const;
  // Accesses that are still kept, because something may yet come that they are not ordered with.
  std::size_t kept() const;

  void before(const KernelCall& call) override;
  void after(const KernelCall& call) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace taper::lens
