// Where entries live: slabs owned by the process, so that a debugger can walk them all without the
// heap's help.
#pragma once
#include "taper/autograd/tape.h"

namespace taper {

struct Place {
  union {
    Entry entry;
    Place* next_free;
  };
  bool live = false;  // an entry lives here, and is not about to die

  Place() : next_free(nullptr) {}
  ~Place() {}

  static Place* of(Entry* entry) { return reinterpret_cast<Place*>(entry); }
};

inline constexpr std::size_t kSlabEntries = 64;

struct Slab {
  Slab* next = nullptr;
  Place places[kSlabEntries];
};

extern Slab* newest_slab;
extern std::atomic<std::uint64_t> next_index;  // of the next node

}  // namespace taper
