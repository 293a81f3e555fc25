// PyTorch's CUDACachingAllocator by its published rules: what Taper's own policy is measured
// against.
#pragma once
#include <memory>

#include "taper/allocator/allocator.h"

namespace taper {

// Native or expandable segments, as `options.policy` says. Its private pools are all kept until
// release_pool, and while a stream fills one nothing is given back; empty_cache then does nothing.
// Throws taper::Error for options that PyTorch refuses.
std::unique_ptr<Allocator> make_torch_allocator(const AllocatorOptions& options,
                                                std::unique_ptr<MemoryDevice> device);

// A request's bytes as PyTorch rounds them; `power2_divisions` is a power of two, or 0.
std::size_t torch_rounded(std::size_t bytes, std::size_t power2_divisions);
// What the native policy asks of the device when a request of that rounded size finds no block.
std::size_t torch_segment_bytes(std::size_t rounded);

}  // namespace taper
