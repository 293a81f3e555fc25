// What a debugger reads: one plain struct, found by its name, that says where everything lies. It
// needs no debug information of Taper's and calls nothing, so that core dumps tell as much.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace taper {

class Tensor;
struct DTypeInfo;
struct Entry;
struct Slab;
namespace lens {
struct Cut;
}

// A Backward, of this or another thread. The newest is the first of the list.
struct DebugPass {
  DebugPass();
  ~DebugPass();
  DebugPass(const DebugPass&) = delete;
  DebugPass& operator=(const DebugPass&) = delete;

  DebugPass* next = nullptr;
  std::int64_t thread = 0;        // that made it, as the kernel numbers them: gdb's LWP
  const Entry* entry = nullptr;   // whose rule runs now, or null
  const Tensor* grads = nullptr;  // that came to the entry's outputs
  std::uint64_t num_grads = 0;
  std::uint64_t position = 0;   // nodes that have run
  std::uint64_t seeking = 0;    // 1 while nodes run again on the way to another place
  std::uint64_t remembers = 0;  // 1: the pass can go back, as far as `first`
  std::uint64_t first = 0;
};

// Where a member lies: "Node.index", 16, 8. A name without a dot is a type, which has no place but
// a size. Of a list there are two, "Entry.inputs.data" and "Entry.inputs.size".
struct DebugField {
  const char* name = "";
  std::uint32_t offset = 0;
  std::uint32_t bytes = 0;
};

// Version 1. A later version only appends; another layout gets another name. Of what is not listed
// in `fields`, only the places of `fields` and `num_fields` themselves may be relied upon.
struct DebugRoot {
  char magic[8];
  std::uint32_t version;
  std::uint32_t bytes;  // of this struct
  const DebugField* fields;
  std::uint64_t num_fields;
  DebugPass* passes;
  // Written by a debugger, obeyed between two nodes of Backward::finish().
  std::uint32_t attention;  // not 0: look at what follows
  std::uint32_t remember;   // not 0: passes remember their way from now on
  std::int64_t seek_to;     // of the pass that looks first; -1: stay
  // By number.
  const DTypeInfo* dtypes;
  std::uint64_t num_dtypes;
  const char* const* devices;  // types of them
  std::uint64_t num_devices;
  // Where the roots of what changes stand: the entries alive, the next index, the names of scopes.
  Slab* const* slabs;
  const std::atomic<std::uint64_t>* next_index;
  const std::vector<const std::string*>* const* scopes;
  // Where paths of gradients ended: the one of number i stands at i % num_cuts.
  const lens::Cut* const* cuts;
  std::uint64_t num_cuts;
};

extern "C" DebugRoot taper_debug_v1;

}  // namespace taper
