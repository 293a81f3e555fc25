// A four-layer GPT trains as PyTorch's: logits, loss, gradients, and ten AdamW steps, within 1e-9.
#include <cmath>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "taper/autograd/ops/attention.h"
#include "taper/autograd/ops/create.h"
#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/index.h"
#include "taper/autograd/ops/loss.h"
#include "taper/autograd/ops/matmul.h"
#include "taper/autograd/ops/norm.h"
#include "taper/optim/optimizer.h"
#include "taper/tests/golden/compare.h"

namespace taper::golden {
namespace {

using Json = nlohmann::json;
using Params = std::map<std::string, Tensor>;

constexpr double kTolerance = 1e-9;

struct Golden {
  std::shared_ptr<const std::string> blob;
  std::vector<Json> lines;  // head, set-up, one per step

  TensorRecord record(const Json& j) const {
    return dense_record(j.at("dtype"), j.at("shape"), blob, j.at("at"));
  }
};

Golden read_gpt() {
  Golden g;
  g.blob = std::make_shared<const std::string>(read_data("gpt.bin.gz"));
  std::istringstream text(read_data("gpt.jsonl.gz"));
  for (std::string line; std::getline(text, line);) g.lines.push_back(Json::parse(line));
  return g;
}

class Gpt {
 public:
  Gpt(Params params, const Json& config)
      : params_(std::move(params)),
        heads_(config.at("heads").get<std::int64_t>()),
        layers_(config.at("layers").get<std::int64_t>()) {}

  // ids: (B, T) -> (B, T, vocabulary)
  Tensor forward(const Tensor& ids) const {
    Tensor x = embedding(p("token.weight"), ids) + p("position.weight");
    for (std::int64_t i = 0; i < layers_; ++i) x = block("block" + std::to_string(i) + ".", x);
    return linear(norm("norm.", x), p("head.weight"));
  }

 private:
  const Tensor& p(const std::string& name) const { return params_.at(name); }

  Tensor norm(const std::string& name, const Tensor& x) const {
    return layer_norm(x, {x.size(-1)}, p(name + "weight"), p(name + "bias"));
  }

  Tensor affine(const std::string& name, const Tensor& x) const {
    return linear(x, p(name + "weight"), p(name + "bias"));
  }

  Tensor block(const std::string& name, const Tensor& x) const {
    const std::int64_t b = x.size(0), t = x.size(1), c = x.size(2);
    const auto qkv = affine(name + "qkv.", norm(name + "norm1.", x)).split(c, 2);
    const auto heads = [&](const Tensor& s) {  // (B, T, C) -> (B, H, T, C/H)
      return s.view({b, t, heads_, c / heads_}).transpose(1, 2);
    };
    const Tensor mixed = scaled_dot_product_attention(heads(qkv[0]), heads(qkv[1]), heads(qkv[2]),
                                                      {}, 0, /*is_causal=*/true);
    const Tensor y = x + affine(name + "proj.", mixed.transpose(1, 2).reshape({b, t, c}));
    return y + affine(name + "down.", affine(name + "up.", norm(name + "norm2.", y)).gelu());
  }

  Params params_;
  std::int64_t heads_, layers_;
};

double sum_of(const Tensor& t) {
  return t.detach().sum().item<double>();
}

void expect_close(double got, double want, const std::string& what) {
  EXPECT_NEAR(got, want, kTolerance * (1 + std::abs(want))) << what;
}

void expect_digest(const Json& digest, const Params& params, const std::string& when) {
  for (const auto& [name, param] : params) {
    const Json& want = digest.at(name);
    const Tensor flat = param.detach().reshape({-1});
    expect_close(sum_of(flat), want[0], when + name + " sum");
    expect_close(sum_of(flat * flat), want[1], when + name + " sum of squares");
    expect_close(flat.select(0, 0).item<double>(), want[2], when + name + " first");
    expect_close(flat.select(0, -1).item<double>(), want[3], when + name + " last");
  }
}

TEST(GoldenGpt, TrainsAsPyTorchDoes) {
  const Golden g = read_gpt();
  const Json& setup = g.lines.at(1);
  Params params;
  std::vector<Tensor> list;
  for (const auto& [name, record] : setup.at("params").items()) {
    params[name] = build(g.record(record)).requires_grad_();
    list.push_back(params[name]);
  }
  const Tensor ids = build(g.record(setup.at("ids")));
  const Tensor targets = build(g.record(setup.at("targets")));
  const Json& a = setup.at("adamw");
  optim::AdamW optimizer(list, optim::AdamWOptions(a.at("lr"))
                                   .betas({a.at("betas")[0], a.at("betas")[1]})
                                   .eps(a.at("eps"))
                                   .weight_decay(a.at("weight_decay")));
  const Gpt model(params, setup.at("config"));
  for (std::size_t step = 0; step + 2 < g.lines.size(); ++step) {
    const Json& want = g.lines[step + 2];
    const std::string when = "step " + std::to_string(step) + " ";
    expect_digest(want.at("digest"), params, when);
    optimizer.zero_grad();
    const Tensor logits = model.forward(ids);
    const Tensor loss = cross_entropy(logits.reshape({-1, logits.size(-1)}), targets.reshape({-1}));
    loss.backward();
    expect_close(loss.item<double>(), want.at("loss"), when + "loss");
    if (want.contains("logits")) {
      EXPECT_EQ(difference(logits, g.record(want["logits"]), kTolerance), "") << "logits";
    }
    for (const char* what : {"grads", "params"}) {
      if (!want.contains(what)) continue;
      for (const auto& [name, record] : want[what].items()) {
        const Tensor got = *what == 'g' ? params[name].grad() : params[name].detach();
        EXPECT_EQ(difference(got, g.record(record), kTolerance), "") << when << what << " " << name;
      }
    }
    optimizer.step();
  }
  EXPECT_EQ(g.lines.size(), 13U);
}

}  // namespace
}  // namespace taper::golden
