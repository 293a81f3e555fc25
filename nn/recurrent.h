// Recurrent modules: LSTM, GRU and the plain RNN over sequences, and their cells for one step.
#pragma once
#include <optional>
#include <tuple>

#include "taper/nn/init.h"
#include "taper/nn/module.h"
#include "taper/nn/sequence.h"

namespace taper::nn {

// Own is the class of options that derives from it, which its setters return.
template <class Own> class RecurrentOptions {
 public:
  RecurrentOptions(std::int64_t input_size, std::int64_t hidden_size)
      : input_size_(input_size), hidden_size_(hidden_size) {}

  std::int64_t input_size() const { return input_size_; }
  std::int64_t hidden_size() const { return hidden_size_; }
  std::int64_t num_layers() const { return num_layers_; }
  Own& num_layers(std::int64_t x) { return num_layers_ = x, own(); }
  bool bias() const { return bias_; }
  Own& bias(bool x) { return bias_ = x, own(); }
  bool batch_first() const { return batch_first_; }
  Own& batch_first(bool x) { return batch_first_ = x, own(); }
  double dropout() const { return dropout_; }
  Own& dropout(double x) { return dropout_ = x, own(); }
  bool bidirectional() const { return bidirectional_; }
  Own& bidirectional(bool x) { return bidirectional_ = x, own(); }

 private:
  Own& own() { return static_cast<Own&>(*this); }

  std::int64_t input_size_, hidden_size_, num_layers_ = 1;
  bool bias_ = true, batch_first_ = false, bidirectional_ = false;
  double dropout_ = 0;
};

class LSTMOptions : public RecurrentOptions<LSTMOptions> {
 public:
  using RecurrentOptions::RecurrentOptions;
};

class GRUOptions : public RecurrentOptions<GRUOptions> {
 public:
  using RecurrentOptions::RecurrentOptions;
};

class RNNOptions : public RecurrentOptions<RNNOptions> {
 public:
  using RecurrentOptions::RecurrentOptions;

  init::Nonlinearity nonlinearity() const { return nonlinearity_; }
  RNNOptions& nonlinearity(init::Nonlinearity x) { return nonlinearity_ = x, *this; }

 private:
  init::Nonlinearity nonlinearity_ = kTanh;  // or kReLU
};

// The weights of one layer in one direction, gates stacked: (G H, I), (G H, H), (G H), (G H).
struct RecurrentWeights {
  Tensor w_ih, w_hh, b_ih, b_hh;
};

// L layers, the first on x (T, B, I), or (B, T, I) with batch_first, or one sequence (T, I), each
// other on the states of the one below; D directions, 1 or 2, the states of both side by side.
// -> y (T, B, D H), the last layer's states, and the last states (L D, B, H) of each layer and
// direction. hx holds their first states, of the same shape; zeros unless given. While training,
// dropout falls between layers. Parameters are weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0,
// weight_ih_l0_reverse, ..., uniform in +-1 / sqrt(H). There is no proj_size.
template <class Derived, class Options> class RecurrentImplBase : public Cloneable<Derived> {
 public:
  explicit RecurrentImplBase(const Options& options_in);

  void reset() override;
  void reset_parameters();
  void flatten_parameters() {}  // LibTorch gathers them for cuDNN here
  void pretty_print(std::ostream& out) const override;
  std::vector<Tensor> all_weights() const;

  Options options;

 protected:
  using PackedSequence = utils::rnn::PackedSequence;
  struct States {
    Tensor h, c;  // c of an LSTM alone
  };

  // y; `states` come as the first ones, or undefined, and leave as the last.
  Tensor run(const Tensor& x, States& states);
  PackedSequence run(const PackedSequence& x, States& states);
  // The same of modules without c, as their forward.
  std::tuple<Tensor, Tensor> run_plain(const TensorArg& x, const Tensor& hx);
  std::tuple<PackedSequence, Tensor> run_plain(const PackedSequence& x, const Tensor& hx, Loc loc);

 private:
  Tensor run_layers(Tensor rows, const std::vector<std::int64_t>& batch_sizes, States& states);
  void prepare(Tensor& state, std::int64_t batch, const Tensor& x) const;

  std::vector<RecurrentWeights> weights_;  // of layer l, direction d: l D + d
};

// Hochreiter and Schmidhuber 1997; the formulas are in core/recurrent_step.h.
class LSTMImpl : public RecurrentImplBase<LSTMImpl, LSTMOptions> {
 public:
  using HX = std::tuple<Tensor, Tensor>;  // h and c

  LSTMImpl(std::int64_t input_size, std::int64_t hidden_size)
      : LSTMImpl(LSTMOptions(input_size, hidden_size)) {}
  explicit LSTMImpl(const LSTMOptions& options_in) : RecurrentImplBase(options_in) {}

  std::tuple<Tensor, HX> forward(const TensorArg& x, std::optional<HX> hx = {});
  std::tuple<PackedSequence, HX> forward_with_packed_input(const PackedSequence& x,
                                                           std::optional<HX> hx = {},
                                                           Loc loc = Loc::current());
};
TAPER_MODULE(LSTM);

// Cho et al. 2014, in the form whose reset gate falls on the product with the state.
class GRUImpl : public RecurrentImplBase<GRUImpl, GRUOptions> {
 public:
  GRUImpl(std::int64_t input_size, std::int64_t hidden_size)
      : GRUImpl(GRUOptions(input_size, hidden_size)) {}
  explicit GRUImpl(const GRUOptions& options_in) : RecurrentImplBase(options_in) {}

  std::tuple<Tensor, Tensor> forward(const TensorArg& x, const Tensor& hx = {}) {
    return run_plain(x, hx);
  }

  std::tuple<PackedSequence, Tensor> forward_with_packed_input(const PackedSequence& x,
                                                               const Tensor& hx = {},
                                                               Loc loc = Loc::current()) {
    return run_plain(x, hx, loc);
  }
};
TAPER_MODULE(GRU);

// Elman 1990: h = tanh or relu of the sum.
class RNNImpl : public RecurrentImplBase<RNNImpl, RNNOptions> {
 public:
  RNNImpl(std::int64_t input_size, std::int64_t hidden_size)
      : RNNImpl(RNNOptions(input_size, hidden_size)) {}
  explicit RNNImpl(const RNNOptions& options_in);

  std::tuple<Tensor, Tensor> forward(const TensorArg& x, const Tensor& hx = {}) {
    return run_plain(x, hx);
  }

  std::tuple<PackedSequence, Tensor> forward_with_packed_input(const PackedSequence& x,
                                                               const Tensor& hx = {},
                                                               Loc loc = Loc::current()) {
    return run_plain(x, hx, loc);
  }
};
TAPER_MODULE(RNN);

extern template class RecurrentImplBase<LSTMImpl, LSTMOptions>;
extern template class RecurrentImplBase<GRUImpl, GRUOptions>;
extern template class RecurrentImplBase<RNNImpl, RNNOptions>;

class RecurrentCellOptions {
 public:
  RecurrentCellOptions(std::int64_t input_size, std::int64_t hidden_size)
      : input_size_(input_size), hidden_size_(hidden_size) {}

  std::int64_t input_size() const { return input_size_; }
  std::int64_t hidden_size() const { return hidden_size_; }
  bool bias() const { return bias_; }
  RecurrentCellOptions& bias(bool x) { return bias_ = x, *this; }

 private:
  std::int64_t input_size_, hidden_size_;
  bool bias_ = true;
};
using LSTMCellOptions = RecurrentCellOptions;
using GRUCellOptions = RecurrentCellOptions;

// One step: x (B, I) or (I), states (B, H) or (H), zeros unless given. Parameters as of a layer:
// weight_ih, weight_hh, bias_ih, bias_hh.
template <class Derived> class RecurrentCellImplBase : public Cloneable<Derived> {
 public:
  explicit RecurrentCellImplBase(const RecurrentCellOptions& options_in);

  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& out) const override;

  RecurrentCellOptions options;
  Tensor weight_ih, weight_hh, bias_ih, bias_hh;

 protected:
  // x as (B, I), and the state as (B, H) or zeros.
  Tensor rows_of(const Tensor& x) const;
  Tensor state_of(const Tensor& state, const Tensor& x) const;
};

class LSTMCellImpl : public RecurrentCellImplBase<LSTMCellImpl> {
 public:
  LSTMCellImpl(std::int64_t input_size, std::int64_t hidden_size)
      : LSTMCellImpl(LSTMCellOptions(input_size, hidden_size)) {}
  explicit LSTMCellImpl(const LSTMCellOptions& options_in) : RecurrentCellImplBase(options_in) {}

  std::tuple<Tensor, Tensor> forward(const TensorArg& x,
                                     std::optional<std::tuple<Tensor, Tensor>> hx = {});
};
TAPER_MODULE(LSTMCell);

class GRUCellImpl : public RecurrentCellImplBase<GRUCellImpl> {
 public:
  GRUCellImpl(std::int64_t input_size, std::int64_t hidden_size)
      : GRUCellImpl(GRUCellOptions(input_size, hidden_size)) {}
  explicit GRUCellImpl(const GRUCellOptions& options_in) : RecurrentCellImplBase(options_in) {}

  Tensor forward(const TensorArg& x, const Tensor& hx = {});
};
TAPER_MODULE(GRUCell);

extern template class RecurrentCellImplBase<LSTMCellImpl>;
extern template class RecurrentCellImplBase<GRUCellImpl>;

}  // namespace taper::nn
