// Whether ops are recorded on this thread: GradMode, no_grad and inference_mode.
#pragma once
#include "taper/core/base/source_loc.h"

namespace taper {

struct GradModeState {
  bool enabled = true;
  bool inference = false;
  // Where recording was switched off, for answers to "why is there no gradient?"; may be null.
  const SourceLoc* at = nullptr;
};

extern thread_local constinit GradModeState grad_mode_state
    __attribute__((tls_model("initial-exec")));

class GradMode {
 public:
  static bool is_enabled() { return grad_mode_state.enabled; }

  static void set_enabled(bool enabled) { grad_mode_state.enabled = enabled; }
};

// Sets the state for as long as it lives; the line `state` points to lives longer. Nests.
class GradModeSetting {
 public:
  explicit GradModeSetting(GradModeState state) : kept_(grad_mode_state) {
    grad_mode_state = state;
  }

  ~GradModeSetting() { grad_mode_state = kept_; }

  GradModeSetting(const GradModeSetting&) = delete;
  GradModeSetting& operator=(const GradModeSetting&) = delete;

 private:
  GradModeState kept_;
};

// While one lives, its thread records, or does not. Nests.
class AutoGradMode {
 public:
  explicit AutoGradMode(bool enabled, SourceLoc loc = SourceLoc::current())
      : loc_(loc), setting_({enabled, grad_mode_state.inference, &loc_}) {}

 private:
  SourceLoc loc_;
  GradModeSetting setting_;
};

class NoGradGuard : public AutoGradMode {
 public:
  explicit NoGradGuard(SourceLoc loc = SourceLoc::current()) : AutoGradMode(false, loc) {}
};

// no_grad that also marks new tensors: autograd refuses to save them later, naming the line.
class InferenceMode {
 public:
  explicit InferenceMode(bool enabled = true, SourceLoc loc = SourceLoc::current())
      : loc_(loc), setting_({!enabled, enabled, &loc_}) {}

  static bool is_enabled() { return grad_mode_state.inference; }

 private:
  SourceLoc loc_;
  GradModeSetting setting_;
};

// Under set_deterministic(true) an op that has no deterministic kernel throws, naming its line.
void set_deterministic(bool on);
bool is_deterministic();

}  // namespace taper
