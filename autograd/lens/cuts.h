// Where the path of a gradient ended although it began at a tensor that requires grad: a detach(),
// a NoGradGuard, an op without a derivative.
#pragma once
#include "taper/autograd/op.h"

namespace taper::lens {

// One such place. The latest 1,024 are kept; tensors, edges and leaves name them by number.
struct Cut {
  enum class Kind : std::uint8_t { kDetach, kNoGrad, kInference, kNoDerivative, kItem, kFrozen };

  std::uint32_t id = 0;  // from 1; 0: there is none
  Kind kind = Kind::kDetach;
  std::uint32_t scope = 0;
  std::uint64_t stamp = 0;  // the next entry's index when it last happened
  const char* op = "";
  SourceLoc loc;     // of the call that cut
  SourceLoc guard;   // kNoGrad, kInference: where recording was switched off
  SourceLoc joined;  // of the latest recorded op that took the result; unknown: none did
};

inline constexpr std::size_t kCutsKept = 1024;

// Number i lies at i % kCutsKept; made by the first. For debuggers; others ask cut().
extern Cut* cut_ring;

// The cut of that number, or one with id 0 when it is no longer kept.
Cut cut(std::uint32_t id);

// "detach() at enc.cpp:31 in forward, scope encoder"
std::string to_string(const Cut& cut);

// A call that records nothing took `t`: what gradient paths it ends is written down, at the leaves
// that they begin at. Returns the number that the result carries; 0: no path ended here.
std::uint32_t note_cut(Cut::Kind kind, const char* op, const Tensor& t);

// The same of an op's inputs, when the op was not recorded.
std::uint32_t note_unrecorded(const Op& op, ArrayRef<const Tensor*> inputs);

// A recorded op at the thread's call site took a tensor that carries this number.
void note_joined(std::uint32_t id);

}  // namespace taper::lens
