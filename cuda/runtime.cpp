// The current device, and what is asked of whole devices.
#include "taper/cuda/runtime.h"

#include <exception>

#include "taper/cuda/check.h"
#include "taper/cuda/graph.h"
#include "taper/cuda/trail.h"

namespace taper::cuda {
namespace {

std::string version_text(int version) {  // "13.0" of 13000
  return str(version / 1000, ".", version % 1000 / 10);
}

}  // namespace

DeviceGuard::DeviceGuard(int device, SourceLoc loc) : exceptions_(std::uncaught_exceptions()) {
  const Call call(loc);
  check_device(device);
  TAPER_CUDA_CHECK(cudaGetDevice(&before_));
  if (before_ != device) {
    TAPER_CUDA_CHECK(cudaSetDevice(device));
    changed_ = true;
  }
  set_ = true;
}

DeviceGuard::DeviceGuard(int device, std::nothrow_t) noexcept : throws_(false), exceptions_(0) {
  set_ = cudaGetDevice(&before_) == cudaSuccess;
  if (set_ && before_ != device) set_ = changed_ = cudaSetDevice(device) == cudaSuccess;
  if (!set_) static_cast<void>(cudaGetLastError());
}

// Work meant for the device before would go to this one, unseen: so this throws, unless an error is
// on its way already.
DeviceGuard::~DeviceGuard() noexcept(false) {
  if (!changed_) return;
  const cudaError_t status = cudaSetDevice(before_);
  if (status == cudaSuccess || !throws_ || std::uncaught_exceptions() != exceptions_) return;
  throw_cuda_error(status, "cudaSetDevice");
}

int device_count() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  static_cast<void>(cudaGetLastError());
  return 0;
}

int checked_device_count() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess) return count;
  if (status != cudaErrorNoDevice) throw_cuda_error(status, "cudaGetDeviceCount");
  static_cast<void>(cudaGetLastError());
  return 0;
}

std::string why_no_device() {
  int count = 0, driver = 0, runtime = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return "";
  static_cast<void>(cudaGetLastError());
  const bool known = cudaDriverGetVersion(&driver) == cudaSuccess &&
                     cudaRuntimeGetVersion(&runtime) == cudaSuccess;
  if (known && driver == 0) return "there is no NVIDIA driver here";
  if (known && status == cudaErrorInsufficientDriver) {
    return str("the driver supports CUDA ", version_text(driver), " and this build needs ",
               version_text(runtime), ": update the driver");
  }
  if (status == cudaErrorNoDevice) return "there is an NVIDIA driver here and no GPU";
  return cudaGetErrorString(status);
}

void fail_no_device(int index) {
  const std::string why = why_no_device();
  fail(str("there is no device cuda:", index, "; this machine has ", device_count(),
           why.empty() ? "" : ": ", why));
}

bool is_available() {
#ifdef TAPER_CUDA_EMULATED
  return false;
#else
  return device_count() > 0;
#endif
}

void synchronize(int device, SourceLoc loc) {
  const Call call(loc);
  check_device(device);
  check_host_may_wait(device);
  const DeviceGuard guard(device);
  const std::uint64_t launches = launches_noted(device);
  TAPER_CUDA_CHECK(cudaDeviceSynchronize());
  note_success(device, launches);
  if (auto* o = observer()) o->reached(Device(kCUDA, device));
}

MemoryInfo memory_info(int device, SourceLoc loc) {
  const Call call(loc);
  check_device(device);
  const DeviceGuard guard(device);
  MemoryInfo info;
  TAPER_CUDA_CHECK(cudaMemGetInfo(&info.free, &info.total));
  return info;
}

}  // namespace taper::cuda
