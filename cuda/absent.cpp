// Stands for the whole CUDA column in a build without CUDA.
#include "taper/core/backends.h"
#include "taper/core/kernels.h"
#include "taper/core/storage.h"

namespace taper {
namespace {

[[noreturn]] void fail_absent() {
  fail("this build of Taper has no CUDA; configure with -DTAPER_CUDA=real, or emulated");
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

namespace cuda {

int device_count() {
  return 0;
}

bool is_available() {
  return false;
}

}  // namespace cuda
}  // namespace taper
