// Golden adapters of the activations of nn::functional.
#include "taper/nn/functional.h"
#include "taper/tests/golden/runner.h"

namespace taper::golden {
namespace {

using List = std::vector<Tensor>;
namespace F = nn::functional;

void add(Registry& r, const char* name, Adapter call) {
  r.calls[std::string("nn.functional.") + name] = call;
}

void add_plain(Registry& r) {
  add(r, "relu", [](const Args& a) -> List { return {F::relu(a.tensor(0))}; });
  add(r, "relu6", [](const Args& a) -> List { return {F::relu6(a.tensor(0))}; });
  add(r, "selu", [](const Args& a) -> List { return {F::selu(a.tensor(0))}; });
  add(r, "silu", [](const Args& a) -> List { return {F::silu(a.tensor(0))}; });
  add(r, "mish", [](const Args& a) -> List { return {F::mish(a.tensor(0))}; });
  add(r, "softsign", [](const Args& a) -> List { return {F::softsign(a.tensor(0))}; });
  add(r, "tanhshrink", [](const Args& a) -> List { return {F::tanhshrink(a.tensor(0))}; });
  add(r, "hardsigmoid", [](const Args& a) -> List { return {F::hardsigmoid(a.tensor(0))}; });
  add(r, "hardswish", [](const Args& a) -> List { return {F::hardswish(a.tensor(0))}; });
  add(r, "logsigmoid", [](const Args& a) -> List { return {F::logsigmoid(a.tensor(0))}; });
  r.in_place["nn.functional.relu"] = [](const Args& a) -> List { return {a.tensor(0).relu_()}; };
}

void add_with_options(Registry& r) {
  add(r, "gelu", [](const Args& a) -> List {
    const auto o = F::GELUFuncOptions().approximate(a.text(1, "approximate", "none"));
    return {F::gelu(a.tensor(0), o)};
  });
  add(r, "leaky_relu", [](const Args& a) -> List {
    const auto o = F::LeakyReLUFuncOptions().negative_slope(a.real(1, "negative_slope", 0.01));
    return {F::leaky_relu(a.tensor(0), o)};
  });
  add(r, "elu", [](const Args& a) -> List {
    return {F::elu(a.tensor(0), F::ELUFuncOptions().alpha(a.real(1, "alpha", 1)))};
  });
  add(r, "celu", [](const Args& a) -> List {
    return {F::celu(a.tensor(0), F::CELUFuncOptions().alpha(a.real(1, "alpha", 1)))};
  });
  add(r, "softplus", [](const Args& a) -> List {
    const auto o =
        F::SoftplusFuncOptions().beta(a.real(1, "beta", 1)).threshold(a.real(2, "threshold", 20));
    return {F::softplus(a.tensor(0), o)};
  });
  add(r, "hardtanh", [](const Args& a) -> List {
    const auto o =
        F::HardtanhFuncOptions().min_val(a.real(1, "min_val", -1)).max_val(a.real(2, "max_val", 1));
    return {F::hardtanh(a.tensor(0), o)};
  });
  add(r, "softshrink",
      [](const Args& a) -> List { return {F::softshrink(a.tensor(0), a.real(1, "lambd", 0.5))}; });
  add(r, "hardshrink",
      [](const Args& a) -> List { return {F::hardshrink(a.tensor(0), a.real(1, "lambd", 0.5))}; });
  add(r, "threshold", [](const Args& a) -> List {
    const F::ThresholdFuncOptions o(a.real(1, "threshold", 0), a.real(2, "value", 0));
    return {F::threshold(a.tensor(0), o)};
  });
  add(r, "glu",
      [](const Args& a) -> List { return {F::glu(a.tensor(0), a.integer(1, "dim", -1))}; });
  add(r, "softmin",
      [](const Args& a) -> List { return {F::softmin(a.tensor(0), *a.integer(1, "dim"))}; });
  add(r, "prelu",
      [](const Args& a) -> List { return {F::prelu(a.tensor(0), a.tensor(1, "weight"))}; });
  add(r, "dropout", [](const Args& a) -> List {
    const auto o =
        F::DropoutFuncOptions().p(a.real(1, "p", 0.5)).training(a.flag(2, "training", true));
    return {F::dropout(a.tensor(0), o)};
  });
}

}  // namespace

void add_activations(Registry& r) {
  add_plain(r);
  add_with_options(r);
}

}  // namespace taper::golden
