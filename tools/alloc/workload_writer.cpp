// Writes traces with names for who asks, and draws numbers that are the same on every machine.
#include "taper/tools/alloc/workload_writer.h"

namespace taper {

std::uint64_t Chance::next() {
  state_ += 0x9e3779b97f4a7c15u;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// The remainder's bias is below 2^-30 for the ranges here.
std::uint64_t Chance::between(std::uint64_t low, std::uint64_t high) {
  return low + next() % (high - low + 1);
}

std::uint32_t WorkloadWriter::site(const char* op, const std::string& scope) {
  const auto next = static_cast<std::uint32_t>(builder_.trace.sites.size());
  const auto [it, added] = sites_.try_emplace({op, scope}, next);
  if (added) builder_.trace.sites.push_back({op, scope, {}});
  return it->second;
}

std::uint32_t WorkloadWriter::alloc(std::uint64_t bytes,
                                    const char* op,
                                    const std::string& scope,
                                    std::uint16_t stream) {
  builder_.now += 1000;
  return builder_.alloc(bytes, stream, site(op, scope));
}

std::uint32_t WorkloadWriter::alloc_in(std::uint8_t pool, std::uint64_t bytes, const char* op) {
  const std::uint32_t block = alloc(bytes, op);
  builder_.trace.events.back().pool = pool;
  return block;
}

void WorkloadWriter::free(std::uint32_t block) {
  builder_.now += 1000;
  builder_.free(block);
}

void WorkloadWriter::free(const std::vector<std::uint32_t>& blocks) {
  for (const std::uint32_t block : blocks) free(block);
}

void WorkloadWriter::free_backwards(const std::vector<std::uint32_t>& blocks) {
  for (std::size_t i = blocks.size(); i-- > 0;) free(blocks[i]);
}

void WorkloadWriter::record_stream(std::uint32_t block, std::uint16_t stream) {
  builder_.record_stream(block, stream);
}

void WorkloadWriter::work(std::uint16_t stream, std::uint64_t nanoseconds) {
  builder_.work(stream, nanoseconds);
}

void WorkloadWriter::wait(std::uint16_t stream, std::uint16_t for_stream) {
  builder_.wait(stream, for_stream);
}

void WorkloadWriter::synchronize() {
  builder_.synchronize();
}

void WorkloadWriter::step() {
  builder_.step();
}

void WorkloadWriter::streams(std::uint16_t count) {
  builder_.trace.streams.clear();
  for (std::uint16_t i = 0; i < count; ++i) builder_.trace.streams.push_back(i);
}

void WorkloadWriter::host_at(std::uint64_t nanoseconds) {
  if (builder_.now < nanoseconds) builder_.now = nanoseconds;
}

Trace WorkloadWriter::finish() {
  builder_.trace.device = "sim";
  return std::move(builder_.trace);
}

}  // namespace taper
