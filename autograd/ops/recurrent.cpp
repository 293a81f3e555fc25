// How recurrent layers run, a product and a kernel for each step, and back through time.
#include "taper/autograd/ops/recurrent.h"

#include "taper/autograd/ops/create.h"
#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/matmul.h"
#include "taper/autograd/ops/reduce.h"
#include "taper/autograd/ops/shape.h"
#include "taper/autograd/ops/unary.h"

namespace taper {
namespace ops {
namespace {

// Rows of a contiguous matrix, as kernels see them.
class Rows {
 public:
  explicit Rows(const Tensor& all) : Rows(all, 0, all.size(0)) {}

  Rows(const Tensor& all, std::int64_t first, std::int64_t count)
      : data_(all.as<In>().data), dtype_(all.dtype()) {
    const std::int64_t cols = all.size(1);
    matrix_ = contiguous_layout({count, cols});
    batch_ = contiguous_layout({1, count, cols});
    data_ = static_cast<std::byte*>(data_) + first * cols * element_size(dtype_);
  }

  // (count, columns)
  template <class V> V as() const { return view<V>(matrix_); }

  // (1, count, columns), a batch of one, which the product takes.
  template <class V> V in_product() const { return view<V>(batch_); }

 private:
  template <class V> V view(const Layout& layout) const {
    V v;
    v.data = data_;
    v.layout = &layout;
    v.dtype = dtype_;
    return v;
  }

  void* data_;
  DType dtype_;
  Layout matrix_, batch_;
};

// One time step: its rows, and the row of the state before its first.
struct Step {
  std::int64_t first, count, before;
  bool initial;  // `before` counts in the initial states

  Rows of(const Tensor& t) const { return {t, first, count}; }

  Rows before_in(const Tensor& initial_states, const Tensor& states) const {
    return {initial ? initial_states : states, before, count};
  }
};

std::vector<Step> steps_of(const std::vector<std::int64_t>& batch_sizes) {
  std::vector<Step> steps;
  std::int64_t first = 0, before = 0;
  for (const std::int64_t count : batch_sizes) {
    steps.push_back({first, count, before, steps.empty()});
    before = first;
    first += count;
  }
  return steps;
}

// The state before each row, (N, H).
Tensor states_before(const Tensor& initial,
                     const Tensor& states,
                     const std::vector<std::int64_t>& batch_sizes) {
  std::vector<Tensor> pieces{initial};
  std::int64_t begin = 0, end = 0;  // rows that lie together
  std::int64_t first = 0;           // row of the step before step t
  for (std::size_t t = 1; t < batch_sizes.size(); ++t) {
    if (first != end) {  // a sequence had ended
      pieces.push_back(states.narrow(0, begin, end - begin));
      begin = first;
    }
    end = first + batch_sizes[t];
    first += batch_sizes[t - 1];
  }
  pieces.push_back(states.narrow(0, begin, end - begin));
  return cat(pieces, 0);
}

bool have_one_dtype(std::initializer_list<const Tensor*> tensors) {
  const DType dtype = (*tensors.begin())->dtype();
  for (const Tensor* t : tensors) {
    if (t->defined() && t->dtype() != dtype) return false;
  }
  return is_floating_point(dtype);
}

// x (N, gates H), w_hh (gates H, H), each state (B, H).
void check_layer(const Tensor& x,
                 const Tensor& w_hh,
                 std::initializer_list<const Tensor*> states,
                 const std::vector<std::int64_t>& batch_sizes,
                 std::int64_t gates) {
  std::int64_t rows = 0;
  for (std::size_t t = 0; t < batch_sizes.size(); ++t) {
    rows += batch_sizes[t];
    TAPER_CHECK(batch_sizes[t] >= 0 && (t == 0 || batch_sizes[t] <= batch_sizes[t - 1]),
                "the numbers of sequences that have each step must not grow, got ",
                IntArrayRef(batch_sizes));
  }
  TAPER_CHECK(!batch_sizes.empty(), "needs one time step or more");
  TAPER_CHECK(x.dim() == 2 && w_hh.dim() == 2 && w_hh.size(0) == gates * w_hh.size(1) &&
                  x.size(0) == rows && x.size(1) == w_hh.size(0),
              "needs x (", rows, ", ", gates, " H) and w_hh (", gates, " H, H), got ", x.sizes(),
              " and ", w_hh.sizes());
  for (const Tensor* state : states) {
    TAPER_CHECK(state->sizes() == IntArrayRef({batch_sizes[0], w_hh.size(1)}),
                "needs initial states (", batch_sizes[0], ", ", w_hh.size(1), "), got ",
                state->sizes());
  }
}

// A gradient as the sum that backward adds to.
Tensor sum_of(const Reverse& r, std::size_t output, const Tensor& like) {
  if (!r.grad(output).defined()) return zeros(like.sizes(), like.options());
  return r.grad(output).clone(MemoryFormat::kContiguous);
}

Tensor new_matrix(std::int64_t rows, std::int64_t cols, const Tensor& like) {
  return make_tensor(contiguous_layout({rows, cols}), like.dtype(), like.device());
}

// `part` plus the gradient that came back from the next step, which may have fewer rows.
Tensor added(const Tensor& part, const Tensor& carried) {
  if (!carried.defined()) return part;
  const std::int64_t n = carried.size(0);
  if (n == part.size(0)) return part + carried;
  return cat({part.narrow(0, 0, n) + carried, part.narrow(0, n, part.size(0) - n)}, 0);
}

// dx sigmoid and dx tanh, from their results.
Tensor through_sigmoid(const Tensor& grad, const Tensor& y) {
  return grad * (y * (1 - y));
}

Tensor through_tanh(const Tensor& grad, const Tensor& y) {
  return grad * (1 - square(y));
}

}  // namespace

// Saved: h, c, gates, w_hh, h0, c0.
void Lstm::forward(Frame& f) {
  check_layer(f.in(0), f.in(1), {&f.in(2), &f.in(3)}, batch_sizes_, 4);
  TAPER_CHECK(have_one_dtype({&f.in(0), &f.in(1), &f.in(2), &f.in(3)}),
              "x, w_hh, h0 and c0 must be of one floating-point dtype, got ", f.in(0).dtype(), ", ",
              f.in(1).dtype(), ", ", f.in(2).dtype(), " and ", f.in(3).dtype());
  const Tensor x = f.in(0).contiguous(), h0 = f.in(2).contiguous(), c0 = f.in(3).contiguous();
  const Tensor turned = f.in(1).t().contiguous();  // once, where each step's product would turn it
  const std::int64_t n = x.size(0), size = turned.size(0);
  const Tensor h = f.out(Sizes{n, size}, x.dtype()), c = f.out(Sizes{n, size}, x.dtype()),
               gates = f.out(Sizes{n, 4 * size}, x.dtype());
  const Rows weight(turned);
  for (const Step& step : steps_of(batch_sizes_)) {
    const Rows sums = step.of(gates);
    f.kernels().matmul(f.exec(), sums.in_product<Out>(), step.before_in(h0, h).in_product<In>(),
                       weight.in_product<In>(), step.of(x).in_product<In>(), Activation::kNone);
    f.kernels().lstm(f.exec(), sums.as<InOut>(), step.of(h).as<Out>(), step.of(c).as<Out>(),
                     step.before_in(c0, c).as<In>());
  }
  for (const std::size_t i : {0U, 1U, 2U}) f.save_out(i);
  for (const std::size_t i : {1U, 2U, 3U}) f.save(f.in(i));
}

// A gradient of the gates themselves comes from a derivative of this derivative alone.
Grads Lstm::backward(const Reverse& r) const {
  return GradMode::is_enabled() || r.grad(2).defined() ? composite(r) : fused(r);
}

Grads Lstm::fused(const Reverse& r) const {
  const Tensor h = r.saved(0), c = r.saved(1), gates = r.saved(2), w_hh = r.saved(3).contiguous(),
               h0 = r.saved(4), c0 = r.saved(5).contiguous();
  const Tensor dh = sum_of(r, 0, h), dc = sum_of(r, 1, c);
  const Tensor dh0 = zeros(h0.sizes(), h0.options()), dc0 = zeros(h0.sizes(), h0.options());
  const Tensor dx = new_matrix(h.size(0), w_hh.size(0), h);
  const Kernels& kernels = kernels_for(h.device());
  const Exec exec(h.device());
  const Rows weight(w_hh);
  const std::vector<Step> steps = steps_of(batch_sizes_);
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const Rows sums = step->of(dx), before = step->before_in(dh0, dh);
    kernels.lstm_grad(exec, sums.as<Out>(), step->before_in(dc0, dc).as<InOut>(),
                      step->of(dh).as<In>(), step->of(dc).as<In>(), step->of(gates).as<In>(),
                      step->of(c).as<In>(), step->before_in(c0, c).as<In>());
    if (step->initial && !r.needs(2)) continue;
    kernels.matmul(exec, before.in_product<Out>(), sums.in_product<In>(), weight.in_product<In>(),
                   before.in_product<In>(), Activation::kNone);
  }
  Grads out(4);
  out[0] = dx;
  if (r.needs(1)) out[1] = matmul(dx.t(), states_before(h0, h, batch_sizes_));
  out[2] = dh0;
  out[3] = dc0;
  return out;
}

Grads Lstm::composite(const Reverse& r) const {
  const Tensor h = r.saved(0), c = r.saved(1), gates = r.saved(2), w_hh = r.saved(3),
               h0 = r.saved(4), c0 = r.saved(5);
  const Tensor c_before = states_before(c0, c, batch_sizes_);
  const Tensor grad_h = r.grad_or_zeros(0), grad_c = r.grad_or_zeros(1),
               grad_gates = r.grad_or_zeros(2);
  const std::vector<Step> steps = steps_of(batch_sizes_);
  std::vector<Tensor> sums(steps.size());
  Tensor dh, dc;
  for (std::size_t t = steps.size(); t-- > 0;) {
    const auto part = [&](const Tensor& of) {
      return of.narrow(0, steps[t].first, steps[t].count);
    };
    const std::vector<Tensor> gate = part(gates).chunk(4, 1), grad = part(grad_gates).chunk(4, 1);
    const Tensor &i = gate[0], &f = gate[1], &g = gate[2], &o = gate[3];
    const Tensor y = tanh(part(c));
    dh = added(part(grad_h), dh);
    dc = added(part(grad_c), dc) + through_tanh(dh * o, y);
    sums[t] = cat(
        {through_sigmoid(grad[0] + dc * g, i), through_sigmoid(grad[1] + dc * part(c_before), f),
         through_tanh(grad[2] + dc * i, g), through_sigmoid(grad[3] + dh * y, o)},
        1);
    dc = dc * f;
    dh = matmul(sums[t], w_hh);
  }
  Grads out(4);
  out[0] = cat(sums, 0);
  if (r.needs(1)) out[1] = matmul(out[0].t(), states_before(h0, h, batch_sizes_));
  out[2] = added(zeros(h0.sizes(), h0.options()), dh);
  out[3] = added(zeros(h0.sizes(), h0.options()), dc);
  return out;
}

// Saved: h, gates, w_hh, h0.
void Gru::forward(Frame& f) {
  check_layer(f.in(0), f.in(1), {&f.in(3)}, batch_sizes_, 3);
  const Tensor& bias = f.in(2);
  TAPER_CHECK(have_one_dtype({&f.in(0), &f.in(1), &bias, &f.in(3)}),
              "x, w_hh, b_hh and h0 must be of one floating-point dtype, got ", f.in(0).dtype(),
              ", ", f.in(1).dtype(), ", ", bias.defined() ? bias.dtype() : f.in(0).dtype(), " and ",
              f.in(3).dtype());
  TAPER_CHECK(!bias.defined() || bias.sizes() == IntArrayRef(f.in(1).size(0)), "needs b_hh (",
              f.in(1).size(0), "), got ", bias.sizes());
  const Tensor x = f.in(0).contiguous(), h0 = f.in(3).contiguous();
  const Tensor turned = f.in(1).t().contiguous();
  const std::int64_t n = x.size(0), size = turned.size(0);
  const Tensor h = f.out(Sizes{n, size}, x.dtype()), gates = f.out(Sizes{n, 4 * size}, x.dtype());
  const Tensor state = new_matrix(h0.size(0), 3 * size, h);  // its part of one step's sums
  const Rows weight(turned);
  for (const Step& step : steps_of(batch_sizes_)) {
    const Rows sums(state, 0, step.count), before = step.before_in(h0, h);
    f.kernels().matmul(f.exec(), sums.in_product<Out>(), before.in_product<In>(),
                       weight.in_product<In>(), bias.as<In>(), Activation::kNone);
    f.kernels().gru(f.exec(), step.of(gates).as<Out>(), step.of(h).as<Out>(), step.of(x).as<In>(),
                    sums.as<In>(), before.as<In>());
  }
  f.save_out(0);
  f.save_out(1);
  f.save(f.in(1));
  f.save(f.in(3));
}

Grads Gru::backward(const Reverse& r) const {
  return GradMode::is_enabled() || r.grad(1).defined() ? composite(r) : fused(r);
}

Grads Gru::fused(const Reverse& r) const {
  const Tensor h = r.saved(0), gates = r.saved(1), w_hh = r.saved(2).contiguous(),
               h0 = r.saved(3).contiguous();
  const Tensor dh = sum_of(r, 0, h), dh0 = zeros(h0.sizes(), h0.options());
  const Tensor dx = new_matrix(h.size(0), w_hh.size(0), h),
               dstate = new_matrix(h.size(0), w_hh.size(0), h);
  const Kernels& kernels = kernels_for(h.device());
  const Exec exec(h.device());
  const Rows weight(w_hh);
  const std::vector<Step> steps = steps_of(batch_sizes_);
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const Rows sums = step->of(dstate), before = step->before_in(dh0, dh);
    kernels.gru_grad(exec, step->of(dx).as<Out>(), sums.as<Out>(), before.as<InOut>(),
                     step->of(dh).as<In>(), step->of(gates).as<In>(),
                     step->before_in(h0, h).as<In>());
    if (step->initial && !r.needs(3)) continue;
    kernels.matmul(exec, before.in_product<Out>(), sums.in_product<In>(), weight.in_product<In>(),
                   before.in_product<In>(), Activation::kNone);
  }
  Grads out(4);
  out[0] = dx;
  if (r.needs(1)) out[1] = matmul(dstate.t(), states_before(h0, h, batch_sizes_));
  if (r.needs(2)) out[2] = sum(dstate, 0);
  out[3] = dh0;
  return out;
}

Grads Gru::composite(const Reverse& r) const {
  const Tensor h = r.saved(0), gates = r.saved(1), w_hh = r.saved(2), h0 = r.saved(3);
  const Tensor h_before = states_before(h0, h, batch_sizes_);
  const Tensor grad_h = r.grad_or_zeros(0), grad_gates = r.grad_or_zeros(1);
  const std::vector<Step> steps = steps_of(batch_sizes_);
  std::vector<Tensor> of_x(steps.size()), of_state(steps.size());
  Tensor dh;
  for (std::size_t t = steps.size(); t-- > 0;) {
    const auto part = [&](const Tensor& of) {
      return of.narrow(0, steps[t].first, steps[t].count);
    };
    const std::vector<Tensor> gate = part(gates).chunk(4, 1), grad = part(grad_gates).chunk(4, 1);
    const Tensor &reset = gate[0], &z = gate[1], &n = gate[2], &m = gate[3];
    dh = added(part(grad_h), dh);
    const Tensor dn = through_tanh(grad[2] + dh * (1 - z), n);
    const Tensor dz = through_sigmoid(grad[1] + dh * (part(h_before) - n), z);
    const Tensor dr = through_sigmoid(grad[0] + dn * m, reset);
    of_x[t] = cat({dr, dz, dn}, 1);
    of_state[t] = cat({dr, dz, grad[3] + dn * reset}, 1);
    dh = dh * z + matmul(of_state[t], w_hh);
  }
  const Tensor dstate = cat(of_state, 0);
  Grads out(4);
  out[0] = cat(of_x, 0);
  if (r.needs(1)) out[1] = matmul(dstate.t(), h_before);
  if (r.needs(2)) out[2] = sum(dstate, 0);
  out[3] = added(zeros(h0.sizes(), h0.options()), dh);
  return out;
}

}  // namespace ops

LstmStates lstm_layer(const TensorArg& x,
                      const Tensor& w_hh,
                      const Tensor& h0,
                      const Tensor& c0,
                      std::vector<std::int64_t> batch_sizes) {
  const Call call(x.loc);
  const Tensor* const inputs[] = {&*x, &w_hh, &h0, &c0};
  const Tensors out =
      apply_n(ops::Lstm(std::move(batch_sizes)), ArrayRef<const Tensor*>(inputs, 4));
  return {out[0], out[1]};
}

Tensor gru_layer(const TensorArg& x,
                 const Tensor& w_hh,
                 const Tensor& b_hh,
                 const Tensor& h0,
                 std::vector<std::int64_t> batch_sizes) {
  const Call call(x.loc);
  const Tensor* const inputs[] = {&*x, &w_hh, &b_hh, &h0};
  return apply_n(ops::Gru(std::move(batch_sizes)), ArrayRef<const Tensor*>(inputs, 4))[0];
}

}  // namespace taper
