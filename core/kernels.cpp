// The columns by device, and the names of the slots.
#include "taper/core/kernels.h"

#include "taper/core/backends.h"
#include "taper/core/base/error.h"

namespace taper {
namespace {

// In the order of struct Kernels.
constexpr const char* kSlotNames[] = {
    "copy",
    "fill",
    "arange",
    "add",
    "sub",
    "mul",
    "div",
    "floor_divide",
    "remainder",
    "fmod",
    "pow",
    "maximum",
    "minimum",
    "atan2",
    "neg",
    "abs",
    "sign",
    "square",
    "reciprocal",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "logical_and",
    "logical_or",
    "logical_xor",
    "logical_not",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "bitwise_not",
    "where",
    "clamp",
    "exp",
    "expm1",
    "log",
    "log1p",
    "sqrt",
    "rsqrt",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "erf",
    "floor",
    "ceil",
    "round",
    "trunc",
    "sigmoid",
    "relu",
    "silu",
    "gelu",
    "gelu_tanh",
    "log_sigmoid",
    "leaky_relu",
    "elu",
    "softplus",
    "sigmoid_grad",
    "tanh_grad",
    "relu_grad",
    "silu_grad",
    "gelu_grad",
    "gelu_tanh_grad",
    "log_sigmoid_grad",
    "leaky_relu_grad",
    "elu_grad",
    "softplus_grad",
    "clamp_grad",
    "sum",
    "prod",
    "amax",
    "amin",
    "argmax",
    "argmin",
    "var_mean",
    "cumsum",
    "cumprod",
    "sort",
    "softmax",
    "log_softmax",
    "softmax_grad",
    "log_softmax_grad",
    "attention",
    "attention_grad",
    "lstm",
    "lstm_grad",
    "gru",
    "gru_grad",
    "matmul",
    "gather",
    "scatter",
    "scatter_add",
    "index_select",
    "index_add",
    "index",
    "index_put",
    "count_nonzero",
    "nonzero",
    "first_nonfinite",
    "uniform",
    "normal",
    "bernoulli",
    "randint",
    "layer_norm",
    "layer_norm_grad",
    "conv2d",
    "conv2d_grad_input",
    "conv2d_grad_weight",
    "max_pool2d",
    "max_pool2d_grad",
    "avg_pool2d",
    "avg_pool2d_grad",
    "adam",
    "sgd",
};
static_assert(sizeof(kSlotNames) / sizeof(kSlotNames[0]) == kNumKernels);

// Meta: shapes without bytes. Every kernel does nothing.
struct Nothing {
  template <class... Args> static void call(const Exec&, Args...) {}

  template <class... Args> constexpr operator Kernel<void(const Exec&, Args...)>() const {
    return &call<Args...>;
  }
};

constexpr Nothing kNothing;

}  // namespace

const Kernels& meta_kernels() {  // NOLINT(readability-function-size): a list
  static constexpr Kernels kColumn = {
      .copy = kNothing,
      .fill = kNothing,
      .arange = kNothing,
      .add = kNothing,
      .sub = kNothing,
      .mul = kNothing,
      .div = kNothing,
      .floor_divide = kNothing,
      .remainder = kNothing,
      .fmod = kNothing,
      .pow = kNothing,
      .maximum = kNothing,
      .minimum = kNothing,
      .atan2 = kNothing,
      .neg = kNothing,
      .abs = kNothing,
      .sign = kNothing,
      .square = kNothing,
      .reciprocal = kNothing,
      .eq = kNothing,
      .ne = kNothing,
      .lt = kNothing,
      .le = kNothing,
      .gt = kNothing,
      .ge = kNothing,
      .logical_and = kNothing,
      .logical_or = kNothing,
      .logical_xor = kNothing,
      .logical_not = kNothing,
      .bitwise_and = kNothing,
      .bitwise_or = kNothing,
      .bitwise_xor = kNothing,
      .bitwise_not = kNothing,
      .where = kNothing,
      .clamp = kNothing,
      .exp = kNothing,
      .expm1 = kNothing,
      .log = kNothing,
      .log1p = kNothing,
      .sqrt = kNothing,
      .rsqrt = kNothing,
      .sin = kNothing,
      .cos = kNothing,
      .tan = kNothing,
      .asin = kNothing,
      .acos = kNothing,
      .atan = kNothing,
      .sinh = kNothing,
      .cosh = kNothing,
      .tanh = kNothing,
      .erf = kNothing,
      .floor = kNothing,
      .ceil = kNothing,
      .round = kNothing,
      .trunc = kNothing,
      .sigmoid = kNothing,
      .relu = kNothing,
      .silu = kNothing,
      .gelu = kNothing,
      .gelu_tanh = kNothing,
      .log_sigmoid = kNothing,
      .leaky_relu = kNothing,
      .elu = kNothing,
      .softplus = kNothing,
      .sigmoid_grad = kNothing,
      .tanh_grad = kNothing,
      .relu_grad = kNothing,
      .silu_grad = kNothing,
      .gelu_grad = kNothing,
      .gelu_tanh_grad = kNothing,
      .log_sigmoid_grad = kNothing,
      .leaky_relu_grad = kNothing,
      .elu_grad = kNothing,
      .softplus_grad = kNothing,
      .clamp_grad = kNothing,
      .sum = kNothing,
      .prod = kNothing,
      .amax = kNothing,
      .amin = kNothing,
      .argmax = kNothing,
      .argmin = kNothing,
      .var_mean = kNothing,
      .cumsum = kNothing,
      .cumprod = kNothing,
      .sort = kNothing,
      .softmax = kNothing,
      .log_softmax = kNothing,
      .softmax_grad = kNothing,
      .log_softmax_grad = kNothing,
      .attention = kNothing,
      .attention_grad = kNothing,
      .lstm = kNothing,
      .lstm_grad = kNothing,
      .gru = kNothing,
      .gru_grad = kNothing,
      .matmul = kNothing,
      .gather = kNothing,
      .scatter = kNothing,
      .scatter_add = kNothing,
      .index_select = kNothing,
      .index_add = kNothing,
      .index = kNothing,
      .index_put = kNothing,
      .count_nonzero = kNothing,
      .nonzero = kNothing,
      .first_nonfinite = kNothing,
      .uniform = kNothing,
      .normal = kNothing,
      .bernoulli = kNothing,
      .randint = kNothing,
      .layer_norm = kNothing,
      .layer_norm_grad = kNothing,
      .conv2d = kNothing,
      .conv2d_grad_input = kNothing,
      .conv2d_grad_weight = kNothing,
      .max_pool2d = kNothing,
      .max_pool2d_grad = kNothing,
      .avg_pool2d = kNothing,
      .avg_pool2d_grad = kNothing,
      .adam = kNothing,
      .sgd = kNothing,
  };
  return kColumn;
}

const char* version() {
  return "0.1.0";
}

const Kernels& kernels_for(Device device) {
  if (device.is_cpu()) return cpu_kernels();
  return device.is_meta() ? meta_kernels() : cuda_kernels();
}

int slot_number(const void* slot) {
  const auto* at = static_cast<const void* const*>(slot);
  for (const Kernels* column : {&cpu_kernels(), &meta_kernels()}) {
    const auto* first = reinterpret_cast<const void* const*>(column);
    if (at >= first && at < first + kNumKernels) return static_cast<int>(at - first);
  }
  return static_cast<int>(at - reinterpret_cast<const void* const*>(&cuda_kernels()));
}

const char* slot_name(const void* slot) {
  return kSlotNames[slot_number(slot)];
}

void fail_unsupported(const char* slot) {
  fail(str("the kernel '", slot,
           "' does not exist on this device yet; move the tensors to the cpu"));
}

}  // namespace taper
