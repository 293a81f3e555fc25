// The rings of launches: written by each, read when a device has faulted.
#include "taper/cuda/trail.h"

#include <algorithm>
#include <array>
#include <deque>
#include <mutex>
#include <vector>

#include "taper/core/base/error.h"
#include "taper/core/base/op_name.h"
#include "taper/core/base/spin_lock.h"
#include "taper/cuda/runtime.h"

namespace taper::cuda {
namespace {

constexpr std::uint64_t kKept = 64;
constexpr std::size_t kShown = 8;

// The call is over when this is read: the texts outlive it, its SourceLoc does not.
struct Launch {
  const char *op, *function, *entry;
  const char *file, *caller;
  std::uint32_t line;
  bool suspect;
  cudaStream_t stream;
};

struct Ring {
  SpinLock lock;
  std::uint64_t count = 0;
  std::array<Launch, kKept> launches{};

  // The latest first, while `visit` wants more.
  template <class Visit> void backwards(const Visit& visit) {
    for (std::uint64_t n = count; n > 0 && n + kKept > count; --n) visit(n, launches[n % kKept]);
  }
};

constinit std::array<Ring, kMaxDevices> rings;

Ring& ring(int device) {
  return rings[static_cast<std::size_t>(device) % kMaxDevices];
}

bool is_fault(cudaError_t status) {
  switch (status) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure: return true;
    default: return false;
  }
}

std::string describe(const Launch& launch, int device) {
  const SourceLoc loc(launch.file, launch.caller, launch.line);
  CallSite site;
  site.op = launch.op;
  site.function = launch.function;
  site.entry = launch.entry;
  if (launch.file != nullptr) site.at = &loc;
  const std::string op = op_name(site);
  std::string text = op.empty() ? "a kernel" : op;
  if (launch.file != nullptr && loc.known()) text += " at " + to_string(loc);
  const int number = number_of(device, launch.stream);
  return text + (number < 0 ? " on a stream of the caller's" : str(" on stream ", number));
}

}  // namespace

void note_launch(int device, cudaStream_t stream) {
  const CallSite& site = call_site;
  Launch launch{site.op, site.function, site.entry, nullptr, nullptr, 0, true, stream};
  if (site.active()) {
    launch.file = site.at->file;
    launch.caller = site.at->function;
    launch.line = site.at->line;
  }
  Ring& here = ring(device);
  const std::lock_guard lock(here.lock);
  here.launches[++here.count % kKept] = launch;
}

std::uint64_t launches_noted(int device) {
  Ring& here = ring(device);
  const std::lock_guard lock(here.lock);
  return here.count;
}

void note_success(int device, std::uint64_t launches, cudaStream_t stream) {
  Ring& here = ring(device);
  const std::lock_guard lock(here.lock);
  here.backwards([&](std::uint64_t number, Launch& launch) {
    if (number <= launches && launch.stream == stream) launch.suspect = false;
  });
}

void note_success(int device, std::uint64_t launches) {
  Ring& here = ring(device);
  const std::lock_guard lock(here.lock);
  here.backwards([&](std::uint64_t number, Launch& launch) {
    if (number <= launches) launch.suspect = false;
  });
}

std::string suspects(cudaError_t status) {
  int device = 0;
  if (!is_fault(status) || cudaGetDevice(&device) != cudaSuccess) return "";
  std::vector<Launch> found;
  {
    Ring& here = ring(device);
    const std::lock_guard lock(here.lock);
    here.backwards([&](std::uint64_t, const Launch& launch) {
      if (launch.suspect) found.push_back(launch);
    });
  }
  std::vector<std::string> texts;  // an op of several kernels is told once
  for (const Launch& launch : found) {
    std::string text = describe(launch, device);
    if (texts.empty() || texts.back() != text) texts.push_back(std::move(text));
  }
  if (texts.empty()) return "";
  std::string out = "; kernels since the last synchronisation that went well: ";
  const std::size_t shown = std::min(texts.size(), kShown);
  for (std::size_t i = 0; i < shown; ++i) out += (i == 0 ? "" : ", ") + texts[i];
  if (found.size() == kKept || shown < texts.size()) out += ", and earlier ones";
  return out;
}

}  // namespace taper::cuda
