// What the environment says of the emulated machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace taper::emulated {

enum class StreamOrder { kAtOnce, kLate, kSeeded };

constexpr int kRuntimeVersion = 13000;  // CUDA 13.0

// Each is a variable TAPER_EMULATED_..., of which cuda_runtime.h has the list.
struct Settings {
  int devices = 2;
  std::size_t memory = std::size_t{8} << 30;  // bytes of each
  int driver = kRuntimeVersion;               // the CUDA version that it supports; 0: there is none
  bool reverse = false;
  StreamOrder streams = StreamOrder::kAtOnce;
  std::uint64_t seed = 0;
  bool guarded = false;
  std::string failing;  // the call whose number-th is to fail
  long number = 0;
  int error = 0;
};

// Read once. Throws taper::Error for a variable or a value that there is not, and says what there
// is.
const Settings& settings();

}  // namespace taper::emulated
