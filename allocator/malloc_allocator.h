// The C library's malloc behind our interface.
#pragma once
#include <memory>

#include "taper/allocator/allocator.h"
#include "taper/allocator/memory_device.h"

namespace taper {

// Serves the host only; `device` says how much there is. Without maps and events.
std::unique_ptr<Allocator> make_malloc_allocator(const AllocatorOptions& options,
                                                 std::unique_ptr<MemoryDevice> device);

}  // namespace taper
