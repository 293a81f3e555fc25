// The traces of users' reports on PyTorch's allocator, with their sizes.
#include "taper/tools/alloc/workload_writer.h"
#include "taper/tools/alloc/workloads.h"

namespace taper {
namespace {

std::vector<std::uint32_t> many(WorkloadWriter& t, int count, std::uint64_t bytes, const char* op) {
  std::vector<std::uint32_t> blocks;
  for (int i = 0; i < count; ++i) blocks.push_back(t.alloc(bytes, op));
  return blocks;
}

}  // namespace

Trace small_then_large_workload() {
  WorkloadWriter t("small_then_large");
  t.free(many(t, 8, 16 * kMi, "small"));
  t.step();
  t.free(many(t, 4, 32 * kMi, "large"));
  t.step();
  return t.finish();
}

Trace large_then_small_workload() {
  WorkloadWriter t("large_then_small");
  t.free(many(t, 4, 32 * kMi, "large"));
  t.step();
  t.free(many(t, 8, 16 * kMi, "small"));
  t.step();
  return t.finish();
}

// pytorch#122781: 1024 sequences through an embedding of 256 numbers, 1 MiB for each
// unit of length. The lengths
// are those at which the report's historical maximum rose.
Trace embedding_records_workload() {
  WorkloadWriter t("embedding_records");
  for (const std::uint32_t length :
       {484u, 691u, 805u, 869u, 896u, 925u, 1004u, 1008u, 1017u, 1020u, 1022u, 1023u}) {
    t.free(t.alloc(kMi * length, "embedding", "embedding"));
    t.step();
  }
  return t.finish();
}

// pytorch#35901: every second of the small blocks stays.
Trace splinters_workload() {
  WorkloadWriter t("splinters");
  constexpr std::uint64_t kHuge = 11'643'387'904;
  t.free(t.alloc(kHuge, "huge"));
  t.step();
  std::vector<std::uint32_t> kept, gone;
  for (int i = 0; i < 30; ++i) {
    gone.push_back(t.alloc(16'515'072, "splinter"));
    kept.push_back(t.alloc(16'515'072, "kept"));
    gone.push_back(t.alloc(11'400'192, "splinter"));
    kept.push_back(t.alloc(18'191'360, "kept"));
  }
  t.free(gone);
  t.step();
  t.free(t.alloc(kHuge, "huge"));
  t.free(kept);
  t.step();
  return t.finish();
}

// pytorch#189504: on a device of 10 GiB, only waiting for stream 1 makes room.
Trace used_elsewhere_workload() {
  WorkloadWriter t("used_elsewhere");
  t.streams(2);
  const std::uint32_t first = t.alloc(6 * kGi, "first");
  t.work(0, 1'000'000);
  t.wait(1, 0);
  t.work(1, 50'000'000);
  t.record_stream(first, 1);
  t.free(first);
  t.free(t.alloc(6 * kGi, "second"));
  t.synchronize();
  t.step();
  return t.finish();
}

// pytorch#71616: stream 1 is busy for ten seconds; the frees that wait for stream 2 come after
// those that wait for it.
Trace stuck_stream_workload() {
  WorkloadWriter t("stuck_stream");
  t.streams(3);
  const std::vector<std::uint32_t> stuck = many(t, 2, kGi, "stuck");
  std::vector<std::uint32_t> quick = many(t, 8, kGi, "quick");
  t.work(1, 10'000'000'000);
  t.work(2, 1'000'000);
  for (const std::uint32_t block : stuck) t.record_stream(block, 1);
  for (const std::uint32_t block : quick) t.record_stream(block, 2);
  t.free(stuck);
  t.free(quick);
  t.host_at(100'000'000);  // stream 2 is done, stream 1 is not
  quick = many(t, 8, kGi, "again");
  t.free(quick);
  t.synchronize();
  t.step();
  return t.finish();
}

// pytorch#147168 and others. Nominally a gather takes 2 ms and a layer's work 3 ms.
Trace fsdp_workload(std::uint32_t layers, std::uint64_t layer_bytes, std::uint32_t ahead) {
  WorkloadWriter t("fsdp");
  t.streams(2);
  constexpr std::uint64_t kGather = 2'000'000, kCompute = 3'000'000;
  std::uint64_t gathered = 0;
  std::vector<std::uint64_t> computed;  // when each layer so far is done
  for (int step = 0; step < 4; ++step) {
    for (std::uint32_t i = 0; i < 2 * layers; ++i) {
      const std::uint32_t layer = i < layers ? i : 2 * layers - 1 - i;
      const std::uint64_t host = computed.size() >= ahead ? computed[computed.size() - ahead] : 0;
      t.host_at(host);
      const std::uint32_t block =
          t.alloc(layer_bytes, "all_gather", "layer." + std::to_string(layer), 1);
      t.work(1, kGather);
      t.wait(0, 1);
      t.record_stream(block, 0);
      t.work(0, kCompute);
      t.free(block);
      gathered = (gathered > host ? gathered : host) + kGather;
      const std::uint64_t idle = computed.empty() ? 0 : computed.back();
      computed.push_back((idle > gathered ? idle : gathered) + kCompute);
    }
    t.step();
  }
  t.synchronize();
  return t.finish();
}

// pytorch#123548.
Trace oversize_workload() {
  WorkloadWriter t("oversize");
  t.free(t.alloc(576'000'000, "large"));
  t.step();
  many(t, 500, 115'200'000, "kept");
  t.step();
  return t.finish();
}

// pytorch#159674, on a device of 80 GiB.
Trace private_pool_workload() {
  WorkloadWriter t("private_pool");
  t.free(t.alloc(60 * kGi, "eager"));
  t.step();
  t.free(t.alloc_in(1, 70 * kGi, "captured"));
  t.step();
  return t.finish();
}

// pytorch#95827: about a cache of host memory that rounds to powers of two.
Trace host_powers_workload() {
  WorkloadWriter t("host_powers");
  t.free(t.alloc(4'000'000'000, "pin_memory"));
  const std::uint32_t small = t.alloc(10'000, "pin_memory");
  t.step();
  t.free(t.alloc(4'000'000'000, "pin_memory"));
  t.free(small);
  t.step();
  return t.finish();
}

}  // namespace taper
