// The table of contents of the machine: every kernel, one slot each, and what it promises.
// A backend is one constant of type Kernels; a slot left out does not compile.
#pragma once
#include <atomic>
#include <type_traits>

#include "taper/core/base/scalar.h"
#include "taper/core/exec.h"

namespace taper {

// One call of a kernel, as those who watch see it.
struct KernelCall {
  const void* slot;  // address of the slot in its column; see slot_number
  const Exec& exec;
  ArrayRef<const View*> reads;
  ArrayRef<const View*> writes;
};

// What hangs on kernel calls: profilers, race checkers, byte counters. Any number, on all threads.
// Kernels that a probe calls itself are watched by none.
class Probe {
 public:
  virtual ~Probe() = default;

  virtual void before(const KernelCall&) {}

  virtual void after(const KernelCall&) {}

 private:
  friend class Watch;
  friend void install(Probe& added);
  friend void remove(Probe& removed) noexcept;
  Probe* next_ = nullptr;
};

// The first of the list; calling a slot tests it, and nothing else is paid while it is null.
extern std::atomic<Probe*> probe;

// Both wait until no kernel is being watched: a probe may die as soon as it is removed. Not for a
// probe's own before() and after().
void install(Probe& added);
void remove(Probe& removed) noexcept;

// Calls the probes around one kernel: before() at once, after() by finish(), which a kernel that
// throws does not reach.
class Watch {
 public:
  explicit Watch(const KernelCall& call);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  void finish() const;

 private:
  const KernelCall& call_;
  bool nested_;
};

template <class Signature> class Kernel;

// A function pointer that must be given. It has no default, so that designated initialisers
// refuse a column with a gap, in g++, clang and nvcc.
template <class... Args> class Kernel<void(const Exec&, Args...)> {
 public:
  using Fn = void (*)(const Exec&, Args...);
  Kernel() = delete;
  Kernel(std::nullptr_t) = delete;

  // Implicit: a column reads `.softmax = cpu::softmax`.
  constexpr Kernel(Fn fn) : fn_(fn) {}  // NOLINT(google-explicit-constructor)

  [[gnu::always_inline]] void operator()(const Exec& exec, Args... args) const {
    if (probe.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
      return watched(exec, args...);
    fn_(exec, args...);
  }

 private:
  void watched(const Exec& exec, Args... args) const {
    Views reads, writes;
    (note(args, reads, writes), ...);
    const KernelCall call{this, exec, reads, writes};
    const Watch watch(call);
    fn_(exec, args...);
    watch.finish();
  }

  using Views = SmallVector<const View*, 8>;

  template <class T> static void note(const T& arg, Views& reads, Views& writes) {
    if constexpr (std::is_same_v<T, InList>) {
      for (const In& in : arg) reads.push_back(&in);
    } else if constexpr (requires { arg.begin()->note(reads, writes); }) {
      for (const auto& one : arg) one.note(reads, writes);
    } else if constexpr (std::is_base_of_v<View, T>) {
      if (!std::is_same_v<T, Out>) reads.push_back(&arg);
      if (!std::is_same_v<T, In>) writes.push_back(&arg);
    }
  }

  Fn fn_;
};

// A count that a kernel goes on from. In captured work `moved` points to how far the count has
// moved since the capture, in memory of the device (moved_since_capture); elsewhere it is null.
struct Count {
  std::uint64_t at = 0;
  const std::uint64_t* moved = nullptr;

  Count() = default;

  // Implicit: a plain number does not move.
  constexpr Count(std::uint64_t n) : at(n) {}  // NOLINT(google-explicit-constructor)

  constexpr Count(std::uint64_t n, const std::uint64_t* from) : at(n), moved(from) {}

  TAPER_INLINE std::uint64_t value() const { return moved == nullptr ? at : at + *moved; }
};

// 2-d convolution and pooling; (height, width) each.
struct Window2d {
  std::int64_t kernel[2] = {1, 1};
  std::int64_t stride[2] = {1, 1};
  std::int64_t padding[2] = {0, 0};
  std::int64_t dilation[2] = {1, 1};
  std::int64_t groups = 1;
  bool count_include_pad = true;      // avg_pool2d
  std::int64_t divisor_override = 0;  // avg_pool2d; 0: the window's size
};

// What a matrix product ends with: the elementwise slot of that name.
enum class Activation : std::uint8_t { kNone, kRelu, kGelu, kGeluTanh };

// One step of an optimizer over one parameter; all share one hyper-parameter block.
struct AdamParam {
  InOut param, exp_avg, exp_avg_sq;
  InOut max_exp_avg_sq;  // amsgrad, else undefined
  In grad;
  Count step;  // from 1

  void note(auto& reads, auto& writes) const {
    for (const View* v : {&param, &exp_avg, &exp_avg_sq, &max_exp_avg_sq}) {
      reads.push_back(v);
      writes.push_back(v);
    }
    reads.push_back(&grad);
  }
};

struct AdamHyper {
  double lr, beta1, beta2, eps, weight_decay;
  bool decoupled;  // AdamW
};

struct SgdParam {
  InOut param;
  InOut momentum_buffer;  // undefined without momentum
  In grad;
  bool first;  // the buffer starts as the gradient

  void note(auto& reads, auto& writes) const {
    for (const View* v : {&param, &momentum_buffer}) {
      reads.push_back(v);
      writes.push_back(v);
    }
    reads.push_back(&grad);
  }
};

struct SgdHyper {
  double lr, momentum, dampening, weight_decay;
  bool nesterov;
};

// Shapes: an operand of an elementwise slot already has the output's sizes (stride 0 where it is
// stretched) and, unless said, the output's dtype. A reduction's `out` has the input's sizes with
// stride 0 along the dims that are reduced. Any strides are legal everywhere.
struct Kernels {
  using Unary = Kernel<void(const Exec&, Out, In)>;
  using Unary2 = Kernel<void(const Exec&, Out, In, double, double)>;  // two parameters
  using Binary = Kernel<void(const Exec&, Out, In, In)>;
  using Binary2 = Kernel<void(const Exec&, Out, In, In, double, double)>;

  // Memory. copy converts dtypes as C++ casts do; fill writes one number.
  Unary copy;
  Kernel<void(const Exec&, Out, Scalar)> fill;
  Kernel<void(const Exec&, Out, Scalar start, Scalar step)> arange;  // start + i * step

  // Arithmetic; all dtypes, bool as or/and where it means something.
  Binary add, sub, mul, div;             // div: floating only
  Binary floor_divide, remainder, fmod;  // remainder has the divisor's sign, fmod the dividend's
  Binary pow, maximum, minimum, atan2;   // maximum and minimum pass NaN on
  Unary neg, abs, sign, square, reciprocal;
  // Comparisons: out is bool.
  Binary eq, ne, lt, le, gt, ge;
  // Logic on truth values (out is bool), and on bits (integers and bool).
  Binary logical_and, logical_or, logical_xor;
  Unary logical_not;
  Binary bitwise_and, bitwise_or, bitwise_xor;
  Unary bitwise_not;
  Kernel<void(const Exec&, Out, In condition, In a, In b)> where;  // condition is bool
  Unary2 clamp;                                                    // (low, high); NaN stays

  // Floating functions.
  Unary exp, expm1, log, log1p, sqrt, rsqrt, sin, cos, tan, asin, acos, atan, sinh, cosh, tanh;
  Unary erf, floor, ceil, round, trunc;  // round: half to even
  Unary sigmoid, relu, silu, gelu, gelu_tanh, log_sigmoid;
  Unary2 leaky_relu, elu, softplus;  // (slope, -), (alpha, -), (beta, threshold)
  // Their derivatives, times the gradient: (out, grad, x), or (out, grad, y) where y is cheaper.
  Binary sigmoid_grad, tanh_grad, relu_grad;                     // of y
  Binary silu_grad, gelu_grad, gelu_tanh_grad;                   // of x
  Binary log_sigmoid_grad;                                       // of x
  Binary2 leaky_relu_grad, elu_grad, softplus_grad, clamp_grad;  // of x

  // Reductions. Sums run over 64 lanes joined by one fixed tree; 16-bit floats sum in f32.
  // u8, i32 and bool sum and multiply in i64 (out is i64).
  Unary sum, prod;
  Unary amax, amin;                                            // NaN wins
  Kernel<void(const Exec&, Out, In, int dim)> argmax, argmin;  // out is i64; first of equals
  Kernel<void(const Exec&, Out var, Out mean, In, double correction)> var_mean;  // two passes
  // Running sum and product along dim.
  Kernel<void(const Exec&, Out, In, int dim)> cumsum, cumprod;
  // Sorts along dim, stable, NaN last (first when descending); indices is i64.
  Kernel<void(const Exec&, Out values, Out indices, In, int dim, bool descending)> sort;

  // Softmax along dim. The backward slots take (grad, y).
  Kernel<void(const Exec&, Out, In, int dim)> softmax, log_softmax;
  Kernel<void(const Exec&, Out, In grad, In y, int dim)> softmax_grad, log_softmax_grad;

  // y (..., T, D) = softmax(q k^T scale + mask) v; and stats (..., T, 2), the greatest score and
  // the sum of each row's softmax, in f32 (f64 for f64): q (..., T, E), k (..., S, E), v (..., S,
  // D), the dims in front equal, S > 0. mask (..., T, S) by strides: bool, true where a key is
  // seen, or of q's dtype, added; or undefined. causal: query i sees keys 0 to i. A row that its
  // mask leaves no key is 0, its sum infinite.
  Kernel<void(const Exec&, Out y, Out stats, In q, In k, In v, In mask, bool causal, double scale)>
      attention;
  // Any of dq, dk, dv may be undefined.
  Kernel<void(const Exec&,
              Out dq,
              Out dk,
              Out dv,
              In grad,
              In q,
              In k,
              In v,
              In y,
              In stats,
              In mask,
              bool causal,
              double scale)>
      attention_grad;

  // One time step of an LSTM and of a GRU, of B sequences (core/recurrent_step.h): states (B, H);
  // gates (B, 4 H), of the LSTM i, f, g, o, of the GRU r, z, n and m. Rows lie dense, any distance
  // apart. The LSTM's gates come as sums; their gradients go to the sums. The GRU's sums come in
  // two parts (B, 3 H), as do their gradients. To dc_before and dh_before is added: to the latter
  // without what goes through the product with the weights.
  Kernel<void(const Exec&, InOut gates, Out h, Out c, In c_before)> lstm;
  Kernel<void(const Exec&, Out dgates, InOut dc_before, In dh, In dc, In gates, In c, In c_before)>
      lstm_grad;
  Kernel<void(const Exec&, Out gates, Out h, In x, In state, In h_before)> gru;
  Kernel<void(const Exec&, Out dx, Out dstate, InOut dh_before, In dh, In gates, In h_before)>
      gru_grad;

  // out (B, M, N) = activation(a (B, M, K) b (B, K, N) + bias), bias broadcastable to out or
  // undefined. f16 and bf16 accumulate in f32 and are rounded before the activation and after it:
  // the bits are those of the activation's own slot, run on the product. Integers wrap, and have no
  // activation.
  Kernel<void(const Exec&, Out, In a, In b, In bias, Activation)> matmul;

  // Indexing; indices are i64, in range (checked before, or an error for the range checks here).
  Kernel<void(const Exec&, Out, In x, In index, int dim)> gather;
  // out[index] = / += src along dim; sums in the order of src unless atomic_adds_allowed().
  Kernel<void(const Exec&, InOut, In index, In src, int dim)> scatter, scatter_add;
  Kernel<void(const Exec&, Out, In x, In index, int dim)> index_select;  // 1-d index
  Kernel<void(const Exec&, InOut, In index, In src, int dim)> index_add;
  // Element i of out is x at (indices[0][i], indices[1][i], ..., rest): the first indices.size()
  // dims of x are indexed together; index operands have out's sizes, stride 0 over the rest.
  Kernel<void(const Exec&, Out, In x, InList indices)> index;
  Kernel<void(const Exec&, InOut x, In src, InList indices, bool accumulate)> index_put;
  Kernel<void(const Exec&, Out count, In)> count_nonzero;  // out is one i64
  Kernel<void(const Exec&, Out rows, In)> nonzero;         // (count, ndim), row-major order

  // Where the first NaN or infinity of a floating tensor is, in row-major order; -1: nowhere.
  Kernel<void(const Exec&, Out index, In)> first_nonfinite;  // out is one i64

  // Random numbers: element i depends on (seed, offset, i) alone. Philox-4x32-10.
  using Random = Kernel<void(const Exec&, Out, Count seed, Count offset, double, double)>;
  Random uniform;    // [a, b)
  Random normal;     // (mean, std)
  Random bernoulli;  // 1 with probability a
  Random randint;    // [a, b)

  // Normalisation over the last dim: x (R, C); weight, bias (C) or undefined; mean, rstd (R).
  Kernel<void(const Exec&, Out y, Out mean, Out rstd, In x, In weight, In bias, double eps)>
      layer_norm;
  // dx (R, C); dweight, dbias (C); any may be undefined.
  Kernel<void(
      const Exec&, Out dx, Out dweight, Out dbias, In grad, In x, In mean, In rstd, In weight)>
      layer_norm_grad;

  // Convolution: x (N, C, H, W), w (O, C / groups, kH, kW), bias (O) or undefined, y (N, O, H',
  // W'). Layouts may be NCHW or channels_last by strides.
  Kernel<void(const Exec&, Out y, In x, In w, In bias, const Window2d&)> conv2d;
  Kernel<void(const Exec&, Out dx, In grad, In w, const Window2d&)> conv2d_grad_input;
  Kernel<void(const Exec&, Out dw, In grad, In x, const Window2d&)> conv2d_grad_weight;
  // indices: i64, position in the H * W plane of x.
  Kernel<void(const Exec&, Out y, Out indices, In x, const Window2d&)> max_pool2d;
  Kernel<void(const Exec&, Out dx, In grad, In indices)> max_pool2d_grad;
  Kernel<void(const Exec&, Out y, In x, const Window2d&)> avg_pool2d;
  Kernel<void(const Exec&, Out dx, In grad, const Window2d&)> avg_pool2d_grad;

  // Optimizers: all parameters of one step, in one pass over each.
  Kernel<void(const Exec&, ArrayRef<AdamParam>, const AdamHyper&)> adam;
  Kernel<void(const Exec&, ArrayRef<SgdParam>, const SgdHyper&)> sgd;
};

inline constexpr int kNumKernels = sizeof(Kernels) / sizeof(void*);

// A slot that a column lacks. Calling it throws, naming the slot.
[[noreturn]] void fail_unsupported(const char* slot);

template <std::size_t N> struct SlotName {
  char text[N];

  constexpr SlotName(const char (&s)[N]) {  // NOLINT(google-explicit-constructor)
    for (std::size_t i = 0; i < N; ++i) text[i] = s[i];
  }
};

template <SlotName Name> struct Unsupported {
  template <class... Args> static void call(const Exec&, Args...) { fail_unsupported(Name.text); }

  template <class... Args> constexpr operator Kernel<void(const Exec&, Args...)>() const {
    return &call<Args...>;
  }
};

template <SlotName Name> inline constexpr Unsupported<Name> unsupported{};

// The columns. cuda_kernels throws in a build without CUDA.
const Kernels& cpu_kernels();
const Kernels& meta_kernels();
const Kernels& cuda_kernels();
const Kernels& kernels_for(Device device);

// Which member of Kernels a slot is, by its address in any column, and its name: "softmax".
int slot_number(const void* slot);
const char* slot_name(const void* slot);

}  // namespace taper
