// What users ask of a device's memory: how much, where, what happened; and what they may tell it.
#pragma once
#include <string>

#include "taper/allocator/allocator.h"
#include "taper/allocator/out_of_memory.h"
#include "taper/core/base/device.h"

namespace taper::memory {

// Each throws taper::Error where this build or machine has no such device.

AllocatorStats stats(Device device = kCPU);
void reset_peak_stats(Device device = kCPU);  // the peaks begin anew at what is now
// Gives whole free pages back to the device. What live tensors share pages with stays: summary()
// counts it as inactive_split. Seldom of use: the allocator moves free pages before it fails.
void empty_cache(Device device = kCPU);

std::string summary(Device device = kCPU);  // the statistics as a table
std::string map(Device device = kCPU);      // one character a page, see docs/allocator.md

// The map and the latest events of all devices that have allocated, for `taper alloc` (any other
// name), as JSON (.json), or for PyTorch's memory_viz page (.pickle). Throws if the file cannot be
// written.
void snapshot(const std::string& path);

// A training step ends here. Optimizers say so by themselves in step().
void end_step(Device device);

}  // namespace taper::memory

extern "C" {
// The CPU's page map for a debugger: `call taper_mem_map()` prints it. Takes no lock and allocates
// nothing; the text lives until the next call.
const char* taper_mem_map();
}
