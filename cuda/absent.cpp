// Stands for the whole CUDA column in a build without CUDA.
#include "taper/core/backends.h"
#include "taper/core/cuda_graph.h"
#include "taper/core/kernels.h"
#include "taper/core/nvtx.h"
#include "taper/core/storage.h"
#include "taper/core/stream_backend.h"

namespace taper {
namespace {

[[noreturn]] void fail_absent() {
  fail(cuda::why_no_device());
}

}  // namespace

const Kernels& cuda_kernels() {
  fail_absent();
}

Allocator& cuda_allocator(int);  // declared where core asks for it

Allocator& cuda_allocator(int) {
  fail_absent();
}

Allocator& pinned_allocator() {
  fail_absent();
}

namespace lens {

NvtxRanges::NvtxRanges() : installed_(false) {
  fail_absent();
}

NvtxRanges::~NvtxRanges() = default;

void NvtxRanges::before(const KernelCall&) {}

void NvtxRanges::after(const KernelCall&) {}

}  // namespace lens

namespace cuda {

int device_count() {
  return 0;
}

bool is_available() {
  return false;
}

std::string why_no_device() {
  return "this build of Taper has no CUDA; configure with -DTAPER_CUDA=on, or emulated";
}

DeviceGuard::DeviceGuard(int, SourceLoc loc) : exceptions_(0) {
  const Call call(loc);
  fail_absent();
}

DeviceGuard::DeviceGuard(int, std::nothrow_t) noexcept : exceptions_(0) {}

DeviceGuard::~DeviceGuard() noexcept(false) = default;

void synchronize(int, SourceLoc loc) {
  const Call call(loc);
  fail_absent();
}

MemoryInfo memory_info(int, SourceLoc loc) {
  const Call call(loc);
  fail_absent();
}

StreamId make_stream(int, int) {
  fail_absent();
}

void check_stream(const Stream&) {
  fail_absent();
}

bool lies_on_host(const void*) {
  return true;
}

void synchronize(const Stream&) {
  fail_absent();
}

bool is_done(const Stream&) {
  fail_absent();
}

void* make_event(Device, bool) {
  fail_absent();
}

void destroy_event(Device, void*) noexcept {}

void record(void*, const Stream&) {
  fail_absent();
}

void wait(const Stream&, void*) {
  fail_absent();
}

void synchronize(Device, void*) {
  fail_absent();
}

bool is_done(Device, void*) {
  fail_absent();
}

double milliseconds_between(Device, void*, void*) {
  fail_absent();
}

CUDAGraph::CUDAGraph() : state_(nullptr) {}

CUDAGraph::~CUDAGraph() = default;

void CUDAGraph::capture_begin(Device, SourceLoc loc) {
  const Call call(loc);
  fail_absent();
}

void CUDAGraph::capture_end(SourceLoc loc) {
  capture_begin(kCUDA, loc);
}

void CUDAGraph::replay(SourceLoc loc) {
  capture_begin(kCUDA, loc);
}

void CUDAGraph::reset(SourceLoc) {}

PoolId CUDAGraph::pool() const {
  return 0;
}

}  // namespace cuda

bool is_current_stream_capturing(Device) {
  return false;
}

MovedCount moved_since_capture(Device, const std::shared_ptr<ReplayCount>&) {
  return {};
}

}  // namespace taper
