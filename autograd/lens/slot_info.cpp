// The tables of the Lens: floating operations of each kernel, and the limits of ops and gradients.
#include "taper/autograd/lens/slot_info.h"

#include <cstring>

namespace taper::lens {
namespace {

struct Limit {
  const char* name;
  const char* text;
};

constexpr Limit kKernelLimits[] = {
    {"acos", "acos x is nan where |x| > 1"},
    {"adam", "a step of Adam overflows where lr * m / (sqrt(v) + eps) does"},
    {"add", "a + b overflows; inf + -inf is nan"},
    {"asin", "asin x is nan where |x| > 1"},
    {"atan2", "atan2 is nan only where an operand is"},
    {"attention", "a row with a score of inf, or of -inf alone, has no softmax: nan"},
    {"attention_grad", "a weight or gradient overflows; 0 * inf is nan"},
    {"copy", "the number is beyond the largest of the dtype that it is copied to"},
    {"cosh", "cosh x overflows f32 where |x| > 89.4"},
    {"cumprod", "the product overflows; 0 * inf is nan"},
    {"cumsum", "the sum overflows; inf + -inf is nan"},
    {"div", "a / 0 is infinite; 0 / 0 and inf / inf are nan"},
    {"exp", "exp x overflows f32 where x > 88.7, f16 where x > 11.09"},
    {"expm1", "exp x - 1 overflows f32 where x > 88.7, f16 where x > 11.09"},
    {"fill", "it was asked to write this number"},
    {"fmod", "fmod(a, 0) is nan"},
    {"floor_divide", "floor(a / 0) is infinite, or nan where a = 0"},
    {"gru", "a sum of a gate is inf or nan"},
    {"gru_grad", "a gradient overflows; 0 * inf is nan"},
    {"layer_norm", "the row overflows when it is squared, or its variance plus eps is 0"},
    {"log", "log x is -inf at x = 0, nan below"},
    {"log1p", "log(1 + x) is -inf at x = -1, nan below"},
    {"log_softmax", "a row with inf, or of -inf alone, has no softmax: nan"},
    {"lstm", "a sum of a gate, or the cell, is inf or nan"},
    {"lstm_grad", "a gradient overflows; 0 * inf is nan"},
    {"matmul", "a product or sum overflows; 0 * inf and inf + -inf are nan"},
    {"mul", "a * b overflows; 0 * inf is nan"},
    {"pow", "0 to a negative power is infinite, a negative number to a fraction nan"},
    {"prod", "the product overflows; 0 * inf is nan"},
    {"reciprocal", "1 / x is infinite at x = 0"},
    {"remainder", "the remainder of a division by 0 is nan"},
    {"rsqrt", "1 / sqrt x is infinite at x = 0, nan below"},
    {"sgd", "the step overflows"},
    {"sinh", "sinh x overflows f32 where |x| > 89.4"},
    {"softmax", "a row with inf, or of -inf alone, has no softmax: nan"},
    {"sqrt", "sqrt x is nan where x < 0"},
    {"square", "x * x overflows: in f32 beyond 1.8e19, in f16 beyond 255"},
    {"sub", "a - b overflows; inf - inf is nan"},
    {"sum", "the sum overflows; inf + -inf is nan"},
    {"tan", "tan x grows without bound towards pi / 2"},
    {"var_mean", "the squares overflow; of one element less the correction, 0 / 0 is nan"},
    {"where", "the chosen side holds this number"},
};

constexpr Limit kGradientLimits[] = {
    {"acos", "dx = -g / sqrt(1 - x^2) is infinite at |x| = 1"},
    {"asin", "dx = g / sqrt(1 - x^2) is infinite at |x| = 1"},
    {"atan2", "d = g / (a^2 + b^2) is nan at a = b = 0"},
    {"batch_norm", "dx has 1 / sqrt(var + eps), infinite at var = eps = 0"},
    {"binary_cross_entropy", "dx = g (x - y) / (x (1 - x)) is infinite at x = 0 and x = 1"},
    {"cumprod", "dx has y / x, nan at x = 0"},
    {"div", "da = g / b, db = -g a / b^2: infinite at b = 0, or nan where g = 0"},
    {"exp", "dx = g exp x overflows with exp x; 0 * inf is nan"},
    {"layer_norm", "dx has 1 / sqrt(var + eps), infinite at var = eps = 0"},
    {"log", "dx = g / x is infinite at x = 0, or nan where g = 0"},
    {"log1p", "dx = g / (1 + x) is infinite at x = -1, or nan where g = 0"},
    {"logsumexp", "dx = g exp(x - y) is nan where all of a row is -inf"},
    {"matmul", "da = g b', db = a' g: 0 * inf is nan where an operand holds inf"},
    {"mul", "da = g b, db = g a: 0 * inf is nan where the other operand is inf"},
    {"norm", "dx = g x / |x| is nan at x = 0"},
    {"pow", "dx = g p x^(p - 1) is infinite at x = 0 where p < 1; dp = g y log x at x <= 0"},
    {"prod", "dx has y / x, nan at x = 0"},
    {"reciprocal", "dx = -g / x^2 is infinite at x = 0"},
    {"rsqrt", "dx = -g x^(-3/2) / 2 is infinite at x = 0"},
    {"scaled_dot_product_attention",
     "weights of a row with a score of inf, or of -inf alone, are nan"},
    {"sqrt", "dx = g / (2 sqrt x) is infinite at x = 0, or nan where g = 0"},
    {"square", "dx = 2 g x overflows"},
    {"std", "dx = g (x - mean) / ((n - 1) std) is nan where std = 0"},
    {"tan", "dx = g (1 + tan^2 x) overflows towards pi / 2"},
};

template <std::size_t N> const char* text_of(const Limit (&limits)[N], const char* name) {
  for (const Limit& limit : limits) {
    if (std::strcmp(limit.name, name) == 0) return limit.text;
  }
  return "";
}

// Floating operations for each element of the first output, or of the first operand. What is not
// here moves, makes or compares: none. Elementwise kernels count 1, however hard the function.
struct Work {
  const char* name;
  double per_output, per_operand;
};

constexpr Work kWork[] = {
    {"sum", 0, 1},
    {"prod", 0, 1},
    {"amax", 0, 1},
    {"amin", 0, 1},
    {"argmax", 0, 1},
    {"argmin", 0, 1},
    {"var_mean", 0, 4},
    {"cumsum", 1, 0},
    {"cumprod", 1, 0},
    {"softmax", 5, 0},
    {"log_softmax", 5, 0},
    {"softmax_grad", 4, 0},
    {"avg_pool2d", 0, 1},
    {"avg_pool2d_grad", 1, 0},
    {"log_softmax_grad", 4, 0},
    {"gru", 3, 0},  // of its gates
    {"gru_grad", 5, 0},
    {"layer_norm", 8, 0},
    {"layer_norm_grad", 14, 0},
    {"lstm", 2.5, 0},  // of its gates
    {"lstm_grad", 5, 0},
    {"max_pool2d", 0, 1},
};

struct Costs {
  Work of[kNumKernels] = {};
  int matmul, attention, attention_grad, conv2d, conv2d_grad_input, conv2d_grad_weight, adam, sgd,
      scatter_add, index_add;
  int first_elementwise, last_elementwise, copy;

  Costs() {
    const Kernels& k = cpu_kernels();
    matmul = slot_number(&k.matmul);
    attention = slot_number(&k.attention);
    attention_grad = slot_number(&k.attention_grad);
    conv2d = slot_number(&k.conv2d);
    conv2d_grad_input = slot_number(&k.conv2d_grad_input);
    conv2d_grad_weight = slot_number(&k.conv2d_grad_weight);
    adam = slot_number(&k.adam);
    sgd = slot_number(&k.sgd);
    scatter_add = slot_number(&k.scatter_add);
    index_add = slot_number(&k.index_add);
    first_elementwise = slot_number(&k.add);
    last_elementwise = slot_number(&k.clamp_grad);
    copy = slot_number(&k.copy);
    const auto* slots = reinterpret_cast<const void* const*>(&k);
    for (int i = 0; i < kNumKernels; ++i) {
      of[i] = {slot_name(slots + i), 0, 0};
      for (const Work& w : kWork) {
        if (std::strcmp(w.name, of[i].name) == 0) of[i] = w;
      }
      if (i >= first_elementwise && i <= last_elementwise) of[i].per_output = 1;
    }
  }
};

const Costs& costs() {
  static const Costs kCosts;
  return kCosts;
}

double numel(const View& view) {
  double n = 1;
  for (int d = 0; d < view.layout->ndim; ++d) {
    if (view.layout->strides[d] != 0) n *= static_cast<double>(view.layout->sizes[d]);
  }
  return n;
}

double all(const View& view) {
  return static_cast<double>(view.layout->numel());
}

}  // namespace

bool is_elementwise(int slot) {
  const Costs& c = costs();
  return slot == c.copy || (slot >= c.first_elementwise && slot <= c.last_elementwise);
}

const char* limits_of_kernel(int slot) {
  return text_of(kKernelLimits, costs().of[slot].name);
}

const char* limits_of_gradient(const char* op) {
  return text_of(kGradientLimits, op);
}

std::uint64_t bytes_of(const View& view) {
  if (!view.defined()) return 0;
  std::uint64_t n = static_cast<std::uint64_t>(element_size(view.dtype));
  for (int d = 0; d < view.layout->ndim; ++d) {
    if (view.layout->strides[d] != 0) n *= static_cast<std::uint64_t>(view.layout->sizes[d]);
  }
  return n;
}

double flops_of(const KernelCall& call) {
  const Costs& c = costs();
  const int slot = slot_number(call.slot);
  const auto& reads = call.reads;
  const auto& writes = call.writes;
  if (slot == c.matmul) {  // (B, M, K) (B, K, N), and the bias
    const Layout& a = *reads[0]->layout;
    return 2 * all(*writes[0]) * static_cast<double>(a.sizes[a.ndim - 1]);
  }
  // (..., T, E), (..., S, E), (..., S, D), a multiply-add for each pair and column of a product;
  // statistics are two for each query.
  const auto last = [](const View& v, int from_end) {
    return static_cast<double>(v.layout->sizes[v.layout->ndim - from_end]);
  };
  if (slot == c.attention) {
    const View &q = *reads[0], &k = *reads[1], &v = *reads[2];
    return all(*writes[1]) * last(k, 2) * (last(q, 1) + last(v, 1));
  }
  if (slot == c.attention_grad) {
    const View &q = *reads[1], &v = *reads[3], &stats = *reads[5];
    return all(stats) * last(v, 2) * (3 * last(q, 1) + 2 * last(v, 1));
  }
  // Each output, or gradient of one, meets the weights of its group: w is (O, C / groups, kH, kW).
  const auto per_channel = [](const View& w) {
    return w.layout->sizes[0] == 0 ? 0 : all(w) / static_cast<double>(w.layout->sizes[0]);
  };
  if (slot == c.conv2d) return 2 * all(*writes[0]) * per_channel(*reads[1]);
  if (slot == c.conv2d_grad_input) return 2 * all(*reads[0]) * per_channel(*reads[1]);
  if (slot == c.conv2d_grad_weight) return 2 * all(*reads[0]) * per_channel(*writes[0]);
  if (slot == c.scatter_add || slot == c.index_add) return all(*reads[2]);
  if (slot == c.adam || slot == c.sgd) {
    const std::size_t states = slot == c.adam ? 4 : 2;  // of each parameter, the parameter first
    double n = 0;
    for (std::size_t i = 0; i < writes.size(); i += states) n += all(*writes[i]);
    return n * (slot == c.adam ? 13 : 4);
  }
  const Work& work = c.of[slot];
  double flops = 0;
  if (work.per_output != 0 && writes[0]->defined()) flops += work.per_output * numel(*writes[0]);
  if (work.per_operand != 0) flops += work.per_operand * all(*reads[0]);
  return flops;
}

}  // namespace taper::lens
