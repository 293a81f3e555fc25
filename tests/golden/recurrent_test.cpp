// LSTM, GRU and RNN modules give PyTorch's outputs, last states and gradients, within 1e-9.
#include "taper/nn/recurrent.h"

#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "taper/autograd/backward.h"
#include "taper/autograd/ops/create.h"
#include "taper/autograd/ops/shape.h"
#include "taper/tests/golden/compare.h"

namespace taper::golden {
namespace {

namespace rnn = nn::utils::rnn;

constexpr double kTolerance = 1e-9;
constexpr std::int64_t kInput = 3, kHidden = 2;

using List = std::vector<Tensor>;
using Json = nlohmann::json;

struct Lines {
  std::shared_ptr<const std::string> blob;
  std::vector<Json> lines;  // the head first

  Lines() : blob(std::make_shared<const std::string>(read_data("recurrent.bin.gz"))) {
    std::istringstream text(read_data("recurrent.jsonl.gz"));
    for (std::string line; std::getline(text, line);) lines.push_back(Json::parse(line));
  }

  TensorRecord record(const Json& j) const {
    return dense_record(j.at("dtype"), j.at("shape"), blob, j.at("at"));
  }
};

template <class Options> Options options_of(const Json& j) {
  Options o(kInput, kHidden);
  o.num_layers(j.value("num_layers", 1)).bias(j.value("bias", true));
  o.batch_first(j.value("batch_first", false)).bidirectional(j.value("bidirectional", false));
  if constexpr (std::is_same_v<Options, nn::RNNOptions>) {
    if (j.value("nonlinearity", "tanh") == "relu") o.nonlinearity(kReLU);
  }
  return o;
}

List listed(const std::tuple<Tensor, Tensor>& states) {
  return {std::get<0>(states), std::get<1>(states)};
}

List listed(const Tensor& h) {
  return {h};
}

// One line of the file, run by a module of ours.
template <class Holder, class Options> class Case {
 public:
  Case(const Lines& file, const Json& line)
      : file_(file), line_(line), module_(options_of<Options>(line.at("options"))) {
    module_->to(kFloat64);
    const NoGradGuard no_grad;
    auto params = module_->named_parameters();
    EXPECT_EQ(params.size(), line.at("params").size());
    for (const auto& [name, record] : line.at("params").items()) {
      params[name].copy_(build(file.record(record)));
      wanted_[name] = params[name];
    }
    for (const auto& [name, record] : line.at("inputs").items()) {
      wanted_[name] = build(file.record(record)).requires_grad_();
    }
  }

  void check() {
    const List outputs = run();
    List cotangents, inputs;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const TensorRecord want = file_.record(line_.at("outputs")[i]);
      EXPECT_EQ(difference(outputs[i], want, kTolerance), "") << "output " << i;
      cotangents.push_back(cotangent(outputs[i], static_cast<int>(i), false));
    }
    for (const auto& [name, tensor] : wanted_) inputs.push_back(tensor);
    const List grads = grad(outputs, inputs, cotangents);
    std::size_t i = 0;
    for (const auto& [name, tensor] : wanted_) {
      const TensorRecord want = file_.record(line_.at("grads").at(name));
      EXPECT_EQ(difference(grads[i++], want, kTolerance), "") << "gradient of " << name;
    }
  }

 private:
  List run() {
    const Tensor x = wanted_.at("x");
    if (line_.at("lengths").is_null()) return joined(call(x));
    const auto lengths = line_.at("lengths").get<std::vector<std::int64_t>>();
    const bool first = module_->options.batch_first();
    const auto [y, last] = call(rnn::pack_padded_sequence(x, tensor(lengths), first, false));
    return joined(std::tuple(std::get<0>(rnn::pad_packed_sequence(y, first, 0.5)), last));
  }

  template <class Last> List joined(const std::tuple<Tensor, Last>& result) {
    List all = listed(std::get<1>(result));
    all.insert(all.begin(), std::get<0>(result));
    return all;
  }

  template <class X> auto call(const X& x) {
    const bool given = wanted_.count("h0") > 0;
    if constexpr (std::is_same_v<Holder, nn::LSTM>) {
      std::optional<nn::LSTMImpl::HX> hx;
      if (given) hx = std::tuple(wanted_.at("h0"), wanted_.at("h1"));
      if constexpr (std::is_same_v<X, Tensor>) return module_(x, hx);
      else return module_->forward_with_packed_input(x, hx);
    } else {
      const Tensor hx = given ? wanted_.at("h0") : Tensor();
      if constexpr (std::is_same_v<X, Tensor>) return module_(x, hx);
      else return module_->forward_with_packed_input(x, hx);
    }
  }

  const Lines& file_;
  const Json& line_;
  Holder module_;
  std::map<std::string, Tensor> wanted_;  // inputs and parameters by their names
};

TEST(GoldenRecurrent, ModulesAreAsPyTorchsAre) {
  const Lines file;
  for (std::size_t i = 1; i < file.lines.size(); ++i) {
    const Json& line = file.lines[i];
    SCOPED_TRACE(line.at("module").get<std::string>() + line.at("options").dump() +
                 line.at("lengths").dump());
    if (line.at("module") == "LSTM") Case<nn::LSTM, nn::LSTMOptions>(file, line).check();
    else if (line.at("module") == "GRU") Case<nn::GRU, nn::GRUOptions>(file, line).check();
    else Case<nn::RNN, nn::RNNOptions>(file, line).check();
  }
  EXPECT_EQ(file.lines.size(), 109U);
}

}  // namespace
}  // namespace taper::golden
