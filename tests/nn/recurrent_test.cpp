// LSTM, GRU and RNN modules beyond what PyTorch's numbers say: names, shapes, forms of input that
// must agree, dropout, cells, refusals.
#include "taper/nn/recurrent.h"

#include "taper/autograd/ops/index.h"
#include "taper/core/threads.h"
#include "taper/tests/nn/nn_testing.h"

namespace taper::testing {
namespace {

namespace rnn = nn::utils::rnn;

using List = std::vector<Tensor>;

std::string names(const nn::Module& module) {
  std::string all;
  for (const auto& p : module.named_parameters()) all += p.key() + str(p.value().sizes()) + " ";
  return all;
}

// y and the last states.
List listed(const std::tuple<Tensor, std::tuple<Tensor, Tensor>>& result) {
  const auto& [y, states] = result;
  return {y, std::get<0>(states), std::get<1>(states)};
}

List listed(const std::tuple<Tensor, Tensor>& result) {
  return {std::get<0>(result), std::get<1>(result)};
}

void expect_equal(const List& a, const List& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) expect_close(a[i], b[i], 1e-12);
}

template <class Module, class Options> struct Of {
  using Holder = Module;
  using OptionsOf = Options;
};

using Kinds = ::testing::
    Types<Of<nn::LSTM, nn::LSTMOptions>, Of<nn::GRU, nn::GRUOptions>, Of<nn::RNN, nn::RNNOptions>>;

// Every combination of layers, directions and bias.
template <class Kind, class F> void for_each_module(const F& f) {
  for (const std::int64_t layers : {1, 2}) {
    for (const bool both : {false, true}) {
      for (const bool bias : {false, true}) {
        auto options = typename Kind::OptionsOf(3, 2);
        options.num_layers(layers).bidirectional(both).bias(bias);
        SCOPED_TRACE(str(layers, " layers, both directions ", both, ", bias ", bias));
        typename Kind::Holder module(options);
        module->to(kFloat64);
        f(module);
      }
    }
  }
}

template <class Kind> class Recurrent : public ::testing::Test {};
TYPED_TEST_SUITE(Recurrent, Kinds);

TYPED_TEST(Recurrent, PackedSequencesAreRunOneByOne) {
  for_each_module<TypeParam>([](auto& module) {
    for (const std::vector<std::int64_t>& lengths :
         {std::vector<std::int64_t>{4, 2, 1}, {1, 3, 4}, {2, 2, 2}, {1, 1, 1}}) {
      const Tensor x = sample({4, 3, 3}, 5);
      const auto packed = rnn::pack_padded_sequence(x, tensor(lengths), false, false);
      const auto [y, last] = module->forward_with_packed_input(packed);
      const Tensor padded = std::get<0>(rnn::pad_packed_sequence(y));
      const List all = listed(std::tuple(padded, last));
      for (std::int64_t i = 0; i < 3; ++i) {
        const std::int64_t n = lengths[static_cast<std::size_t>(i)];
        const List one = listed(module(x.narrow(0, 0, n).select(1, i)));  // (T, I)
        expect_close(all[0].narrow(0, 0, n).select(1, i), one[0], 1e-12);
        for (std::size_t k = 1; k < one.size(); ++k) {
          expect_close(all[k].select(1, i), one[k], 1e-12);
        }
      }
    }
  });
}

TYPED_TEST(Recurrent, BatchFirstIsTheOtherOrder) {
  for_each_module<TypeParam>([](auto& module) {
    const Tensor x = sample({4, 2, 3});
    List a = listed(module(x));
    module->options.batch_first(true);
    const List b = listed(module(x.transpose(0, 1)));
    a[0] = a[0].transpose(0, 1);
    expect_equal(a, b);
  });
}

// The states after the first steps are what the last steps begin with.
TYPED_TEST(Recurrent, GoesOnFromGivenStates) {
  typename TypeParam::Holder module(typename TypeParam::OptionsOf(3, 2).num_layers(2));
  module->to(kFloat64);
  const Tensor x = sample({5, 2, 3});
  const auto first = module(x.narrow(0, 0, 2));
  const auto second = module(x.narrow(0, 2, 3), std::get<1>(first));
  List joined = listed(second);
  joined[0] = cat({std::get<0>(first), joined[0]}, 0);
  expect_equal(joined, listed(module(x)));
}

TYPED_TEST(Recurrent, GradientsReachEveryParameter) {
  for_each_module<TypeParam>([](auto& module) {
    const Tensor x = sample({3, 2, 3});
    expect_parameter_gradients(*module, [&] {
      Tensor all;
      for (const Tensor& t : listed(module(x))) {
        all = all.defined() ? cat({all, t.flatten()}) : t.flatten();
      }
      return all;
    });
  });
}

TYPED_TEST(Recurrent, DropoutFallsBetweenLayersWhileTraining) {
  const auto options = typename TypeParam::OptionsOf(3, 40).num_layers(2).dropout(0.5);
  typename TypeParam::Holder module(options);
  const Tensor x = sample({4, 2, 3}).to(kFloat32);
  const Tensor first = listed(module(x))[0], second = listed(module(x))[0];
  EXPECT_FALSE(first.equal(second));
  module->eval();
  EXPECT_TRUE(listed(module(x))[0].equal(listed(module(x))[0]));
  typename TypeParam::Holder single(typename TypeParam::OptionsOf(3, 40).dropout(0.5));
  EXPECT_TRUE(listed(single(x))[0].equal(listed(single(x))[0]));
}

TYPED_TEST(Recurrent, BeginsUniformAndClonesAndComesBack) {
  const auto options = typename TypeParam::OptionsOf(30, 64).num_layers(2).bidirectional(true);
  typename TypeParam::Holder module(options);
  for (const Tensor& p : module->parameters()) {
    if (p.dim() == 2) expect_uniform(p, 0.125);
  }
  const auto copy = std::dynamic_pointer_cast<typename TypeParam::Holder::Impl>(module->clone());
  const Tensor x = sample({3, 2, 30}).to(kFloat32);
  EXPECT_TRUE(listed(module(x))[0].equal(listed(copy->forward(x))[0]));
  typename TypeParam::Holder other(options);
  other->load_state_dict(module->state_dict());
  EXPECT_TRUE(listed(module(x))[0].equal(listed(other(x))[0]));
}

TYPED_TEST(Recurrent, GivesMetaShapes) {
  for_each_module<TypeParam>([](auto& module) {
    const List real = listed(module(sample({4, 2, 3})));
    module->to(kMeta);
    const List meta = listed(module(empty({4, 2, 3}, TensorOptions(kFloat64).device(kMeta))));
    for (std::size_t i = 0; i < real.size(); ++i) {
      EXPECT_TRUE(meta[i].is_meta());
      EXPECT_TRUE(meta[i].sizes() == real[i].sizes());
    }
  });
}

TYPED_TEST(Recurrent, RefusalsNameTheLineAndTheShapes) {
  typename TypeParam::Holder module(3, 2);
  const auto name = module->name();
  const Tensor wide = sample({4, 2, 5});
  expect_names(error_of([&] { module(wide); }), __LINE__, "",
               {name, "expected x (T, B, 3) or (T, 3)", "(4, 2, 5)"});
  expect_names(error_of([&] { module(empty({0, 2, 3})); }), __LINE__, "", {"T above 0"});
  expect_names(error_of([&] { module(empty({3})); }), __LINE__, "", {"(T, 3)"});
  const auto packed = rnn::pack_padded_sequence(wide, tensor({4, 2}));
  expect_names(error_of([&] { module->forward_with_packed_input(packed); }), __LINE__, "",
               {name, "packed data (N, 3)", "(6, 5)"});
  EXPECT_THROW(typename TypeParam::Holder(3, 0), Error);
  EXPECT_THROW(typename TypeParam::Holder(typename TypeParam::OptionsOf(3, 2).num_layers(0)),
               Error);
  EXPECT_THROW(typename TypeParam::Holder(typename TypeParam::OptionsOf(3, 2).dropout(2)), Error);
}

TEST(LSTM, NamesParametersAsLibTorchDoes) {
  const nn::LSTM lstm(nn::LSTMOptions(3, 2).num_layers(2).bidirectional(true));
  EXPECT_EQ(names(*lstm),
            "weight_ih_l0(8, 3) weight_hh_l0(8, 2) bias_ih_l0(8) bias_hh_l0(8) "
            "weight_ih_l0_reverse(8, 3) weight_hh_l0_reverse(8, 2) bias_ih_l0_reverse(8) "
            "bias_hh_l0_reverse(8) "
            "weight_ih_l1(8, 4) weight_hh_l1(8, 2) bias_ih_l1(8) bias_hh_l1(8) "
            "weight_ih_l1_reverse(8, 4) weight_hh_l1_reverse(8, 2) bias_ih_l1_reverse(8) "
            "bias_hh_l1_reverse(8) ");
  EXPECT_EQ(names(*nn::GRU(nn::GRUOptions(3, 2).bias(false))),
            "weight_ih_l0(6, 3) weight_hh_l0(6, 2) ");
  EXPECT_EQ(printed(*lstm), "LSTM(3, 2, num_layers=2, bidirectional=true)");
  EXPECT_EQ(printed(*nn::GRU(nn::GRUOptions(3, 2).bias(false).batch_first(true).dropout(0.25))),
            "GRU(3, 2, bias=false, batch_first=true, dropout=0.25)");
}

TEST(LSTM, RefusesStatesOfOtherShapes) {
  nn::LSTM lstm(3, 2);
  const Tensor good = zeros({1, 2, 2}), bad = zeros({2, 2, 2});
  expect_error(
      [&] {
        lstm(zeros({4, 2, 3}), std::tuple(bad, good));
      },
      {"expected states (1, 2, 2) for x (4, 2, 3), got (2, 2, 2)"});
  expect_error([&] { lstm(zeros({4, 2, 3}), std::tuple(good, bad)); }, {"got (2, 2, 2)"});
  expect_error([&] { nn::GRU(3, 2)(zeros({4, 3}), zeros({2})); }, {"expected states"});
}

TEST(LSTM, ThreadsDoNotChangeBits) {
  const int before = get_num_threads();
  nn::LSTM lstm(nn::LSTMOptions(64, 128).batch_first(true).bidirectional(true));
  const Tensor x = sample({32, 8, 64}).to(kFloat32);
  List first;
  for (const int threads : {1, 2, 4}) {
    set_num_threads(threads);
    lstm->zero_grad();
    List all = listed(lstm(x));
    all[0].square().sum().backward();
    for (const Tensor& p : lstm->parameters()) all.push_back(p.grad().clone());
    if (first.empty()) first = all;
    for (std::size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(all[i].equal(first[i])) << i;
  }
  set_num_threads(before);
}

// A cell, step by step, is a layer; so is one without a batch.
TEST(Cells, AreOneStepOfALayer) {
  nn::LSTM lstm(3, 2);
  nn::GRU gru(3, 2);
  nn::LSTMCell lstm_cell(3, 2);
  nn::GRUCell gru_cell(3, 2);
  const auto take = [](const nn::Module& from, const nn::Module& to) {
    const auto source = from.parameters(), target = to.parameters();
    for (std::size_t i = 0; i < source.size(); ++i) target[i].detach().copy_(source[i].detach());
  };
  take(*lstm, *lstm_cell);
  take(*gru, *gru_cell);
  const Tensor x = sample({4, 2, 3}).to(kFloat32);
  std::optional<std::tuple<Tensor, Tensor>> hc, one_hc;
  Tensor h, one_h;
  for (std::int64_t t = 0; t < 4; ++t) {
    hc = lstm_cell(x[t], hc);
    one_hc = lstm_cell(x[t][1], one_hc);
    h = gru_cell(x[t], h);
    one_h = gru_cell(x[t][1], one_h);
  }
  const auto [y, states] = lstm(x);
  EXPECT_TRUE(std::get<0>(*hc).equal(std::get<0>(states)[0]));
  EXPECT_TRUE(std::get<1>(*hc).equal(std::get<1>(states)[0]));
  EXPECT_TRUE(std::get<0>(*one_hc).equal(std::get<0>(states)[0][1]));
  EXPECT_TRUE(h.equal(std::get<1>(gru(x))[0]));
  EXPECT_TRUE(one_h.equal(h[1]));
  EXPECT_EQ(names(*gru_cell), "weight_ih(6, 3) weight_hh(6, 2) bias_ih(6) bias_hh(6) ");
  EXPECT_EQ(printed(*lstm_cell), "LSTMCell(3, 2)");
}

TEST(Cells, RefuseWhatDoesNotFit) {
  expect_error([] { nn::LSTMCell(3, 2)(zeros({2, 4})); }, {"LSTMCell", "expected x (B, 3) or (3)"});
  expect_error(
      [] {
        nn::GRUCell(3, 2)(zeros({2, 3}), zeros({2, 3}));
      },
      {"GRUCell", "expected states (2, 2)"});
  EXPECT_THROW(nn::GRUCell(3, 0), Error);
}

TEST(RNN, TakesTanhOrReluAlone) {
  nn::RNN rnn(nn::RNNOptions(3, 2).nonlinearity(kReLU));
  EXPECT_TRUE(std::get<0>(rnn(sample({4, 2, 3}).to(kFloat32))).ge(0).all().item<bool>());
  EXPECT_THROW(nn::RNN(nn::RNNOptions(3, 2).nonlinearity(kLinear)), Error);
}

}  // namespace
}  // namespace taper::testing
