// Whether ops are recorded on this thread: GradMode, no_grad and inference_mode.
#pragma once
#include "taper/core/base/source_loc.h"

namespace taper {

struct GradModeState {
  bool enabled = true;
  bool inference = false;
  SourceLoc loc;  // where recording was switched off, for answers to "why is there no gradient?"
};

extern thread_local constinit GradModeState grad_mode_state
    __attribute__((tls_model("initial-exec")));

class GradMode {
 public:
  static bool is_enabled() { return grad_mode_state.enabled; }

  static void set_enabled(bool enabled) { grad_mode_state.enabled = enabled; }
};

// While one lives, its thread records, or does not. Nests.
class AutoGradMode {
 public:
  explicit AutoGradMode(bool enabled, SourceLoc loc = SourceLoc::current())
      : kept_(grad_mode_state) {
    grad_mode_state.enabled = enabled;
    grad_mode_state.loc = loc;
  }

  ~AutoGradMode() { grad_mode_state = kept_; }

  AutoGradMode(const AutoGradMode&) = delete;
  AutoGradMode& operator=(const AutoGradMode&) = delete;

 private:
  GradModeState kept_;
};

class NoGradGuard : public AutoGradMode {
 public:
  explicit NoGradGuard(SourceLoc loc = SourceLoc::current()) : AutoGradMode(false, loc) {}
};

// no_grad that also marks new tensors: autograd refuses to save them later, naming the line.
class InferenceMode {
 public:
  explicit InferenceMode(bool enabled = true, SourceLoc loc = SourceLoc::current())
      : kept_(grad_mode_state) {
    grad_mode_state = {!enabled, enabled, loc};
  }

  ~InferenceMode() { grad_mode_state = kept_; }

  InferenceMode(const InferenceMode&) = delete;
  InferenceMode& operator=(const InferenceMode&) = delete;

  static bool is_enabled() { return grad_mode_state.inference; }

 private:
  GradModeState kept_;
};

// Under set_deterministic(true) an op that has no deterministic kernel throws, naming its line.
void set_deterministic(bool on);
bool is_deterministic();

}  // namespace taper
