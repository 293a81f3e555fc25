// Sums, products, extremes and variances. One read of the input, one or two operations an element.
#include "taper/cpu/reduce.h"

namespace taper::cpu {
inline namespace TAPER_ISA {
namespace {

// Reduces every block of every output into partial[block][output]. p holds a number of each output.
template <class R, class T>
void reduce_blocks(const ReducePlan& plan, ConvertFn convert, T* partial, const T* p) {
  if (!plan.by_column) {
    for_each_block(plan, [&](std::int64_t output, std::int64_t block, std::byte* base,
                             std::int64_t first, std::int64_t n) {
      T& out = partial[block * plan.outputs + output];
      const T own = p != nullptr ? p[output] : T(0);
      if (n < fn::kReduceLanes) {
        for_each_piece<T>(plan, convert, base, first, n,
                          [&](const T* x, std::int64_t m) { out = reduce_dense<R>(x, m, own); });
        return;
      }
      Lanes<R, T> lanes;
      lanes.start();
      for_each_piece<T>(plan, convert, base, first, n,
                        [&](const T* x, std::int64_t m) { lanes.take(x, m, own); });
      out = lanes.join();
    });
    return;
  }
  for_each_strip<T>(plan, [&](std::int64_t output, std::int64_t width, std::int64_t block,
                              std::byte* base, std::int64_t first, std::int64_t n) {
    static constexpr T kNone[kColumnBytes / sizeof(T)] = {};
    const T* own = p != nullptr ? p + output : kNone;
    Strip<R, T> strip;
    strip.start(width, n);
    for_each_strip_row<T>(plan, convert, base, width, first, n,
                          [&](const T* x, std::int64_t row) { strip.take(x, row, own); });
    strip.join(partial + block * plan.outputs + output);
  });
}

// Reduces into out[output].
template <class R, class T>
void reduce_to(const Exec& exec, const ReducePlan& plan, ConvertFn convert, T* out, const T* p) {
  if (plan.length == 0) {
    for (std::int64_t i = 0; i < plan.outputs; ++i) out[i] = R::template identity<T>();
    return;
  }
  const std::int64_t blocks = blocks_of(plan.length);
  if (blocks == 1) return reduce_blocks<R, T>(plan, convert, out, p);
  T* partial =
      static_cast<T*>(exec.scratch(static_cast<std::size_t>(blocks * plan.outputs) * sizeof(T)));
  reduce_blocks<R, T>(plan, convert, partial, p);
  using Joined = std::conditional_t<std::is_same_v<R, fn::SumOfSquares>, fn::Sum, R>;
  T* column = static_cast<T*>(exec.scratch(static_cast<std::size_t>(blocks) * sizeof(T)));
  for (std::int64_t i = 0; i < plan.outputs; ++i) {
    for (std::int64_t b = 0; b < blocks; ++b) column[b] = partial[b * plan.outputs + i];
    out[i] = reduce_dense<Joined>(column, blocks, T(0));
  }
}

// Where results of type `dtype` are computed: in place if the output lies so, or else apart.
struct Results {
  void* data;
  bool apart;
};

Results results_for(
    const Exec& exec, const ReducePlan& plan, int which, const View& out, DType dtype) {
  if (out.dtype == dtype && plan.out[which].is_contiguous()) return {out.data, false};
  return {exec.scratch(static_cast<std::size_t>(plan.outputs * element_size(dtype))), true};
}

void store(const Exec& exec,
           const ReducePlan& plan,
           int which,
           const View& out,
           DType dtype,
           const Results& results) {
  if (!results.apart) return;
  const Layout dense = contiguous_layout(plan.out[which].shape());
  copy(exec, Out{{out.data, &plan.out[which], out.dtype}}, In{{results.data, &dense, dtype}});
}

template <class R, class T>
void reduce_in(const Exec& exec, const View& out, const View& in, DType dtype) {
  const View* const outs[] = {&out};
  const ReducePlan plan = reduce_plan(exec, in, outs, 1);
  if (plan.outputs == 0) return;
  if (plan.length == 0 && !fn::is_defined_on_nothing<R>) fail_empty_reduction();
  const Results results = results_for(exec, plan, 0, out, dtype);
  reduce_to<R, T>(exec, plan, converter_to(dtype, in.dtype), static_cast<T*>(results.data),
                  nullptr);
  store(exec, plan, 0, out, dtype, results);
}

// Integer is i64 or u64: sums wrap around.
template <class R, class Integer> void reduce(const Exec& exec, const View& out, const View& in) {
  const DType dtype = computed(in.dtype);
  if (dtype == kFloat64) return reduce_in<R, double>(exec, out, in, kFloat64);
  if (dtype == kFloat32) return reduce_in<R, float>(exec, out, in, kFloat32);
  reduce_in<R, Integer>(exec, out, in, kInt64);
}

template <class T>
void var_mean_in(const Exec& exec,
                 const View& var,
                 const View& mean,
                 const View& in,
                 DType dtype,
                 double correction) {
  const View* const outs[] = {&var, &mean};
  const ReducePlan plan = reduce_plan(exec, in, outs, 2);
  if (plan.outputs == 0) return;
  const ConvertFn convert = converter_to(dtype, in.dtype);
  const Results vars = results_for(exec, plan, 0, var, dtype);
  const Results means = results_for(exec, plan, 1, mean, dtype);
  T* v = static_cast<T*>(vars.data);
  T* m = static_cast<T*>(means.data);
  reduce_to<fn::Sum, T>(exec, plan, convert, m, nullptr);
  const double n = static_cast<double>(plan.length);
  const T count = static_cast<T>(n), freedom = static_cast<T>(n > correction ? n - correction : 0);
  for (std::int64_t i = 0; i < plan.outputs; ++i) m[i] = m[i] / count;
  reduce_to<fn::SumOfSquares, T>(exec, plan, convert, v, m);
  for (std::int64_t i = 0; i < plan.outputs; ++i) v[i] = v[i] / freedom;
  store(exec, plan, 0, var, dtype, vars);
  store(exec, plan, 1, mean, dtype, means);
}

}  // namespace

void sum(const Exec& exec, Out out, In in) {
  reduce<fn::Sum, std::uint64_t>(exec, out, in);
}

void prod(const Exec& exec, Out out, In in) {
  reduce<fn::Prod, std::uint64_t>(exec, out, in);
}

void amax(const Exec& exec, Out out, In in) {
  reduce<fn::Max, std::int64_t>(exec, out, in);
}

void amin(const Exec& exec, Out out, In in) {
  reduce<fn::Min, std::int64_t>(exec, out, in);
}

void var_mean(const Exec& exec, Out var, Out mean, In in, double correction) {
  if (computed(in.dtype) == kFloat64)
    return var_mean_in<double>(exec, var, mean, in, kFloat64, correction);
  if (computed(in.dtype) == kFloat32)
    return var_mean_in<float>(exec, var, mean, in, kFloat32, correction);
  fail_dtype("a floating-point", info(in.dtype).name);
}

}  // namespace TAPER_ISA
}  // namespace taper::cpu
