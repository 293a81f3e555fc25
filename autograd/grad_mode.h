// Whether ops are recorded on this thread: GradMode, no_grad and inference_mode.
#pragma once

namespace taper {

struct GradModeState {
  bool enabled = true;
  bool inference = false;
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
  explicit AutoGradMode(bool enabled) : kept_(grad_mode_state.enabled) {
    grad_mode_state.enabled = enabled;
  }

  ~AutoGradMode() { grad_mode_state.enabled = kept_; }

  AutoGradMode(const AutoGradMode&) = delete;
  AutoGradMode& operator=(const AutoGradMode&) = delete;

 private:
  bool kept_;
};

class NoGradGuard : public AutoGradMode {
 public:
  NoGradGuard() : AutoGradMode(false) {}
};

// no_grad that also marks new tensors: autograd refuses to save them later, naming the line.
class InferenceMode {
 public:
  explicit InferenceMode(bool enabled = true) : kept_(grad_mode_state) {
    grad_mode_state = {!enabled, enabled};
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
