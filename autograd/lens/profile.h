// The profiler: where a training step spends its time, by the user's lines, ops and modules.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "taper/core/kernels.h"

namespace taper::lens {

// One call of a kernel.
struct ProfileEvent {
  const char* op = "";        // the op that called it; in backward the one whose gradient this is
  const char* kernel = "";    // "matmul"
  const char* function = "";  // the public function that the user called
  SourceLoc loc;              // the user's line; in backward that of the forward
  std::uint32_t scope = 0;    // of the module, see scope_name
  std::uint32_t thread = 0;   // counted from 1, in the order in which they are first seen
  bool backward = false;
  std::uint64_t entry = 0;    // on the tape; 0: none
  std::int64_t start = 0;     // ns since the profile began
  std::int64_t duration = 0;  // ns
  std::uint64_t read = 0;     // bytes
  std::uint64_t written = 0;  // bytes
  double flops = 0;           // by the table of autograd/lens/slot_info.cpp
};

// What a row of the table stands for.
enum class By : std::uint8_t { kLine, kOp, kModule };

// While it lives, every kernel call is timed, on all threads. On CUDA that is the time of the
// launch. Holds at most `most_events` (of some 120 bytes each, 126 MB when none is given); later
// ones are counted, and left out of events, table and trace.
class Profile final : public Probe {
 public:
  explicit Profile(std::size_t most_events = std::size_t{1} << 20);
  ~Profile() override;
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  std::vector<ProfileEvent> events() const;  // by rising start
  std::size_t dropped() const;

  // Rows by falling time: share, time, how much of it in backward, calls, time per call, GB/s,
  // GFLOP/s.
  std::string table(By by, std::size_t most_rows = 20) const;

  // A trace for ui.perfetto.dev and chrome://tracing: two tracks for each thread, forward and
  // backward, with an arrow from each entry's forward to its backward; calls of several kernels
  // as a slice around them. Throws when the file cannot be written.
  void write(const std::string& path, SourceLoc loc = SourceLoc::current()) const;

  void before(const KernelCall& call) override;
  void after(const KernelCall& call) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace taper::lens
