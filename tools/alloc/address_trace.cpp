// Numbers blocks by the order of their allocations, those that were out before first.
#include "taper/tools/alloc/address_trace.h"

#include <algorithm>
#include <random>

namespace taper::tools {
namespace {

// A value of the address map: the block's number, whether it was out before, how far it is.
constexpr std::uint32_t kOut = 0, kFreed = 1, kCompleted = 2, kState = 3, kBefore = 4;
constexpr std::uint32_t kMostBlocks = (std::uint32_t{1} << 29) - 1;
constexpr std::uint32_t kBeforeBit = std::uint32_t{1} << 31;  // of an event's block, until finish

std::uint32_t block_of(std::uint32_t value) {
  return value >> 3 | (value & kBefore ? kBeforeBit : 0);
}

}  // namespace

AddressMap::AddressMap() : slots_(64), seed_(std::random_device{}()) {}

std::size_t AddressMap::slot_of(std::uint64_t address) const {
  std::uint64_t h = (address ^ seed_) * 0x9e3779b97f4a7c15;
  h = (h ^ h >> 32 ^ seed_ << 32) * 0xd6e8feb86659fd93;
  std::size_t i = (h ^ h >> 32) & (slots_.size() - 1);
  while (slots_[i].used && slots_[i].address != address) i = (i + 1) & (slots_.size() - 1);
  return i;
}

std::uint32_t& AddressMap::at(std::uint64_t address, bool& fresh) {
  Slot* slot = &slots_[slot_of(address)];
  fresh = !slot->used;
  if (fresh) {
    if (++used_ > slots_.size() / 2) {
      std::vector<Slot> old(2 * slots_.size());
      old.swap(slots_);
      for (const Slot& s : old) {
        if (s.used) slots_[slot_of(s.address)] = s;
      }
      slot = &slots_[slot_of(address)];
    }
    *slot = {address, 0, true};
  }
  return slot->value;
}

std::uint16_t AddressTrace::stream_number(std::uint64_t stream) {
  if (stream == last_stream_) return last_number_;
  const auto [it, fresh] =
      streams_.try_emplace(stream, static_cast<std::uint16_t>(trace_.streams.size()));
  if (fresh) {
    if (trace_.streams.size() > 0xffff) input_.refuse("more than 65,536 streams");
    trace_.streams.push_back(stream);
  }
  last_stream_ = stream;
  return last_number_ = it->second;
}

void AddressTrace::add(TraceAction action,
                       const Event& e,
                       std::uint64_t bytes,
                       std::uint32_t block) {
  if (!started_) first_time_ = e.time;
  started_ = true;
  TraceEvent out;
  out.time = e.time > first_time_ ? e.time - first_time_ : 0;
  out.bytes = bytes;
  out.block = block;
  out.site = e.site;
  out.stream = stream_number(e.stream);
  out.action = action;
  trace_.events.push_back(out);
}

std::uint32_t AddressTrace::add_before(const Event& e) {
  const auto n = static_cast<std::uint32_t>(before_.size());
  if (n == kMostBlocks) input_.refuse("too many blocks");
  before_.push_back(e);
  return n << 3 | kBefore;
}

void AddressTrace::alloc(const Event& e) {
  bool fresh = false;
  std::uint32_t& value = blocks_.at(e.address, fresh);
  if (!fresh && (value & kState) == kOut)
    input_.refuse(str("allocates at address ", e.address, ", where a block is out"));
  const std::uint32_t n = trace_.allocations++;
  if (n == kMostBlocks) input_.refuse("too many blocks");
  value = n << 3 | kOut;
  addresses_.push_back(e.address);
  add(TraceAction::kAlloc, e, e.bytes, n);
}

void AddressTrace::free(const Event& e) {
  bool fresh = false;
  std::uint32_t& value = blocks_.at(e.address, fresh);
  if (fresh) value = add_before(e);
  if ((value & kState) != kOut)
    input_.refuse(str("frees address ", e.address, ", where no block is out"));
  value = (value & ~kState) | kFreed;
  add(TraceAction::kFree, e, 0, block_of(value));
}

void AddressTrace::completed(const Event& e) {
  bool fresh = false;
  std::uint32_t& value = blocks_.at(e.address, fresh);
  if (fresh) value = add_before(e);
  if ((value & kState) == kCompleted)
    input_.refuse(str("completes the free of address ", e.address, " twice"));
  const bool new_to_us = (value & kState) == kOut;
  value = (value & ~kState) | kCompleted;
  if (new_to_us) add(TraceAction::kFree, e, 0, block_of(value));
}

void AddressTrace::told(TraceAction action, const Event& e) {
  if (action != TraceAction::kOom) maps_.emplace_back(trace_.events.size(), e.address);
  add(action, e, e.bytes, 0);
}

void AddressTrace::live(const Event& e) {
  bool fresh = false;
  std::uint32_t& value = blocks_.at(e.address, fresh);
  if (fresh) value = add_before(e);
}

// The blocks that were out come first, by address, and their numbers too.
void AddressTrace::put_before_first() {
  const std::size_t n = before_.size();
  std::vector<std::uint32_t> order(n), rank(n);
  for (std::size_t i = 0; i < n; ++i) order[i] = static_cast<std::uint32_t>(i);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return before_[a].address < before_[b].address;
  });
  for (std::size_t i = 0; i < n; ++i) rank[order[i]] = static_cast<std::uint32_t>(i);
  for (TraceEvent& e : trace_.events) {
    if (e.action != TraceAction::kAlloc && e.action != TraceAction::kFree) continue;
    e.block = (e.block & kBeforeBit) != 0 ? rank[e.block & ~kBeforeBit]
                                          : e.block + static_cast<std::uint32_t>(n);
  }
  trace_.events.insert(trace_.events.begin(), n, TraceEvent());
  addresses_.insert(addresses_.begin(), n, 0);
  for (std::size_t i = 0; i < n; ++i) {
    const Event& b = before_[order[i]];
    TraceEvent& e = trace_.events[i];
    e.bytes = b.bytes;
    e.block = static_cast<std::uint32_t>(i);
    e.site = b.site;
    e.stream = stream_number(b.stream);
    addresses_[i] = b.address;
  }
  trace_.allocations += static_cast<std::uint32_t>(n);
  for (auto& [index, address] : maps_) index += n;
}

Trace AddressTrace::finish() {
  if (!before_.empty()) put_before_first();
  std::uint64_t base = UINT64_MAX;
  for (const std::uint64_t a : addresses_) base = std::min(base, a);
  for (const auto& [index, address] : maps_) base = std::min(base, address);
  for (const auto& [index, address] : maps_) {
    const std::uint64_t offset = (address - base) / kBlockBytes;
    trace_.events[index].block =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(offset, UINT32_MAX));
  }
  for (std::uint64_t& a : addresses_) a -= base;
  trace_.offsets = std::move(addresses_);
  return std::move(trace_);
}

}  // namespace taper::tools
