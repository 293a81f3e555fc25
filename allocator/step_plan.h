// Training steps that repeat: learns one, plans where its blocks go, and serves the next from that.
#pragma once
#include <cstdint>
#include <vector>

namespace taper {

// The events of one stream. While a step goes as the plan has it, each block is where the plan put
// it: nothing is searched, split or joined. The first event that differs ends that for the rest of
// the step: blocks that are out stay where they are, and what comes is served in the ordinary way.
// Not thread-safe.
class StepPlan {
 public:
  static constexpr std::uint64_t kNotPlanned = ~std::uint64_t{0};

  // Who an ordinary block is to the plan.
  struct Name {
    std::uint32_t step, number;
  };

  // A request: where its block is, from the region's beginning, or kNotPlanned.
  std::uint64_t allocate(std::uint64_t bytes);

  // The name of the block that allocate was asked for last.
  Name name() const { return {step_, number_ - 1}; }

  void free(Name block);  // of an ordinary block
  void free_planned(std::uint32_t number);
  void record_stream(Name block);  // of an ordinary block: it is never planned
  // A planned block is used on another stream: then this step is served from the plan no more.
  void record_stream_planned();

  // True: two steps in a row were equal; make_plan() is due.
  bool end_step();
  // Plans where the blocks go that live and die within a step, for a region of region_bytes().
  // Throws as plan_offsets.
  void make_plan();

  void pause() { diverge(); }  // the step at hand is served in the ordinary way
  void forget();               // the plan: there is no region for it

  std::uint64_t region_bytes() const { return region_bytes_; }

  std::uint64_t planned_blocks() const { return planned_out_; }  // that are out

  bool is_followed() const { return replaying_; }  // by the step at hand, so far

 private:
  // An allocation is bytes * 2; the free of the step's own block number * 2 + 1; of an older one:
  static constexpr std::uint64_t kFreeOlder = ~std::uint64_t{0};

  void note(std::uint64_t event);
  void diverge();
  void reserve();  // what is out can be freed without memory

  std::vector<std::uint64_t> now_, before_;       // events of this step, and of the one before
  std::vector<bool> shared_now_, shared_before_;  // by number: used on other streams
  std::vector<std::uint64_t> plan_;               // the events that the plan is for
  std::vector<std::uint64_t> offsets_;            // by number, or kNotPlanned
  std::uint64_t region_bytes_ = 0;
  std::size_t cursor_ = 0;  // in plan_
  bool replaying_ = false;
  std::uint32_t step_ = 1, number_ = 0;
  std::uint64_t out_ = 0;  // asked for and not freed; counts requests that were refused, too
  std::uint64_t planned_out_ = 0;
};

}  // namespace taper
