// Golden adapters of the elementwise ops: arithmetic, comparisons, logic, transcendentals.
#include "taper/tests/golden/runner.h"

namespace taper::golden {
namespace {

using List = std::vector<Tensor>;

void add_arithmetic(Registry& r) {
  r.calls["add"] = [](const Args& a) -> List {
    return {a.tensor(0).add(a.operand(1), a.scalar(2, "alpha", 1))};
  };
  r.calls["sub"] = [](const Args& a) -> List {
    return {a.tensor(0).sub(a.operand(1), a.scalar(2, "alpha", 1))};
  };
  r.calls["rsub"] = [](const Args& a) -> List {
    const Tensor self = a.tensor(0), other = a.operand(1);
    const auto alpha = a.scalar(2, "alpha", 1);
    return {other - self * alpha};
  };
  r.calls["mul"] = [](const Args& a) -> List { return {a.tensor(0).mul(a.operand(1))}; };
  r.calls["div"] = [](const Args& a) -> List {
    const std::string rounding = a.text(9, "rounding_mode", "");
    if (rounding.empty()) return {a.tensor(0).div(a.operand(1))};
    return {a.tensor(0).div(a.operand(1), rounding.c_str())};
  };
  r.calls["true_divide"] = [](const Args& a) -> List { return {a.tensor(0) / a.operand(1)}; };
  r.calls["__radd__"] = [](const Args& a) -> List { return {a.operand(1) + a.tensor(0)}; };
  r.calls["__rsub__"] = [](const Args& a) -> List { return {a.operand(1) - a.tensor(0)}; };
  r.calls["__rmul__"] = [](const Args& a) -> List { return {a.operand(1) * a.tensor(0)}; };
  r.calls["__rdiv__"] = [](const Args& a) -> List { return {a.operand(1) / a.tensor(0)}; };
  r.calls["__rpow__"] = [](const Args& a) -> List {  // Python's takes the base as a number
    return {a.operand(1).detach().pow(a.tensor(0))};
  };
  r.calls["floor_divide"] = [](const Args& a) -> List {
    return {a.tensor(0).floor_divide(a.operand(1))};
  };
  r.calls["remainder"] = [](const Args& a) -> List {
    return {a.tensor(0).remainder(a.operand(1))};
  };
  r.calls["fmod"] = [](const Args& a) -> List { return {a.tensor(0).fmod(a.operand(1))}; };
  r.calls["pow"] = [](const Args& a) -> List { return {a.tensor(0).pow(a.operand(1))}; };
  r.calls["maximum"] = [](const Args& a) -> List { return {a.tensor(0).maximum(a.tensor(1))}; };
  r.calls["minimum"] = [](const Args& a) -> List { return {a.tensor(0).minimum(a.tensor(1))}; };
  r.calls["max.binary"] = [](const Args& a) -> List { return {a.tensor(0).max(a.tensor(1))}; };
  r.calls["min.binary"] = [](const Args& a) -> List { return {a.tensor(0).min(a.tensor(1))}; };
  r.calls["atan2"] = [](const Args& a) -> List { return {a.tensor(0).atan2(a.tensor(1))}; };
  r.calls["lerp"] = [](const Args& a) -> List {
    return {a.tensor(0).lerp(a.tensor(1), a.operand(2))};
  };
  r.calls["addcmul"] = [](const Args& a) -> List {
    return {a.tensor(0).addcmul(a.tensor(1), a.tensor(2), a.scalar(3, "value", 1))};
  };
  r.calls["addcdiv"] = [](const Args& a) -> List {
    return {a.tensor(0).addcdiv(a.tensor(1), a.tensor(2), a.scalar(3, "value", 1))};
  };
}

void add_arithmetic_in_place(Registry& r) {
  r.in_place["add"] = [](const Args& a) -> List {
    return {a.tensor(0).add_(a.operand(1), a.scalar(2, "alpha", 1))};
  };
  r.in_place["sub"] = [](const Args& a) -> List {
    return {a.tensor(0).sub_(a.operand(1), a.scalar(2, "alpha", 1))};
  };
  r.in_place["mul"] = [](const Args& a) -> List { return {a.tensor(0).mul_(a.operand(1))}; };
  r.in_place["true_divide"] = [](const Args& a) -> List {
    return {a.tensor(0).div_(a.operand(1))};
  };
  r.in_place["pow"] = [](const Args& a) -> List { return {a.tensor(0).pow_(a.operand(1))}; };
  r.in_place["lerp"] = [](const Args& a) -> List {
    return {a.tensor(0).lerp_(a.tensor(1), a.operand(2))};
  };
  r.in_place["addcmul"] = [](const Args& a) -> List {
    return {a.tensor(0).addcmul_(a.tensor(1), a.tensor(2), a.scalar(3, "value", 1))};
  };
  r.in_place["addcdiv"] = [](const Args& a) -> List {
    return {a.tensor(0).addcdiv_(a.tensor(1), a.tensor(2), a.scalar(3, "value", 1))};
  };
  r.in_place["masked_fill"] = [](const Args& a) -> List {
    return {a.tensor(0).masked_fill_(a.tensor(1), a.operand(2))};
  };
  r.in_place["clamp"] = [](const Args& a) -> List {
    if (a.is_tensor(1, "min") || a.is_tensor(2, "max")) throw Skip("clamp_ with tensors");
    std::optional<Scalar> low, high;
    if (a.has(1, "min")) low = a.scalar(1, "min", 0);
    if (a.has(2, "max")) high = a.scalar(2, "max", 0);
    return {a.tensor(0).clamp_(low, high)};
  };
}

void add_comparisons(Registry& r) {
  r.calls["eq"] = [](const Args& a) -> List { return {a.tensor(0).eq(a.operand(1))}; };
  r.calls["ne"] = [](const Args& a) -> List { return {a.tensor(0).ne(a.operand(1))}; };
  r.calls["lt"] = [](const Args& a) -> List { return {a.tensor(0).lt(a.operand(1))}; };
  r.calls["le"] = [](const Args& a) -> List { return {a.tensor(0).le(a.operand(1))}; };
  r.calls["gt"] = [](const Args& a) -> List { return {a.tensor(0).gt(a.operand(1))}; };
  r.calls["ge"] = [](const Args& a) -> List { return {a.tensor(0).ge(a.operand(1))}; };
  r.calls["logical_and"] = [](const Args& a) -> List {
    return {a.tensor(0).logical_and(a.tensor(1))};
  };
  r.calls["logical_or"] = [](const Args& a) -> List {
    return {a.tensor(0).logical_or(a.tensor(1))};
  };
  r.calls["logical_xor"] = [](const Args& a) -> List {
    return {a.tensor(0).logical_xor(a.tensor(1))};
  };
  r.calls["logical_not"] = [](const Args& a) -> List { return {a.tensor(0).logical_not()}; };
  r.calls["bitwise_and"] = [](const Args& a) -> List {
    return {a.tensor(0).bitwise_and(a.operand(1))};
  };
  r.calls["bitwise_or"] = [](const Args& a) -> List {
    return {a.tensor(0).bitwise_or(a.operand(1))};
  };
  r.calls["bitwise_xor"] = [](const Args& a) -> List {
    return {a.tensor(0).bitwise_xor(a.operand(1))};
  };
  r.calls["bitwise_not"] = [](const Args& a) -> List { return {a.tensor(0).bitwise_not()}; };
  r.calls["isnan"] = [](const Args& a) -> List { return {a.tensor(0).isnan()}; };
  r.calls["isinf"] = [](const Args& a) -> List { return {a.tensor(0).isinf()}; };
  r.calls["isfinite"] = [](const Args& a) -> List { return {a.tensor(0).isfinite()}; };
}

void add_unary(Registry& r) {
  r.calls["neg"] = [](const Args& a) -> List { return {a.tensor(0).neg()}; };
  r.calls["abs"] = [](const Args& a) -> List { return {a.tensor(0).abs()}; };
  r.calls["sign"] = [](const Args& a) -> List { return {a.tensor(0).sign()}; };
  r.calls["square"] = [](const Args& a) -> List { return {a.tensor(0).square()}; };
  r.calls["reciprocal"] = [](const Args& a) -> List { return {a.tensor(0).reciprocal()}; };
  r.calls["exp"] = [](const Args& a) -> List { return {a.tensor(0).exp()}; };
  r.calls["expm1"] = [](const Args& a) -> List { return {a.tensor(0).expm1()}; };
  r.calls["log"] = [](const Args& a) -> List { return {a.tensor(0).log()}; };
  r.calls["log1p"] = [](const Args& a) -> List { return {a.tensor(0).log1p()}; };
  r.calls["sqrt"] = [](const Args& a) -> List { return {a.tensor(0).sqrt()}; };
  r.calls["rsqrt"] = [](const Args& a) -> List { return {a.tensor(0).rsqrt()}; };
  r.calls["sin"] = [](const Args& a) -> List { return {a.tensor(0).sin()}; };
  r.calls["cos"] = [](const Args& a) -> List { return {a.tensor(0).cos()}; };
  r.calls["tan"] = [](const Args& a) -> List { return {a.tensor(0).tan()}; };
  r.calls["asin"] = [](const Args& a) -> List { return {a.tensor(0).asin()}; };
  r.calls["acos"] = [](const Args& a) -> List { return {a.tensor(0).acos()}; };
  r.calls["atan"] = [](const Args& a) -> List { return {a.tensor(0).atan()}; };
  r.calls["sinh"] = [](const Args& a) -> List { return {a.tensor(0).sinh()}; };
  r.calls["cosh"] = [](const Args& a) -> List { return {a.tensor(0).cosh()}; };
  r.calls["tanh"] = [](const Args& a) -> List { return {a.tensor(0).tanh()}; };
  r.calls["sigmoid"] = [](const Args& a) -> List { return {a.tensor(0).sigmoid()}; };
  r.calls["erf"] = [](const Args& a) -> List { return {a.tensor(0).erf()}; };
  r.calls["floor"] = [](const Args& a) -> List { return {a.tensor(0).floor()}; };
  r.calls["ceil"] = [](const Args& a) -> List { return {a.tensor(0).ceil()}; };
  r.calls["round"] = [](const Args& a) -> List {
    if (a.has(1, "decimals")) throw Skip("round with decimals");
    return {a.tensor(0).round()};
  };
  r.calls["trunc"] = [](const Args& a) -> List { return {a.tensor(0).trunc()}; };

  r.in_place["neg"] = [](const Args& a) -> List { return {a.tensor(0).neg_()}; };
  r.in_place["abs"] = [](const Args& a) -> List { return {a.tensor(0).abs_()}; };
  r.in_place["exp"] = [](const Args& a) -> List { return {a.tensor(0).exp_()}; };
  r.in_place["log"] = [](const Args& a) -> List { return {a.tensor(0).log_()}; };
  r.in_place["sqrt"] = [](const Args& a) -> List { return {a.tensor(0).sqrt_()}; };
  r.in_place["tanh"] = [](const Args& a) -> List { return {a.tensor(0).tanh_()}; };
  r.in_place["sigmoid"] = [](const Args& a) -> List { return {a.tensor(0).sigmoid_()}; };
  r.in_place["floor"] = [](const Args& a) -> List { return {a.tensor(0).floor_()}; };
}

void add_choices(Registry& r) {
  r.calls["clamp"] = [](const Args& a) -> List {
    if (a.is_tensor(1, "min") || a.is_tensor(2, "max")) throw Skip("clamp with tensors");
    std::optional<Scalar> low, high;
    if (a.has(1, "min")) low = a.scalar(1, "min", 0);
    if (a.has(2, "max")) high = a.scalar(2, "max", 0);
    return {a.tensor(0).clamp(low, high)};
  };
  r.calls["clamp_min"] = [](const Args& a) -> List {
    if (a.is_tensor(1)) return {a.tensor(0).maximum(a.tensor(1))};
    return {a.tensor(0).clamp_min(a.scalar(1, "min", 0))};
  };
  r.calls["clamp_max"] = [](const Args& a) -> List {
    if (a.is_tensor(1)) return {a.tensor(0).minimum(a.tensor(1))};
    return {a.tensor(0).clamp_max(a.scalar(1, "max", 0))};
  };
  r.calls["where"] = [](const Args& a) -> List {  // self, condition, other
    return {a.operand(0).where(a.tensor(1), a.operand(2))};
  };
  r.calls["masked_fill"] = [](const Args& a) -> List {
    return {a.tensor(0).masked_fill(a.tensor(1), a.operand(2))};
  };
}

}  // namespace

void add_elementwise(Registry& r) {
  add_arithmetic(r);
  add_arithmetic_in_place(r);
  add_comparisons(r);
  add_unary(r);
  add_choices(r);
}

}  // namespace taper::golden
