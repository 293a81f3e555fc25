// Optimizers walk PyTorch's path, and learning-rate schedules follow its curves.
#include <cmath>
#include <cstring>
#include <map>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "taper/autograd/ops/create.h"
#include "taper/autograd/ops/elementwise.h"
#include "taper/optim/lr_scheduler.h"
#include "taper/tests/golden/archive.h"

namespace taper::golden {
namespace {

using Json = nlohmann::json;
using Make = std::unique_ptr<optim::Optimizer> (*)(const std::vector<Tensor>&, const Json&);

template <class Optimizer, class Options>
std::unique_ptr<optim::Optimizer> adam(const std::vector<Tensor>& params, const Json& j) {
  Options o(j.at("lr").get<double>());
  if (j.contains("betas")) o.betas({j["betas"][0].get<double>(), j["betas"][1].get<double>()});
  if (j.contains("eps")) o.eps(j["eps"].get<double>());
  if (j.contains("weight_decay")) o.weight_decay(j["weight_decay"].get<double>());
  if (j.contains("amsgrad")) o.amsgrad(j["amsgrad"].get<bool>());
  return std::make_unique<Optimizer>(params, o);
}

std::unique_ptr<optim::Optimizer> sgd(const std::vector<Tensor>& params, const Json& j) {
  const auto o = optim::SGDOptions(j.at("lr").get<double>())
                     .momentum(j.value("momentum", 0.0))
                     .dampening(j.value("dampening", 0.0))
                     .weight_decay(j.value("weight_decay", 0.0))
                     .nesterov(j.value("nesterov", false));
  return std::make_unique<optim::SGD>(params, o);
}

const std::map<std::string, Make> kOptimizers = {
    {"SGD", sgd},
    {"Adam", adam<optim::Adam, optim::AdamOptions>},
    {"AdamW", adam<optim::AdamW, optim::AdamWOptions>},
};

// sum over both of (i+1)/4 (p - 1/2)^2 + 0.3 p^4, i the position: see tools/golden/optimizers.py.
Tensor loss_of(const std::vector<Tensor>& params) {
  Tensor total;
  for (const Tensor& p : params) {
    const Tensor curvature = (arange(p.numel(), kFloat64) + 1).reshape(p.sizes()) / 4;
    const Tensor part = (curvature * (p - 0.5).pow(2) + p * p * p * p * 0.3).sum();
    total = total.defined() ? total + part : part;
  }
  return total;
}

const double* doubles(const std::string& blob, const Json& record) {
  return reinterpret_cast<const double*>(blob.data() + record.at("at").get<std::size_t>());
}

void expect_walk(const std::string& blob, const Json& start, const Json& line, std::int64_t steps) {
  std::vector<Tensor> params;
  for (const Json& record : start) {
    const auto shape = record.at("shape").get<std::vector<std::int64_t>>();
    const Tensor p = zeros(shape, kFloat64);
    std::memcpy(p.data_ptr(), doubles(blob, record), p.nbytes());
    params.push_back(p.requires_grad_());
  }
  const auto optimizer = kOptimizers.at(line.at("optimizer"))(params, line.at("options"));
  const double* want = doubles(blob, line.at("values"));
  for (std::int64_t step = 0; step < steps; ++step) {
    optimizer->zero_grad();
    loss_of(params).backward();
    optimizer->step();
    for (const Tensor& p : params) {
      const auto* got = static_cast<const double*>(p.data_ptr());
      for (std::int64_t i = 0; i < p.numel(); ++i, ++want) {
        ASSERT_NEAR(got[i], *want, 1e-10 * (1 + std::abs(*want)))
            << line.at("optimizer") << line.at("options") << " step " << step << " element " << i;
      }
    }
  }
}

TEST(GoldenOptimizers, WalkAsPyTorchs) {
  const std::string blob = read_data("optimizers.bin.gz");
  std::istringstream text(read_data("optimizers.jsonl.gz"));
  std::string line;
  std::getline(text, line);
  std::getline(text, line);
  const Json start = Json::parse(line);
  int walked = 0;
  while (std::getline(text, line)) {
    const Json set = Json::parse(line);
    if (!kOptimizers.contains(set.at("optimizer"))) continue;
    expect_walk(blob, start.at("start"), set, start.at("steps"));
    ++walked;
  }
  EXPECT_EQ(walked, 18);  // rises as optimizers are added
}

using Schedule = std::unique_ptr<optim::LRScheduler> (*)(optim::Optimizer&, const Json&);

const std::map<std::string, Schedule> kSchedules = {
    {"StepLR",
     [](optim::Optimizer& o, const Json& j) -> std::unique_ptr<optim::LRScheduler> {
       return std::make_unique<optim::StepLR>(o, j.at("step_size").get<std::int64_t>(),
                                              j.at("gamma").get<double>());
     }},
};

TEST(GoldenSchedules, FollowPyTorchsCurves) {
  int followed = 0;
  for (const Json& row : Json::parse(read_data("schedules.json"))) {
    const auto make = kSchedules.find(row.at("schedule").get<std::string>());
    if (make == kSchedules.end()) continue;
    optim::SGD optimizer(std::vector<Tensor>{zeros({1}).requires_grad_()},
                         optim::SGDOptions(row.at("base_lr").get<double>()));
    const auto schedule = make->second(optimizer, row.at("options"));
    for (const Json& want : row.at("values")) {
      const double got = optimizer.param_groups()[0].options().get_lr();
      EXPECT_NEAR(got, want.get<double>(), 1e-12) << row.at("schedule") << row.at("options");
      schedule->step();
    }
    ++followed;
  }
  EXPECT_EQ(followed, 1);  // rises as schedules are added
}

}  // namespace
}  // namespace taper::golden
