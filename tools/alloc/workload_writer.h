// What the generators of traces share: numbers by chance that are the same everywhere, and sites.
#pragma once
#include <map>
#include <string>
#include <utility>

#include "taper/allocator/trace.h"

namespace taper {

constexpr std::uint64_t kKi = std::uint64_t{1} << 10, kMi = kKi << 10, kGi = kMi << 10;

// splitmix64 (Steele, Lea, Flood 2014).
class Chance {
 public:
  explicit Chance(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next();
  std::uint64_t between(std::uint64_t low, std::uint64_t high);  // both included

 private:
  std::uint64_t state_;
};

// Appends to a trace by the op and the scope that ask. The host takes a microsecond for each event.
class WorkloadWriter {
 public:
  explicit WorkloadWriter(const char* name) : builder_(name) {}

  std::uint32_t alloc(std::uint64_t bytes,
                      const char* op,
                      const std::string& scope = "",
                      std::uint16_t stream = 0);
  // From a private pool.
  std::uint32_t alloc_in(std::uint8_t pool, std::uint64_t bytes, const char* op);
  void free(std::uint32_t block);
  void free(const std::vector<std::uint32_t>& blocks);            // in order
  void free_backwards(const std::vector<std::uint32_t>& blocks);  // the last first
  void record_stream(std::uint32_t block, std::uint16_t stream);
  void work(std::uint16_t stream, std::uint64_t nanoseconds);
  void wait(std::uint16_t stream, std::uint16_t for_stream);
  void synchronize();
  void step();
  void streams(std::uint16_t count);
  void host_at(std::uint64_t nanoseconds);  // if it is not later already

  Trace finish();

 private:
  std::uint32_t site(const char* op, const std::string& scope);

  TraceBuilder builder_;
  std::map<std::pair<std::string, std::string>, std::uint32_t> sites_;
};

// Part of the list; workloads() names them all.
Trace embedding_workload();
Trace kv_cat_workload();
Trace pins_workload();
Trace resnet_like_workload();
Trace pangu_like_workload();
Trace growing_batch_workload();
Trace experts_workload();
Trace paged_kv_workload();
Trace eval_between_workload();
Trace rmm_random_workload();
Trace small_then_large_workload();
Trace large_then_small_workload();
Trace embedding_records_workload();
Trace splinters_workload();
Trace used_elsewhere_workload();
Trace stuck_stream_workload();
Trace oversize_workload();
Trace private_pool_workload();
Trace host_powers_workload();

}  // namespace taper
