// One step of Adam, AdamW and SGD over many parameters by few launches.
#include <algorithm>
#include <utility>
#include <vector>

#include "taper/core/optim_step.h"
#include "taper/cuda/device.cuh"

// Note [Steps in chunks]
// A launch takes a table of parameters as its argument, as many as fit. Each is cut into chunks, a
// chunk is the work of one block, and a block finds its parameter by the number of its chunk. State
// is stored in any floating dtypes and computed with in one; operands that do not lie alike are
// brought to scratch, and back. What Adam computes of its count of steps is an argument, or, where
// the count moves from replay to replay, made by a kernel of its own before.
namespace taper::cuda {
namespace {

constexpr int kPack = 4;                        // elements that a thread takes together
constexpr Index kChunk = kThreads * kPack * 4;  // elements of a block
constexpr size_t kMostBytes = 4000;             // of a kernel's arguments

// The elements of one operand; data is null for no operand.
struct Operand {
  std::byte* data;
  DType dtype;
};

template <class E, class T>
__device__ void load_as(const std::byte* data, Index i, Index n, T (&to)[kPack]) {
  const E* from = reinterpret_cast<const E*>(data) + i;
  if (n >= kPack && reinterpret_cast<std::uintptr_t>(from) % sizeof(Pack<E, kPack>) == 0) {
    const auto pack = *reinterpret_cast<const Pack<E, kPack>*>(from);
    for (int j = 0; j < kPack; ++j) to[j] = static_cast<T>(pack.of[j]);
  } else {
    for (int j = 0; j < kPack; ++j) to[j] = j < n ? static_cast<T>(from[j]) : T(0);
  }
}

template <class E, class T>
__device__ void store_as(std::byte* data, Index i, Index n, const T (&x)[kPack]) {
  E* to = reinterpret_cast<E*>(data) + i;
  if (n >= kPack && reinterpret_cast<std::uintptr_t>(to) % sizeof(Pack<E, kPack>) == 0) {
    Pack<E, kPack> pack;
    for (int j = 0; j < kPack; ++j) pack.of[j] = static_cast<E>(x[j]);
    // Not by way of `to`: nvcc 13 splits a store whose address others share.
    reinterpret_cast<Pack<E, kPack>*>(data)[i / kPack] = pack;
  } else {
    for (int j = 0; j < kPack; ++j) {
      if (j < n) to[j] = static_cast<E>(x[j]);
    }
  }
}

// Elements [i, i + n) of an operand, of a whole pack at most.
template <class T> __device__ void load(const Operand& operand, Index i, Index n, T (&to)[kPack]) {
  if (operand.data == nullptr) return;
  switch (operand.dtype) {
    case kFloat64: return load_as<double>(operand.data, i, n, to);
    case kFloat32: return load_as<float>(operand.data, i, n, to);
    case kFloat16: return load_as<Half>(operand.data, i, n, to);
    default: return load_as<BFloat16>(operand.data, i, n, to);
  }
}

template <class T>
__device__ void store(const Operand& operand, Index i, Index n, const T (&x)[kPack]) {
  if (operand.data == nullptr) return;
  switch (operand.dtype) {
    case kFloat64: return store_as<double>(operand.data, i, n, x);
    case kFloat32: return store_as<float>(operand.data, i, n, x);
    case kFloat16: return store_as<Half>(operand.data, i, n, x);
    default: return store_as<BFloat16>(operand.data, i, n, x);
  }
}

// A rule: what a step does to element j of its operands, of which the first is the parameter and
// the second the gradient; all others are written as well.
template <class T> struct AdamRule {
  static constexpr int kOperands = 5;
  using Number = T;
  fn::AdamConstants<T> c;
  const fn::AdamConstants<T>* made;  // on the device, instead of c; or null
  bool decays, decoupled, amsgrad;

  __device__ void prepare() {
    if (made != nullptr) c = *made;
  }

  __device__ void operator()(T (&x)[kOperands][kPack], int j) const {
    T &p = x[0][j], g = x[1][j], &m = x[2][j], &v = x[3][j], &largest = x[4][j];
    if (decays && decoupled) p *= c.shrink;
    if (decays && !decoupled) g = fn::add_decay(g, p, c.decay);
    m = c.first_moment(m, g);
    v = c.second_moment(v, g);
    if (amsgrad) largest = fn::larger_moment(largest, v);
    p = c.update(p, m, amsgrad ? largest : v);
  }
};

template <class T> struct SgdRule {
  static constexpr int kOperands = 3;
  using Number = T;
  fn::SgdConstants<T> c;
  bool decays, momentum, first, nesterov;

  __device__ void prepare() {}

  __device__ void operator()(T (&x)[kOperands][kPack], int j) const {
    T &p = x[0][j], g = x[1][j], &b = x[2][j];
    if (decays) g = fn::add_decay(g, p, c.decay);
    if (momentum) {
      b = first ? g : c.buffer(b, g);
      g = nesterov ? c.ahead(g, b) : b;
    }
    p = c.update(p, g);
  }
};

template <class Rule> struct Entry {
  Rule rule;
  Operand operands[size_t{Rule::kOperands}];
  Index numel;
  unsigned first_chunk;
};

template <class Rule> struct Table {
  static constexpr int kMost = static_cast<int>((kMostBytes - sizeof(int)) / sizeof(Entry<Rule>));
  int count;
  Entry<Rule> entries[size_t{kMost}];
};

// Without loops over operands: x stays in registers.
template <class Rule, class T, size_t... k>
__device__ void load_all(const Entry<Rule>& entry,
                         Index i,
                         Index n,
                         T (&x)[Rule::kOperands][kPack],
                         std::index_sequence<k...>) {
  (load(entry.operands[k], i, n, x[k]), ...);
}

template <class Rule, class T, size_t... k>
__device__ void store_all(const Entry<Rule>& entry,
                          Index i,
                          Index n,
                          const T (&x)[Rule::kOperands][kPack],
                          std::index_sequence<k...>) {
  ((k != 1 ? store(entry.operands[k], i, n, x[k]) : void()), ...);
}

template <class Rule> __global__ void step_kernel(Table<Rule> table) {
  using T = typename Rule::Number;
  int at = 0, last = table.count - 1;
  while (at < last) {
    const int middle = (at + last + 1) / 2;
    if (table.entries[middle].first_chunk <= blockIdx.x) at = middle;
    else last = middle - 1;
  }
  const Entry<Rule>& entry = table.entries[at];
  Rule rule = entry.rule;
  rule.prepare();
  const Index begin = Index{blockIdx.x - entry.first_chunk} * kChunk;
  const Index end = begin + kChunk < entry.numel ? begin + kChunk : entry.numel;
  for (Index i = begin + threadIdx.x * kPack; i < end; i += blockDim.x * kPack) {
    T x[size_t{Rule::kOperands}][size_t{kPack}] = {};
    load_all(entry, i, end - i, x, std::make_index_sequence<Rule::kOperands>{});
    for (int j = 0; j < kPack; ++j) rule(x, j);
    store_all(entry, i, end - i, x, std::make_index_sequence<Rule::kOperands>{});
  }
}

// The lowest address of a dense layout.
std::byte* lowest(const View& view) {
  Index back = 0;
  for (int d = 0; d < view.layout->ndim; ++d) {
    const Index stride = view.layout->strides[d];
    if (stride < 0) back += (view.layout->sizes[d] - 1) * stride;
  }
  return view.as<std::byte>() + back * element_size(view.dtype);
}

// Whether all views lie without gaps, in the same order.
template <size_t Count> bool lie_alike(const View* const (&views)[Count]) {
  const Layout& first = *views[0]->layout;
  if (!is_dense(first)) return false;
  for (const View* view : views) {
    for (int d = 0; view->defined() && d < first.ndim; ++d) {
      if (first.sizes[d] > 1 && view->layout->strides[d] != first.strides[d]) return false;
    }
  }
  return true;
}

// Collects parameters, and launches when a table is full; finish() launches what is left.
template <class Rule> class Steps {
 public:
  explicit Steps(const Exec& exec) : exec_(exec) {}

  void add(const Rule& rule, const View* const (&views)[size_t{Rule::kOperands}]) {
    const Index numel = views[0]->layout->numel();
    if (numel == 0) return;
    if (table_.count == Table<Rule>::kMost) launch();
    Entry<Rule>& entry = table_.entries[table_.count++];
    entry.rule = rule;
    entry.numel = numel;
    entry.first_chunk = chunks_;
    chunks_ += static_cast<unsigned>((numel + kChunk - 1) / kChunk);
    const bool alike = lie_alike(views);
    for (int k = 0; k < Rule::kOperands; ++k) {
      const View& view = *views[k];
      entry.operands[k] = {nullptr, view.dtype};
      if (view.defined()) entry.operands[k].data = alike ? lowest(view) : brought(view, k != 1);
    }
  }

  void finish() {
    launch();
    for (const Brought& one : brought_) {
      const Layout dense = contiguous_layout(one.view->layout->shape());
      copy(exec_, Out{*one.view}, In{{one.data, &dense, one.view->dtype}});
    }
  }

 private:
  struct Brought {
    const View* view;
    void* data;
  };

  std::byte* brought(const View& view, bool written) {
    // Nobody else writes to what dense() gives.
    auto* data = static_cast<std::byte*>(const_cast<void*>(dense(exec_, view)));
    if (written && data != view.data) brought_.push_back({&view, data});
    return data;
  }

  void launch() {
    launch_on(exec_, chunks_, kThreads, step_kernel<Rule>, table_);
    table_.count = 0;
    chunks_ = 0;
  }

  const Exec& exec_;
  Table<Rule> table_{};
  unsigned chunks_ = 0;
  std::vector<Brought> brought_;
};

// Counts of steps, as many as fit into a launch.
struct Counts {
  static constexpr size_t kMost = kMostBytes / sizeof(Count) - 8;
  Count of[kMost];
};

static_assert(Counts::kMost <= kThreads);

template <class T>
__global__ void make_constants(fn::AdamConstants<T>* to, Counts counts, size_t n, AdamHyper hyper) {
  const size_t i = threadIdx.x;
  if (i < n) to[i] = fn::AdamConstants<T>(hyper, counts.of[i].value());
}

// The constants of each parameter, in scratch, where a count moves. Else null.
template <class T>
const fn::AdamConstants<T>* moving_constants(const Exec& exec,
                                             ArrayRef<AdamParam> params,
                                             const AdamHyper& hyper) {
  bool moves = false;
  for (const AdamParam& param : params) moves = moves || param.step.moved != nullptr;
  if (!moves) return nullptr;
  using Constants = fn::AdamConstants<T>;
  auto* to = static_cast<Constants*>(exec.scratch(params.size() * sizeof(Constants)));
  for (size_t first = 0; first < params.size(); first += Counts::kMost) {
    Counts counts;
    const size_t n = std::min(Counts::kMost, params.size() - first);
    for (size_t i = 0; i < n; ++i) counts.of[i] = params[first + i].step;
    launch_on(exec, 1, kThreads, make_constants<T>, to + first, counts, n, hyper);
  }
  return to;
}

template <class T>
void step_adam(const Exec& exec, ArrayRef<AdamParam> params, const AdamHyper& hyper) {
  Steps<AdamRule<T>> steps(exec);
  const fn::AdamConstants<T>* made = moving_constants<T>(exec, params, hyper);
  for (size_t i = 0; i < params.size(); ++i) {
    const AdamParam& p = params[i];
    if ((p.param.dtype == kFloat64) != std::is_same_v<T, double>) continue;
    steps.add({fn::AdamConstants<T>(hyper, p.step.at), made == nullptr ? nullptr : made + i,
               hyper.weight_decay != 0, hyper.decoupled, p.max_exp_avg_sq.defined()},
              {&p.param, &p.grad, &p.exp_avg, &p.exp_avg_sq, &p.max_exp_avg_sq});
  }
  steps.finish();
}

template <class T>
void add_sgd(Steps<SgdRule<T>>& steps, const SgdParam& p, const SgdHyper& hyper) {
  static constexpr View kNone;
  const bool momentum = p.momentum_buffer.defined() && hyper.momentum != 0;
  const View& buffer = p.momentum_buffer;
  steps.add(
      {fn::SgdConstants<T>(hyper), hyper.weight_decay != 0, momentum, p.first, hyper.nesterov},
      {&p.param, &p.grad, momentum ? &buffer : &kNone});
}

}  // namespace

// Bytes, in f32: 28 for each element, 36 with amsgrad.
void adam(const Exec& exec, ArrayRef<AdamParam> params, const AdamHyper& hyper) {
  step_adam<double>(exec, params, hyper);
  step_adam<float>(exec, params, hyper);
}

// Bytes, in f32: 12 for each element, 20 with momentum.
void sgd(const Exec& exec, ArrayRef<SgdParam> params, const SgdHyper& hyper) {
  Steps<SgdRule<double>> in_double(exec);
  Steps<SgdRule<float>> in_float(exec);
  for (const SgdParam& param : params) {
    if (param.param.dtype == kFloat64) add_sgd(in_double, param, hyper);
    else add_sgd(in_float, param, hyper);
  }
  in_double.finish();
  in_float.finish();
}

}  // namespace taper::cuda
