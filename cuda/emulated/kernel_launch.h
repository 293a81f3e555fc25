// A kernel with its arguments, and the call that puts one on a stream.
#pragma once

#include <cstddef>
#include <memory>
#include <tuple>
#include <utility>

namespace taper::emulated {

class KernelLaunch {
 public:
  virtual ~KernelLaunch() = default;
  virtual void run_thread() const = 0;
};

template <class... Params> class TypedLaunch final : public KernelLaunch {
 public:
  template <class... Args>
  explicit TypedLaunch(void (*kernel)(Params...), Args&&... args)
      : kernel_(kernel), args_(std::forward<Args>(args)...) {}

  void run_thread() const override { std::apply(kernel_, args_); }

 private:
  void (*kernel_)(Params...);
  std::tuple<Params...> args_;  // copied at the launch, as CUDA does
};

cudaError_t put_on_stream(dim3 grid,
                          dim3 block,
                          size_t shared_bytes,
                          cudaStream_t stream,
                          const void* kernel,
                          std::unique_ptr<const KernelLaunch> call);

template <class... Params, class... Args>
cudaError_t launch(dim3 grid,
                   dim3 block,
                   size_t shared_bytes,
                   cudaStream_t stream,
                   void (*kernel)(Params...),
                   Args&&... args) {
  return put_on_stream(
      grid, block, shared_bytes, stream, reinterpret_cast<const void*>(kernel),
      std::make_unique<TypedLaunch<Params...>>(kernel, std::forward<Args>(args)...));
}

// The bytes that the launch asked for, the same for all threads of a block. Filled with ones (NaN,
// -1) before each block: what a kernel did not write shows.
void* dynamic_shared();

cudaError_t set_max_dynamic_shared(const void* kernel, int bytes);

}  // namespace taper::emulated

template <class... Params>
cudaError_t cudaFuncSetAttribute(void (*kernel)(Params...), cudaFuncAttribute, int value) {
  return taper::emulated::set_max_dynamic_shared(reinterpret_cast<const void*>(kernel), value);
}
