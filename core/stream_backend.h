// What core/stream.cpp asks of CUDA: defined in cuda/stream.cpp, or absent.cpp.
#pragma once

#include "taper/core/stream.h"

namespace taper::cuda {

StreamId make_stream(int device, int priority = 0);
void check_stream(const Stream& stream);  // throws if there is no such device or stream
void synchronize(const Stream& stream);
bool is_done(const Stream& stream);

// Whether the memory is the host's, pinned or not.
bool lies_on_host(const void* data);

// Events are the device's own; `event` was made on `device`.
void* make_event(Device device, bool with_timing);
void destroy_event(Device device, void* event) noexcept;
void record(void* event, const Stream& stream);
void wait(const Stream& stream, void* event);
void synchronize(Device device, void* event);
bool is_done(Device device, void* event);
double milliseconds_between(Device device, void* earlier, void* later);

}  // namespace taper::cuda
