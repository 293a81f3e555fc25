// Recurrent modules: how layers and directions are stacked, and what their parameters are called.
#include "taper/nn/recurrent.h"

#include <cmath>
#include <ostream>

#include "taper/autograd/ops/create.h"
#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/gather_scatter.h"
#include "taper/autograd/ops/index.h"
#include "taper/autograd/ops/matmul.h"
#include "taper/autograd/ops/random.h"
#include "taper/autograd/ops/recurrent.h"
#include "taper/autograd/ops/shape.h"
#include "taper/autograd/ops/unary.h"

namespace taper::nn {
namespace {

using Numbers = std::vector<std::int64_t>;
using utils::rnn::PackedSequence;

// How many rows of weights there are for each unit of the state.
template <class Module> constexpr std::int64_t kGates = 1;
template <> constexpr std::int64_t kGates<LSTMImpl> = 4;
template <> constexpr std::int64_t kGates<LSTMCellImpl> = 4;
template <> constexpr std::int64_t kGates<GRUImpl> = 3;
template <> constexpr std::int64_t kGates<GRUCellImpl> = 3;

// A weight that nobody sees until reset_parameters has filled it. A constructor does not know the
// user's line; ours would mislead.
Tensor raw(IntArrayRef sizes) {
  return empty(sizes, {}, Loc());
}

Tensor raw_bias(bool has_bias, std::int64_t size) {
  return has_bias ? raw({size}) : Tensor();
}

void fill(const Module& module, std::int64_t hidden_size) {
  const double bound = hidden_size > 0 ? 1 / std::sqrt(static_cast<double>(hidden_size)) : 0;
  for (const Tensor& p : module.parameters()) init::uniform_(p, -bound, bound);
}

// The input's share of all sums, with both biases.
Tensor sums_of(const Tensor& rows, const RecurrentWeights& w) {
  return taper::linear(rows, w.w_ih, w.b_ih.defined() ? w.b_ih + w.b_hh : Tensor());
}

// One layer in one direction over rows (N, I) of sequences; the states of each row, (N, H).
LstmStates run_layer(const LSTMImpl* /*module*/,
                     const Tensor& rows,
                     const RecurrentWeights& w,
                     const Tensor& h0,
                     const Tensor& c0,
                     const Numbers& batch_sizes) {
  return lstm_layer(sums_of(rows, w), w.w_hh, h0, c0, batch_sizes);
}

LstmStates run_layer(const GRUImpl* /*module*/,
                     const Tensor& rows,
                     const RecurrentWeights& w,
                     const Tensor& h0,
                     const Tensor& /*c0*/,
                     const Numbers& batch_sizes) {
  return {gru_layer(taper::linear(rows, w.w_ih, w.b_ih), w.w_hh, w.b_hh, h0, batch_sizes), {}};
}

LstmStates run_layer(const RNNImpl* module,
                     const Tensor& rows,
                     const RecurrentWeights& w,
                     const Tensor& h0,
                     const Tensor& /*c0*/,
                     const Numbers& batch_sizes) {
  const bool is_tanh = module->options.nonlinearity() == kTanh;
  const Tensor sums = sums_of(rows, w);
  std::vector<Tensor> states;
  Tensor h = h0;
  std::int64_t first = 0;
  for (const std::int64_t count : batch_sizes) {
    const Tensor before = count == h.size(0) ? h : h.narrow(0, 0, count);
    const Tensor sum = sums.narrow(0, first, count).addmm(before, w.w_hh.t());
    h = is_tanh ? tanh(sum) : relu(sum);
    states.push_back(h);
    first += count;
  }
  return {cat(states, 0), {}};
}

bool is_rectangle(const Numbers& batch_sizes) {
  return batch_sizes.front() == batch_sizes.back();
}

Tensor select_rows(const Tensor& rows, const Numbers& which) {
  return rows.index_select(0, tensor(which).to(rows.device()));
}

// How long each sequence is, and the row of each step's first.
struct Lengths {
  Numbers steps, first;

  explicit Lengths(const Numbers& batch_sizes) : steps(static_cast<std::size_t>(batch_sizes[0])) {
    std::int64_t row = 0;
    for (const std::int64_t count : batch_sizes) {
      for (std::int64_t i = 0; i < count; ++i) ++steps[static_cast<std::size_t>(i)];
      first.push_back(row);
      row += count;
    }
  }

  std::int64_t row(std::size_t sequence, std::int64_t step) const {
    return first[static_cast<std::size_t>(step)] + static_cast<std::int64_t>(sequence);
  }
};

// Each sequence from its end to its start; twice gives the first again.
Tensor reversed(const Tensor& rows, const Numbers& batch_sizes) {
  if (is_rectangle(batch_sizes)) {
    const auto steps = static_cast<std::int64_t>(batch_sizes.size());
    return rows.view({steps, batch_sizes[0], rows.size(1)}).flip(0).flatten(0, 1);
  }
  const Lengths lengths(batch_sizes);
  Numbers which;
  for (std::size_t t = 0; t < batch_sizes.size(); ++t) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(batch_sizes[t]); ++i) {
      which.push_back(lengths.row(i, lengths.steps[i] - 1 - static_cast<std::int64_t>(t)));
    }
  }
  return select_rows(rows, which);
}

// The row of each sequence's last step.
Tensor last_of(const Tensor& rows, const Numbers& batch_sizes) {
  const std::int64_t batch = batch_sizes[0];
  if (is_rectangle(batch_sizes)) return rows.narrow(0, rows.size(0) - batch, batch);
  const Lengths lengths(batch_sizes);
  Numbers which;
  for (std::size_t i = 0; i < lengths.steps.size(); ++i) {
    which.push_back(lengths.row(i, lengths.steps[i] - 1));
  }
  return select_rows(rows, which);
}

template <class Options>
void print_options(std::ostream& out, const Module& module, const Options& o) {
  out << module.name() << '(' << o.input_size() << ", " << o.hidden_size();
  if (!o.bias()) out << ", bias=false";
}

}  // namespace

template <class Derived, class Options>
RecurrentImplBase<Derived, Options>::RecurrentImplBase(const Options& options_in)
    : options(options_in) {
  TAPER_CHECK(options.input_size() >= 0 && options.hidden_size() > 0 && options.num_layers() > 0,
              this->name(), ": hidden_size and num_layers must be above 0, got input_size ",
              options.input_size(), ", hidden_size ", options.hidden_size(), ", num_layers ",
              options.num_layers());
  TAPER_CHECK(options.dropout() >= 0 && options.dropout() <= 1, this->name(),
              ": dropout must be in [0, 1], got ", options.dropout());
  reset();
}

template <class Derived, class Options> void RecurrentImplBase<Derived, Options>::reset() {
  const std::int64_t directions = options.bidirectional() ? 2 : 1, h = options.hidden_size();
  const std::int64_t rows = kGates<Derived> * h;
  weights_.clear();
  for (std::int64_t i = 0; i < options.num_layers() * directions; ++i) {
    const std::int64_t layer = i / directions;
    const std::int64_t inputs = layer == 0 ? options.input_size() : directions * h;
    const std::string suffix = str("_l", layer, i % directions == 1 ? "_reverse" : "");
    const bool bias = options.bias();
    RecurrentWeights w;
    w.w_ih = this->register_parameter("weight_ih" + suffix, raw({rows, inputs}));
    w.w_hh = this->register_parameter("weight_hh" + suffix, raw({rows, h}));
    if (bias) w.b_ih = this->register_parameter("bias_ih" + suffix, raw({rows}));
    if (bias) w.b_hh = this->register_parameter("bias_hh" + suffix, raw({rows}));
    weights_.push_back(w);
  }
  reset_parameters();
}

template <class Derived, class Options>
void RecurrentImplBase<Derived, Options>::reset_parameters() {
  fill(*this, options.hidden_size());
}

template <class Derived, class Options>
void RecurrentImplBase<Derived, Options>::pretty_print(std::ostream& out) const {
  print_options(out, *this, options);
  if (options.num_layers() != 1) out << ", num_layers=" << options.num_layers();
  if (options.batch_first()) out << ", batch_first=true";
  if (options.dropout() != 0) out << ", dropout=" << options.dropout();
  if (options.bidirectional()) out << ", bidirectional=true";
  out << ')';
}

template <class Derived, class Options>
std::vector<Tensor> RecurrentImplBase<Derived, Options>::all_weights() const {
  return this->parameters();
}

// Zeros for a state that is not given; refuses one that does not fit.
template <class Derived, class Options>
void RecurrentImplBase<Derived, Options>::prepare(Tensor& state,
                                                  std::int64_t batch,
                                                  const Tensor& x) const {
  const std::int64_t layers = options.num_layers() * (options.bidirectional() ? 2 : 1);
  const Sizes sizes{layers, batch, options.hidden_size()};
  if (!state.defined()) state = zeros(sizes, x.options());
  TAPER_CHECK(state.sizes() == IntArrayRef(sizes), this->name(), ": expected states ",
              IntArrayRef(sizes), " for x ", x.sizes(), ", got ", state.sizes());
}

template <class Derived, class Options>
Tensor RecurrentImplBase<Derived, Options>::run_layers(Tensor rows,
                                                       const Numbers& batch_sizes,
                                                       States& states) {
  const std::size_t directions = options.bidirectional() ? 2 : 1;
  const auto layers = static_cast<std::size_t>(options.num_layers());
  std::vector<Tensor> last_h, last_c;
  for (std::size_t layer = 0; layer < layers; ++layer) {
    std::vector<Tensor> y;
    for (std::size_t d = 0; d < directions; ++d) {
      const std::size_t i = layer * directions + d;
      const auto first = [&](const Tensor& all) {
        return all.defined() ? all.select(0, static_cast<std::int64_t>(i)) : all;
      };
      const LstmStates s =
          run_layer(static_cast<Derived*>(this), d == 0 ? rows : reversed(rows, batch_sizes),
                    weights_[i], first(states.h), first(states.c), batch_sizes);
      last_h.push_back(last_of(s.h, batch_sizes));
      if (s.c.defined()) last_c.push_back(last_of(s.c, batch_sizes));
      y.push_back(d == 0 ? s.h : reversed(s.h, batch_sizes));
    }
    rows = directions == 1 ? y[0] : cat(y, 1);
    const bool drops = this->is_training() && options.dropout() > 0 && layer + 1 < layers;
    if (drops) rows = taper::dropout(rows, options.dropout(), true);
  }
  states.h = stack(last_h, 0);
  if (!last_c.empty()) states.c = stack(last_c, 0);
  return rows;
}

template <class Derived, class Options>
Tensor RecurrentImplBase<Derived, Options>::run(const Tensor& x, States& states) {
  const bool batched = x.dim() == 3, batch_first = options.batch_first() && batched;
  TAPER_CHECK((batched || x.dim() == 2) && x.size(-1) == options.input_size() &&
                  x.size(batch_first ? 1 : 0) > 0,
              this->name(), ": expected x ", options.batch_first() ? "(B, T, " : "(T, B, ",
              options.input_size(), ") or (T, ", options.input_size(), "), T above 0, got ",
              x.sizes());
  const Tensor by_step = batch_first ? x.transpose(0, 1) : batched ? x : x.unsqueeze(1);
  const std::int64_t steps = by_step.size(0), batch = by_step.size(1);
  for (Tensor* state : {&states.h, &states.c}) {
    if (!batched && state->defined()) *state = state->unsqueeze(1);
    if (state == &states.h || kGates<Derived> == 4) prepare(*state, batch, x);
  }
  Tensor y = run_layers(by_step.reshape({steps * batch, by_step.size(2)}),
                        Numbers(static_cast<std::size_t>(steps), batch), states);
  y = y.view({steps, batch, y.size(1)});
  if (batched) return batch_first ? y.transpose(0, 1) : y;
  states.h = states.h.squeeze(1);
  if (states.c.defined()) states.c = states.c.squeeze(1);
  return y.squeeze(1);
}

template <class Derived, class Options>
PackedSequence RecurrentImplBase<Derived, Options>::run(const PackedSequence& x, States& states) {
  TAPER_CHECK(x.data().dim() == 2 && x.data().size(1) == options.input_size(), this->name(),
              ": expected packed data (N, ", options.input_size(), "), got ", x.data().sizes());
  const auto* sizes = x.batch_sizes().template data_ptr<std::int64_t>();
  const Numbers batch_sizes(sizes, sizes + x.batch_sizes().numel());
  const auto in_order_of = [](Tensor& state, const Tensor& order) {
    if (state.defined() && order.defined()) state = state.index_select(1, order);
  };
  for (Tensor* state : {&states.h, &states.c}) {
    if (state == &states.h || kGates<Derived> == 4) prepare(*state, batch_sizes[0], x.data());
    in_order_of(*state, x.sorted_indices());
  }
  const Tensor y = run_layers(x.data(), batch_sizes, states);
  for (Tensor* state : {&states.h, &states.c}) in_order_of(*state, x.unsorted_indices());
  return PackedSequence(y, x.batch_sizes(), x.sorted_indices(), x.unsorted_indices());
}

template <class Derived, class Options>
std::tuple<Tensor, Tensor> RecurrentImplBase<Derived, Options>::run_plain(const TensorArg& x,
                                                                          const Tensor& hx) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  States states{hx, {}};
  const Tensor y = run(*x, states);
  return {y, states.h};
}

template <class Derived, class Options>
std::tuple<PackedSequence, Tensor> RecurrentImplBase<Derived, Options>::run_plain(
    const PackedSequence& x, const Tensor& hx, Loc loc) {
  const Call call(loc);
  const ModuleScope scope(*this);
  States states{hx, {}};
  const PackedSequence y = run(x, states);
  return {y, states.h};
}

template class RecurrentImplBase<LSTMImpl, LSTMOptions>;
template class RecurrentImplBase<GRUImpl, GRUOptions>;
template class RecurrentImplBase<RNNImpl, RNNOptions>;

std::tuple<Tensor, LSTMImpl::HX> LSTMImpl::forward(const TensorArg& x, std::optional<HX> hx) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  States states;
  if (hx) states = {std::get<0>(*hx), std::get<1>(*hx)};
  const Tensor y = run(*x, states);
  return {y, {states.h, states.c}};
}

std::tuple<PackedSequence, LSTMImpl::HX> LSTMImpl::forward_with_packed_input(
    const PackedSequence& x, std::optional<HX> hx, Loc loc) {
  const Call call(loc);
  const ModuleScope scope(*this);
  States states;
  if (hx) states = {std::get<0>(*hx), std::get<1>(*hx)};
  const PackedSequence y = run(x, states);
  return {y, {states.h, states.c}};
}

RNNImpl::RNNImpl(const RNNOptions& options_in) : RecurrentImplBase(options_in) {
  TAPER_CHECK(options.nonlinearity() == kTanh || options.nonlinearity() == kReLU,
              "RNN: the nonlinearity must be kTanh or kReLU");
}

template <class Derived>
RecurrentCellImplBase<Derived>::RecurrentCellImplBase(const RecurrentCellOptions& options_in)
    : options(options_in) {
  TAPER_CHECK(options.input_size() >= 0 && options.hidden_size() > 0, this->name(),
              ": hidden_size must be above 0, got input_size ", options.input_size(),
              ", hidden_size ", options.hidden_size());
  reset();
}

template <class Derived> void RecurrentCellImplBase<Derived>::reset() {
  const std::int64_t h = options.hidden_size(), rows = kGates<Derived> * h;
  weight_ih = this->register_parameter("weight_ih", raw({rows, options.input_size()}));
  weight_hh = this->register_parameter("weight_hh", raw({rows, h}));
  bias_ih = this->register_parameter("bias_ih", raw_bias(options.bias(), rows));
  bias_hh = this->register_parameter("bias_hh", raw_bias(options.bias(), rows));
  reset_parameters();
}

template <class Derived> void RecurrentCellImplBase<Derived>::reset_parameters() {
  fill(*this, options.hidden_size());
}

template <class Derived>
void RecurrentCellImplBase<Derived>::pretty_print(std::ostream& out) const {
  print_options(out, *this, options);
  out << ')';
}

template <class Derived> Tensor RecurrentCellImplBase<Derived>::rows_of(const Tensor& x) const {
  TAPER_CHECK((x.dim() == 1 || x.dim() == 2) && x.size(-1) == options.input_size(), this->name(),
              ": expected x (B, ", options.input_size(), ") or (", options.input_size(), "), got ",
              x.sizes());
  return x.dim() == 1 ? x.unsqueeze(0) : x;
}

template <class Derived>
Tensor RecurrentCellImplBase<Derived>::state_of(const Tensor& state, const Tensor& x) const {
  Sizes sizes{x.size(0), options.hidden_size()};
  if (x.dim() == 1) sizes = {options.hidden_size()};
  const Tensor s = state.defined() ? state : zeros(sizes, x.options());
  TAPER_CHECK(s.sizes() == IntArrayRef(sizes), this->name(), ": expected states ",
              IntArrayRef(sizes), " for x ", x.sizes(), ", got ", s.sizes());
  return x.dim() == 1 ? s.unsqueeze(0) : s;
}

template class RecurrentCellImplBase<LSTMCellImpl>;
template class RecurrentCellImplBase<GRUCellImpl>;

std::tuple<Tensor, Tensor> LSTMCellImpl::forward(const TensorArg& x,
                                                 std::optional<std::tuple<Tensor, Tensor>> hx) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  const Tensor rows = rows_of(*x);
  const Tensor h = state_of(hx ? std::get<0>(*hx) : Tensor(), *x),
               c = state_of(hx ? std::get<1>(*hx) : Tensor(), *x);
  const Tensor sums = sums_of(rows, {weight_ih, weight_hh, bias_ih, bias_hh});
  const LstmStates s = lstm_layer(sums, weight_hh, h, c, {rows.size(0)});
  if (x->dim() == 1) return {s.h.squeeze(0), s.c.squeeze(0)};
  return {s.h, s.c};
}

Tensor GRUCellImpl::forward(const TensorArg& x, const Tensor& hx) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  const Tensor rows = rows_of(*x);
  const Tensor sums = taper::linear(rows, weight_ih, bias_ih);
  const Tensor h = gru_layer(sums, weight_hh, bias_hh, state_of(hx, *x), {rows.size(0)});
  return x->dim() == 1 ? h.squeeze(0) : h;
}

}  // namespace taper::nn
