// Replays traces on simulated devices.
#include "taper/allocator/twin.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include <sched.h>

#include "taper/allocator/out_of_memory.h"
#include "taper/allocator/sim_device.h"
#include "taper/core/base/error.h"

namespace taper {
namespace {

// One run: the device, the allocator over it, and the blocks that are out.
class Twin {
 public:
  Twin(const Trace& trace, const TwinSettings& settings, TwinObserver* observer)
      : trace_(trace), observer_(observer) {
    SimDevice::Settings device;
    device.capacity = settings.capacity;
    device.timing_seed = settings.timing_seed;
    device.fail_at = settings.fail_at;
    auto owned = std::make_unique<SimDevice>(device);
    device_ = owned.get();
    allocator_ = make_allocator(settings.options, std::move(owned));
    out_.resize(trace.allocations);
    for (const TraceEvent& e : trace.events) steps_ += e.action == TraceAction::kStep;
    warmup_ = (steps_ + 3) / 4;
    timed_ = trace.streams.size() > 1;
    result_.placement_hash = 0xCBF29CE484222325u;  // FNV-1a, by words
  }

  // One event. False: out of memory.
  bool perform(std::size_t i) {
    const TraceEvent& e = trace_.events[i];
    if (timed_) device_->advance_host(e.time);
    switch (e.action) {
      case TraceAction::kAlloc:
        if (!allocate(i, e)) return false;
        break;
      case TraceAction::kFree: free(e); break;
      case TraceAction::kRecordStream:
        allocator_->record_stream(out_[e.block].block, e.stream);
        break;
      case TraceAction::kWork: device_->work(e.stream, e.bytes); break;
      case TraceAction::kWait: device_->wait(e.stream, e.block, device_->mark(e.block)); break;
      case TraceAction::kSynchronize: device_->synchronize_all(); break;
      case TraceAction::kEmptyCache: allocator_->empty_cache(); break;
      case TraceAction::kStep: step(); break;
      case TraceAction::kMap:
      case TraceAction::kUnmap:
      case TraceAction::kOom: break;
    }
    ++result_.stopped;
    if (observer_ != nullptr) observer_->after(i, *allocator_);
    return true;
  }

  // The order is the trace's: a thread performs its streams' events when their turn comes.
  void run(int threads) {
    const std::size_t count = trace_.events.size();
    if (threads <= 1) {
      for (std::size_t i = 0; i < count && perform(i);) ++i;
      return;
    }
    std::atomic<std::size_t> turn{0};
    const auto work = [&](int me) {
      for (std::size_t i = 0; i < count; ++i) {
        if (trace_.events[i].stream % threads != me) continue;
        while (turn.load(std::memory_order_acquire) < i) sched_yield();
        if (turn.load(std::memory_order_relaxed) > i) return;  // it ended
        turn.store(perform(i) ? i + 1 : count + 1, std::memory_order_release);
      }
    };
    std::vector<std::thread> workers;
    for (int t = 1; t < threads; ++t) workers.emplace_back(work, t);
    work(0);
    for (std::thread& w : workers) w.join();
  }

  TwinResult finish() {
    result_.finished = result_.stopped == trace_.events.size();
    result_.stats = allocator_->stats();
    result_.steps = steps_;
    const std::uint64_t after = steps_ - std::min(seen_steps_, warmup_);
    if (seen_steps_ >= warmup_)
      result_.mapped_after_warmup = result_.stats.pages_mapped - mapped_at_warmup_;
    result_.maps_per_step =
        after == 0 ? 0
                   : static_cast<double>(result_.mapped_after_warmup) / static_cast<double>(after);
    for (std::size_t s = 0; s < trace_.streams.size(); ++s) {
      result_.device_nanoseconds =
          std::max(result_.device_nanoseconds, device_->stream_time(static_cast<StreamId>(s)));
    }
    return result_;
  }

 private:
  struct Out {
    Block block;
    std::uint64_t requested = 0;
    StreamId stream = 0;
    PoolId pool = 0;
  };

  bool allocate(std::size_t i, const TraceEvent& e) {
    load_ += e.bytes;
    result_.max_load = std::max(result_.max_load, load_);
    if (e.pool != 0) allocator_->begin_pool(pool(e.pool), e.stream);
    Out& out = out_[e.block];
    out.requested = e.bytes;
    out.stream = e.stream;
    try {
      out.block = allocator_->allocate(e.bytes, e.stream);
    } catch (const OutOfMemory& error) {
      result_.failure = error.what();
    }
    if (e.pool != 0) allocator_->end_pool(e.stream);
    if (!result_.failure.empty()) return false;
    if (out.block.data == nullptr) return true;
    const auto offset =
        static_cast<std::uint64_t>(static_cast<char*>(out.block.data) - device_->base());
    for (const std::uint64_t x :
         {static_cast<std::uint64_t>(i), offset, static_cast<std::uint64_t>(out.block.bytes)}) {
      result_.placement_hash = (result_.placement_hash ^ x) * 0x100000001B3u;
    }
    if (observer_ != nullptr) observer_->placed(i, offset, out.block.bytes);
    return true;
  }

  void free(const TraceEvent& e) {
    Out& out = out_[e.block];
    load_ -= out.requested;
    allocator_->free(out.block, out.requested, out.stream);
  }

  void step() {
    allocator_->note_step();
    if (++seen_steps_ == warmup_) mapped_at_warmup_ = allocator_->stats().pages_mapped;
  }

  PoolId pool(std::uint8_t number) {
    while (pools_.size() <= number) pools_.push_back(allocator_->make_pool(false));
    return pools_[number];
  }

  const Trace& trace_;
  TwinObserver* const observer_;
  SimDevice* device_ = nullptr;  // the allocator's
  std::unique_ptr<Allocator> allocator_;
  std::vector<Out> out_;  // by block number
  std::vector<PoolId> pools_{0};
  bool timed_ = false;
  std::uint64_t load_ = 0, steps_ = 0, seen_steps_ = 0, warmup_ = 0, mapped_at_warmup_ = 0;
  TwinResult result_;
};

}  // namespace

double TwinResult::peak_ratio() const {
  return max_load == 0 ? 1
                       : static_cast<double>(stats.reserved_peak) / static_cast<double>(max_load);
}

TwinResult run_twin(const Trace& trace, const TwinSettings& settings, TwinObserver* observer) {
  Twin twin(trace, settings, observer);
  const auto start = std::chrono::steady_clock::now();
  twin.run(settings.threads);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  TwinResult result = twin.finish();
  result.seconds = took.count();
  return result;
}

std::size_t min_capacity(const Trace& trace, const TwinSettings& given) {
  TwinSettings settings = given;
  settings.options.trace_events = 0;  // a refusal is not asked what would have fit
  const TwinResult all = run_twin(trace, settings);
  if (!all.finished) fail(str("the trace does not finish at any capacity: ", all.failure));
  const auto finishes = [&](std::size_t pages) {
    settings.capacity = pages * kPageBytes;
    return run_twin(trace, settings).finished;
  };
  // Pages: `enough` suffices, as far as is known; `little` does not.
  std::size_t enough = (all.stats.reserved_peak + kPageBytes - 1) / kPageBytes;
  std::size_t little = all.max_load / kPageBytes;
  if (little * kPageBytes == all.max_load && little > 0) --little;
  bool tried = false;  // `enough`, on a device of that size
  while (enough - little > 1) {
    const std::size_t middle = little + (enough - little) / 2;
    if (finishes(middle)) {
      enough = middle;
      tried = true;
    } else {
      little = middle;
    }
  }
  // A policy may place otherwise where there is less room, and need more than it took with plenty.
  while (!tried && !finishes(enough)) ++enough;
  return enough * kPageBytes;
}

}  // namespace taper
