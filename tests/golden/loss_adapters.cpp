// Golden adapters of the losses of nn::functional.
#include "taper/nn/functional.h"
#include "taper/tests/golden/runner.h"

namespace taper::golden {
namespace {

using List = std::vector<Tensor>;
namespace F = nn::functional;

void add(Registry& r, const char* name, Adapter call) {
  r.calls[std::string("nn.functional.") + name] = call;
}

// The keyword that all of them share; OpInfo never gives it by position.
Reduction reduction(const Args& a) {
  const std::string name = a.text(99, "reduction", "mean");
  if (name == "none") return Reduction::kNone;
  if (name == "sum") return Reduction::kSum;
  if (name == "batchmean") return Reduction::kBatchMean;
  if (name != "mean") throw Skip("a reduction by a wrong name");
  return Reduction::kMean;
}

Tensor weight(const Args& a) {
  return a.tensor_or_none(2, "weight");
}

void add_class_losses(Registry& r) {
  add(r, "cross_entropy", [](const Args& a) -> List {
    const auto o = F::CrossEntropyFuncOptions()
                       .weight(weight(a))
                       .ignore_index(a.integer(99, "ignore_index", -100))
                       .label_smoothing(a.real(99, "label_smoothing", 0))
                       .reduction(reduction(a));
    return {F::cross_entropy(a.tensor(0), a.tensor(1), o)};
  });
  add(r, "nll_loss", [](const Args& a) -> List {
    const auto o = F::NLLLossFuncOptions()
                       .weight(weight(a))
                       .ignore_index(a.integer(99, "ignore_index", -100))
                       .reduction(reduction(a));
    return {F::nll_loss(a.tensor(0), a.tensor(1), o)};
  });
  add(r, "kl_div", [](const Args& a) -> List {
    const auto o =
        F::KLDivFuncOptions().log_target(a.flag(99, "log_target", false)).reduction(reduction(a));
    return {F::kl_div(a.tensor(0), a.tensor(1), o)};
  });
  add(r, "binary_cross_entropy", [](const Args& a) -> List {
    const auto o = F::BinaryCrossEntropyFuncOptions().weight(weight(a)).reduction(reduction(a));
    return {F::binary_cross_entropy(a.tensor(0), a.tensor(1), o)};
  });
  add(r, "binary_cross_entropy_with_logits", [](const Args& a) -> List {
    const auto o = F::BinaryCrossEntropyWithLogitsFuncOptions()
                       .weight(weight(a))
                       .pos_weight(a.tensor_or_none(99, "pos_weight"))
                       .reduction(reduction(a));
    return {F::binary_cross_entropy_with_logits(a.tensor(0), a.tensor(1), o)};
  });
}

void add_distance_losses(Registry& r) {
  add(r, "mse_loss", [](const Args& a) -> List {
    return {F::mse_loss(a.tensor(0), a.tensor(1), F::MSELossFuncOptions(reduction(a)))};
  });
  add(r, "l1_loss", [](const Args& a) -> List {
    return {F::l1_loss(a.tensor(0), a.tensor(1), F::L1LossFuncOptions(reduction(a)))};
  });
  add(r, "smooth_l1_loss", [](const Args& a) -> List {
    const auto o = F::SmoothL1LossFuncOptions().beta(a.real(99, "beta", 1)).reduction(reduction(a));
    return {F::smooth_l1_loss(a.tensor(0), a.tensor(1), o)};
  });
  add(r, "huber_loss", [](const Args& a) -> List {
    const auto o = F::HuberLossFuncOptions().delta(a.real(99, "delta", 1)).reduction(reduction(a));
    return {F::huber_loss(a.tensor(0), a.tensor(1), o)};
  });
}

}  // namespace

void add_losses(Registry& r) {
  add_class_losses(r);
  add_distance_losses(r);
}

}  // namespace taper::golden
