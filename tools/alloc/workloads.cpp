// The list of the workloads.
#include "taper/tools/alloc/workloads.h"

#include <iterator>

#include "taper/tools/alloc/workload_writer.h"

namespace taper {
namespace {

Trace gpt_fixed() {
  GptWorkload shape;
  shape.least_length = shape.most_length = 1024;
  return gpt_workload("gpt_fixed", shape);
}

Trace gpt_variable() {
  return gpt_workload("gpt_variable", {});
}

Trace gpt_checkpoint() {
  GptWorkload shape;
  shape.checkpoint = true;
  shape.seed = 2;
  return gpt_workload("gpt_checkpoint", shape);
}

Trace gpt_late_states() {
  GptWorkload shape;
  shape.least_length = shape.most_length = 1024;
  shape.steps = 6;
  shape.states_at = 1;
  return gpt_workload("gpt_late_states", shape);
}

Trace fsdp() {
  return fsdp_workload(32, 400'000'000, 4);
}

// Name, what it is, generator, fixed shapes, of the corpus. T1 to T9 are users' reports on PyTorch.
constexpr Workload kWorkloads[] = {
    {"embedding", "outputs of random length, the last one alive while the next is made",
     embedding_workload, false, true},
    {"gpt_variable", "a decoder's training, each step of another length", gpt_variable, false,
     true},
    {"gpt_checkpoint", "the same, keeping only the layers' outputs", gpt_checkpoint, false, true},
    {"kv_cat", "keys and values that grow by a token a step, copied each time", kv_cat_workload,
     false, true},
    {"pins", "batches of random size, each leaving one small tensor behind", pins_workload, false,
     true},
    {"resnet_like", "a residual network's training, as a graph compiler schedules it",
     resnet_like_workload, true, true},
    {"pangu_like", "a large decoder's training step with many short-lived buffers",
     pangu_like_workload, false, true},
    {"gpt_fixed", "a decoder's training, all steps of one length", gpt_fixed, true, false},
    {"gpt_late_states", "optimizer states made after the second step, amid freed activations",
     gpt_late_states, false, false},
    {"growing_batch", "batches that grow by one", growing_batch_workload, false, false},
    {"experts", "a mixture of experts with random token counts", experts_workload, false, false},
    {"paged_kv", "a server that gives each request cache blocks of 16 tokens as it grows",
     paged_kv_workload, false, false},
    {"eval_between", "training that is interrupted by evaluation of larger batches",
     eval_between_workload, false, false},
    {"rmm_random", "random sizes at random times, as RMM's benchmark draws them",
     rmm_random_workload, false, false},
    {"fsdp", "T5: sharded layers gathered on a second stream, the host 4 layers ahead", fsdp, false,
     false},
    {"small_then_large", "T7: 8 blocks of 16 MiB freed, then 4 of 32 MiB",
     small_then_large_workload, false, false},
    {"large_then_small", "T7: 4 blocks of 32 MiB freed, then 8 of 16 MiB",
     large_then_small_workload, false, false},
    {"embedding_records", "T1: the twelve outputs that were each the longest so far",
     embedding_records_workload, false, false},
    {"splinters", "T2: a huge block freed, splintered by small ones, and asked for again",
     splinters_workload, false, false},
    {"used_elsewhere", "T3: a block used on a second stream, freed, and asked for again",
     used_elsewhere_workload, false, false},
    {"stuck_stream", "T4: frees that wait for a stuck stream before frees that need not",
     stuck_stream_workload, false, false},
    {"oversize", "T6: a 576 MB block freed, then 500 blocks of 115 MB kept", oversize_workload,
     false, false},
    {"private_pool", "T8: 60 GiB freed in the common pool, then 70 GiB asked for in a private one",
     private_pool_workload, false, false},
    {"host_powers", "T9: 4 GB, freed, 10 kB, 4 GB", host_powers_workload, false, false},
};

}  // namespace

ArrayRef<Workload> workloads() {
  return {kWorkloads, std::size(kWorkloads)};
}

const Workload* find_workload(std::string_view name) {
  for (const Workload& workload : kWorkloads) {
    if (name == workload.name) return &workload;
  }
  return nullptr;
}

}  // namespace taper
