// Compares steps event by event, plans the one that repeats, and follows it.
#include "taper/allocator/step_plan.h"

#include "taper/allocator/block.h"
#include "taper/allocator/plan.h"

namespace taper {

std::uint64_t StepPlan::allocate(std::uint64_t bytes) {
  const std::uint32_t number = number_++;
  ++out_;
  reserve();
  if (replaying_ && cursor_ < plan_.size() && plan_[cursor_] == bytes * 2) {
    ++cursor_;
    planned_out_ += offsets_[number] != kNotPlanned;
    return offsets_[number];
  }
  note(bytes * 2);
  return kNotPlanned;
}

void StepPlan::reserve() {
  const std::size_t events = (replaying_ ? plan_.size() : now_.size() + 1) + out_;
  if (now_.capacity() < events) now_.reserve(2 * events);
}

void StepPlan::free(Name block) {
  --out_;
  note(block.step == step_ ? std::uint64_t{block.number} * 2 + 1 : kFreeOlder);
}

void StepPlan::free_planned(std::uint32_t number) {
  --out_;
  --planned_out_;
  note(std::uint64_t{number} * 2 + 1);
}

void StepPlan::record_stream(Name block) {
  if (block.step != step_) return;
  if (shared_now_.size() <= block.number) shared_now_.resize(block.number + 1);
  shared_now_[block.number] = true;
}

void StepPlan::record_stream_planned() {
  diverge();
}

void StepPlan::note(std::uint64_t event) {
  if (replaying_ && cursor_ < plan_.size() && plan_[cursor_] == event) {
    ++cursor_;
    return;
  }
  diverge();
  now_.push_back(event);
}

void StepPlan::diverge() {
  if (!replaying_) return;
  replaying_ = false;
  now_.assign(plan_.begin(), plan_.begin() + static_cast<std::ptrdiff_t>(cursor_));
}

void StepPlan::forget() {
  replaying_ = false;
  plan_.clear();
  before_.clear();
}

bool StepPlan::end_step() {
  const bool followed = replaying_ && cursor_ == plan_.size();
  if (!followed) diverge();
  ++step_;
  number_ = 0;
  cursor_ = 0;
  if (followed) return false;
  const bool repeats = now_ == before_ && shared_now_ == shared_before_ && now_ != plan_;
  before_.swap(now_);
  shared_before_.swap(shared_now_);
  now_.clear();
  shared_now_.clear();
  const bool due = planned_out_ == 0 && repeats && !before_.empty();
  replaying_ = planned_out_ == 0 && !due && !plan_.empty();  // else planned places are not free
  reserve();
  return due;
}

void StepPlan::make_plan() {
  plan_ = before_;
  offsets_.clear();
  std::vector<Interval> intervals;
  std::vector<std::uint32_t> numbers;  // of the intervals' blocks
  std::vector<Interval> all;
  for (std::uint64_t at = 0; at < plan_.size(); ++at) {
    const std::uint64_t event = plan_[at];
    if (event == kFreeOlder) continue;
    if (event % 2 == 0) all.push_back({at, 0, event / 2});
    else all[event / 2].end = at;
  }
  for (std::uint32_t number = 0; number < all.size(); ++number) {
    const bool shared = number < shared_before_.size() && shared_before_[number];
    if (all[number].end == 0 || shared) continue;
    intervals.push_back(all[number]);
    numbers.push_back(number);
  }
  const MemoryPlan plan = plan_offsets(intervals, kBlockBytes);
  offsets_.assign(all.size(), kNotPlanned);
  for (std::size_t i = 0; i < numbers.size(); ++i) offsets_[numbers[i]] = plan.offsets[i];
  region_bytes_ = plan.bytes;
  replaying_ = plan.bytes != 0;
  if (!replaying_) plan_.clear();
  reserve();
}

}  // namespace taper
