// Traces made by rule: training steps, servers and users' reports that allocators are judged by.
#pragma once
#include <string_view>

#include "taper/allocator/trace.h"
#include "taper/core/base/array_ref.h"

namespace taper {

struct Workload {
  const char* name;
  const char* what;   // one line
  Trace (*make)();    // the same trace at each call, on every machine
  bool fixed_shapes;  // every step asks for the same sizes in the same order
  bool in_corpus;     // one of the seven that goals are stated over
};

ArrayRef<Workload> workloads();
// Null when there is none of that name.
const Workload* find_workload(std::string_view name);

// A decoder's training: f16 parameters and activations, attention without a score matrix, AdamW
// with f32 states. Each step draws a length from `least_length` to `most_length`.
struct GptWorkload {
  std::uint32_t steps = 60, layers = 24, width = 1024, batch = 8, vocabulary = 50304;
  std::uint32_t least_length = 128, most_length = 2048;
  bool checkpoint = false;      // keep a layer's output alone; its backward computes the rest anew
  std::uint32_t states_at = 0;  // the step at whose end the optimizer makes its states
  std::uint64_t seed = 1;
};

Trace gpt_workload(const char* name, const GptWorkload& shape);

// Sharded layers: each is gathered on stream 1, computed with on stream 0 and freed, forwards and
// then backwards; the host is at most `ahead` layers ahead of the device.
Trace fsdp_workload(std::uint32_t layers, std::uint64_t layer_bytes, std::uint32_t ahead);

}  // namespace taper
