// What memory looks like and what happened to it, on every device: taken at once, written to files.
#pragma once
#include <string>
#include <vector>

#include "taper/allocator/allocator.h"
#include "taper/allocator/trace.h"
#include "taper/core/base/array_ref.h"

namespace taper {

// One device. Sites of blocks are indices into trace.sites.
struct DeviceSnapshot {
  std::string device;      // "cuda:0"
  std::uint64_t base = 0;  // the address that offsets count from
  std::vector<SegmentInfo> segments;
  Trace trace;
};

struct Snapshot {
  std::string options;  // as TAPER_ALLOC spells them
  std::vector<DeviceSnapshot> devices;
};

// The events are read after the map: what other threads allocate in between is in the events alone.
Snapshot take_snapshot(ArrayRef<const Allocator*> allocators);

const char* to_string(TraceAction action);  // "alloc", "record_stream"

// All writers replace the file or leave it as it was. They throw taper::Error that names the file
// when the disk refuses, or when a trace has a fault (first_fault).

// For PyTorch's viewers: what `torch.cuda.memory._dump_snapshot` writes, by a subset of pickle's
// opcodes that memory_viz reads. Device i is cuda:i there. Left out: other actions than
// allocations, frees, maps and out-of-memory; allocations of 0 bytes; pools and tape entries of
// events; names of devices; parts of microseconds. Text that is not UTF-8 is mended. The viewer
// fails on maps that contradict the segments and on blocks in no segment: those maps are left out,
// these blocks get a segment of their own, and a block that overlaps another is left out. A device
// without segments, or whose trace has no offsets, gets one segment that holds what the trace says.
void write_pickle(const Snapshot& snapshot, const std::string& path);

// Everything, by name; docs at the writer. Text that is not UTF-8 is mended.
void write_json(const Snapshot& snapshot, const std::string& path);

// The traces alone, without loss, in a few bytes an event; the layout is in snapshot_binary.h.
void write_binary(const Snapshot& snapshot, const std::string& path);

// By the name's end: .pickle, .json, or else binary.
void write_snapshot(const Snapshot& snapshot, const std::string& path);

}  // namespace taper
