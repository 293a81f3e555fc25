// What a debugger reads: one plain struct, found by its name, that says where everything lies. It
// needs no debug information of Taper's and calls nothing, so that core dumps tell as much.
#pragma once
#include <cstdint>

namespace taper {

class Tensor;
struct Entry;

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

// Version 1. A later version only appends; another layout gets another name.
struct DebugRoot {
  char magic[8];
  std::uint32_t version;
  std::uint32_t bytes;  // of this struct
  DebugPass* passes;
  // Written by a debugger, obeyed between two nodes of Backward::finish().
  std::uint32_t attention;  // not 0: look at what follows
  std::uint32_t remember;   // not 0: passes remember their way from now on
  std::int64_t seek_to;     // of the pass that looks first; -1: stay
};

extern "C" DebugRoot taper_debug_v1;

}  // namespace taper
