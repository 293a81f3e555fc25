// What the lists and dicts of a PyTorch snapshot mean: frames, blocks, segments, events.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "taper/tools/alloc/address_trace.h"

namespace taper::tools {

enum class PickleKind : std::uint8_t {
  kNone,
  kBool,
  kNumber,     // bits: of 64, signed
  kFraction,   // not kept
  kText,       // bits: its number
  kList,       // still empty
  kDict,       // still empty
  kOther,      // of no use; not kept
  kFrame,      // bits: its number
  kFrames,     // bits: the number of the site
  kEvents,     // one or more events, already in their trace
  kTrace,      // a list of events; bits: its number
  kTraces,     // a list of such lists; bits: how many
  kBlock,      // bits: its number
  kBlocks,     // bits: the number of the range
  kHistory,    // what old snapshots say of a block; bits: its number
  kHistories,  // bits: the number of the first
  kSegment,    // already kept
};

const char* to_string(PickleKind kind);

struct PickleValue {
  static constexpr std::uint32_t kNoMemo = UINT32_MAX;

  PickleKind kind = PickleKind::kNone;
  std::uint32_t memo = kNoMemo;  // where it is remembered
  std::uint64_t bits = 0;
};

// Takes each list and each dict when its items have come, and keeps little: an event goes into its
// trace at once.
class PickleShapes {
 public:
  explicit PickleShapes(TraceInput& input);

  std::uint64_t text(std::string text);  // its number

  // What `pairs` keys and values make of an empty dict. `around` is the list that the dict will be
  // in, if it is known: an event makes a trace of it.
  PickleValue dict(const PickleValue* pairs, std::size_t count, PickleValue* around);

  // What a list becomes by more items.
  PickleValue append(const PickleValue& list, const PickleValue* items, std::size_t count);

  std::vector<Trace> finish();

 private:
  struct Frame {
    std::uint32_t name = 0, file = 0, line = 0;

    friend bool operator==(const Frame&, const Frame&) = default;
  };

  struct Block {
    std::uint64_t address = 0, bytes = 0;
    std::uint32_t site = 0;
    bool live = false, has_address = false;
    std::uint64_t size = 0;  // rounded
  };

  struct Range {
    std::uint32_t first = 0, count = 0;
  };

  struct Segment {
    std::uint64_t address = 0, stream = 0;
    std::uint32_t device = 0;
    Range blocks;
  };

  struct Fields;

  void event(const Fields& f, PickleValue* around);
  PickleValue frame(const Fields& f);
  PickleValue block(const Fields& f);
  PickleValue segment(const Fields& f);
  PickleValue history(const Fields& f);
  PickleValue first_items(const PickleValue* items, std::size_t count);
  PickleValue traces(std::uint64_t before, const PickleValue* items, std::size_t count);
  std::uint32_t site(const PickleValue* frames, std::size_t count);
  AddressTrace& trace_of_device(std::uint32_t device);
  TraceSite describe(std::uint32_t site);
  void number_sites(Trace& trace);

  std::uint64_t hash(const std::uint32_t* words, std::size_t count) const;
  std::uint64_t number(const PickleValue* v, const char* key) const;
  std::uint64_t number_or(const PickleValue* v, const char* key, std::uint64_t otherwise) const;
  std::uint32_t text_number(const PickleValue* v) const;
  std::uint32_t site_of(const PickleValue* v) const;
  [[noreturn]] void refuse(const std::string& problem) const;

  TraceInput& in_;
  std::uint64_t seed_;
  std::map<std::string, std::uint32_t> texts_;
  std::vector<const std::string*> text_;  // by number
  std::vector<Frame> frames_;
  std::unordered_map<std::uint64_t, std::uint32_t> frame_numbers_, site_numbers_;  // by hash
  std::vector<std::uint32_t> site_frames_;
  std::vector<Range> sites_{1};  // of site_frames_
  std::vector<Block> blocks_;
  std::vector<Block> histories_;
  std::vector<Range> ranges_;
  std::vector<Segment> segments_;
  std::vector<std::unique_ptr<AddressTrace>> traces_;
  std::map<std::uint32_t, std::size_t> devices_;  // device -> trace
};

}  // namespace taper::tools
