// What elementwise functions, operators and in-place methods refuse.
#include "taper/tests/errors/refusal.h"

namespace taper::errors {
namespace {

using Elementwise = Refusal;

TEST_F(Elementwise, BinaryFunctionsNeedShapesThatBroadcast) {
  using Binary = Tensor (*)(const TensorArg&, const TensorArg&);
  struct Row {
    const char* op;
    Binary call;
  };
  const Row rows[] = {{"mul", mul},
                      {"div", div},
                      {"floor_divide", floor_divide},
                      {"remainder", remainder},
                      {"fmod", fmod},
                      {"pow", pow},
                      {"maximum", maximum},
                      {"minimum", minimum},
                      {"atan2", atan2},
                      {"eq", eq},
                      {"ne", ne},
                      {"lt", lt},
                      {"le", le},
                      {"gt", gt},
                      {"ge", ge},
                      {"logical_and", logical_and},
                      {"logical_or", logical_or},
                      {"logical_xor", logical_xor},
                      {"max", max},
                      {"min", min}};
  for (const Row& row : rows) {
    refuses(row.op, {"(2, 3)", "(4)", "broadcast"}, [&] { here(), row.call(f23, f4); });
    refuses(row.op, {"(2, 3)", "(2, 4)"}, [&] { here(), row.call(f23, f24); });
    refuses(row.op, {"(2, 3)", "cpu", "meta"}, [&] { here(), row.call(f23, m23); });
    refuses(row.op, {nothing}, [&] { here(), row.call(f23, none); });
    refuses(row.op, {nothing}, [&] { here(), row.call(none, f23); });
  }
  refuses("add", {"(2, 3)", "(4)"}, [&] { here(), add(f23, f4); });
  refuses("add", {"(2, 3)", "(4)"}, [&] { here(), add(f23, f4, 2); });
  refuses("add", {nothing}, [&] { here(), add(none, f4); });
  refuses("sub", {"(2, 3)", "(4)"}, [&] { here(), sub(f23, f4); });
  refuses("sub", {nothing}, [&] { here(), sub(f23, none, 2); });
  refuses("sub", {"bool"}, [&] { here(), sub(b3, b3); });
  refuses("add", {"i64", "0.5"}, [&] { here(), add(i3, i3, 0.5); });
  refuses("pow", {"i64", "-1"}, [&] { here(), pow(i3, -1); });
  refuses("bitwise_and", {"(2, 3)", "(2)"}, [&] { here(), bitwise_and(i23, i2); });
  refuses("bitwise_and", {"f32"}, [&] { here(), bitwise_and(f23, i23); });
  refuses("bitwise_or", {"f32"}, [&] { here(), bitwise_or(f23, i23); });
  refuses("bitwise_xor", {"f64"}, [&] { here(), bitwise_xor(d23, i23); });
  refuses("bitwise_not", {"f32"}, [&] { here(), bitwise_not(f23); });
}

TEST_F(Elementwise, BinaryMethods) {
  refuses("add", {"(2, 3)", "(4)"}, [&] { here(), f23.add(f4); });
  refuses("sub", {"(2, 3)", "(4)"}, [&] { here(), f23.sub(f4, 3); });
  refuses("mul", {"(2, 3)", "(4)"}, [&] { here(), f23.mul(f4); });
  refuses("div", {"(2, 3)", "(4)"}, [&] { here(), f23.div(f4); });
  refuses("div", {"(2, 3)", "(4)"}, [&] { here(), f23.div(f4, "floor"); });
  refuses("div", {"(2, 3)", "(4)"}, [&] { here(), f23.div(f4, "trunc"); });
  refuses("div", {"rounding_mode", "up"}, [&] { here(), f23.div(f3, "up"); });
  refuses("div", {"rounding_mode", "up"}, [&] { here(), div(f23, f3, "up"); });
  refuses("div", {"rounding_mode", "null"}, [&] { here(), f23.div(2, nullptr); });
  refuses("pow", {"(2, 3)", "(4)"}, [&] { here(), f23.pow(f4); });
  refuses("fmod", {"(2, 3)", "(4)"}, [&] { here(), f23.fmod(f4); });
  refuses("remainder", {"(2, 3)", "(4)"}, [&] { here(), f23.remainder(f4); });
  refuses("floor_divide", {"(2, 3)", "(4)"}, [&] { here(), f23.floor_divide(f4); });
  refuses("maximum", {"(2, 3)", "(4)"}, [&] { here(), f23.maximum(f4); });
  refuses("minimum", {"(2, 3)", "(4)"}, [&] { here(), f23.minimum(f4); });
  refuses("max", {"(2, 3)", "(4)"}, [&] { here(), f23.max(f4); });
  refuses("min", {"(2, 3)", "(4)"}, [&] { here(), f23.min(f4); });
  refuses("atan2", {"(2, 3)", "(4)"}, [&] { here(), f23.atan2(f4); });
  refuses("eq", {"(2, 3)", "(4)"}, [&] { here(), f23.eq(f4); });
  refuses("ne", {"(2, 3)", "(4)"}, [&] { here(), f23.ne(f4); });
  refuses("lt", {"(2, 3)", "(4)"}, [&] { here(), f23.lt(f4); });
  refuses("le", {"(2, 3)", "(4)"}, [&] { here(), f23.le(f4); });
  refuses("gt", {"(2, 3)", "(4)"}, [&] { here(), f23.gt(f4); });
  refuses("ge", {"(2, 3)", "(4)"}, [&] { here(), f23.ge(f4); });
  refuses("logical_and", {"(2, 3)", "(4)"}, [&] { here(), f23.logical_and(f4); });
  refuses("logical_or", {"(2, 3)", "(4)"}, [&] { here(), f23.logical_or(f4); });
  refuses("logical_xor", {"(2, 3)", "(4)"}, [&] { here(), f23.logical_xor(f4); });
  refuses("bitwise_and", {"f32"}, [&] { here(), f23.bitwise_and(i23); });
  refuses("bitwise_or", {"f32"}, [&] { here(), f23.bitwise_or(i23); });
  refuses("bitwise_xor", {"f32"}, [&] { here(), f23.bitwise_xor(i23); });
  refuses("bitwise_not", {"f32"}, [&] { here(), f23.bitwise_not(); });
  refuses("equal", {"cpu", "meta"}, [&] { here(), f23.equal(m23); });
  refuses("allclose", {"(2, 3)", "(4)"}, [&] { here(), f23.allclose(f4); });
  refuses("allclose", {"(2, 3)", "(4)"}, [&] { here(), allclose(f23, f4); });
  refuses("equal", {nothing}, [&] { here(), equal(f23, none); });
  refuses("mul", {nothing}, [&] { here(), none.mul(f23); });
}

TEST_F(Elementwise, Operators) {
  refuses("add", {"(2, 3)", "(4)"}, [&] { here(), f23 + f4; });
  refuses("sub", {"(2, 3)", "(4)"}, [&] { here(), f23 - f4; });
  refuses("mul", {"(2, 3)", "(4)"}, [&] { here(), f23* f4; });
  refuses("div", {"(2, 3)", "(4)"}, [&] { here(), f23 / f4; });
  refuses("remainder", {"(2, 3)", "(4)"}, [&] { here(), f23 % f4; });
  refuses("eq", {"(2, 3)", "(4)"}, [&] { here(), static_cast<void>(f23 == f4); });
  refuses("ne", {"(2, 3)", "(4)"}, [&] { here(), static_cast<void>(f23 != f4); });
  refuses("lt", {"(2, 3)", "(4)"}, [&] { here(), static_cast<void>(f23 < f4); });
  refuses("le", {"(2, 3)", "(4)"}, [&] { here(), static_cast<void>(f23 <= f4); });
  refuses("gt", {"(2, 3)", "(4)"}, [&] { here(), static_cast<void>(f23 > f4); });
  refuses("ge", {"(2, 3)", "(4)"}, [&] { here(), static_cast<void>(f23 >= f4); });
  refuses("bitwise_and", {"f32"}, [&] { here(), f23& f23; });
  refuses("bitwise_or", {"f32"}, [&] { here(), f23 | f23; });
  refuses("bitwise_xor", {"f32"}, [&] { here(), f23 ^ f23; });
  refuses("bitwise_not", {"f32"}, [&] { here(), ~f23; });
  refuses("neg", {nothing}, [&] { here(), -none; });
  refuses("add", {nothing}, [&] { here(), none + 1; });
  Tensor x = f23.clone();
  watch(x);
  refuses("add", {"(2, 3)", "(4)"}, [&] { here(), x += f4; });
  refuses("sub", {"(2, 3)", "(4)"}, [&] { here(), x -= f4; });
  refuses("mul", {"(2, 3)", "(4)"}, [&] { here(), x *= f4; });
  refuses("div", {"(2, 3)", "(4)"}, [&] { here(), x /= f4; });
}

TEST_F(Elementwise, UnaryFunctionsNeedATensor) {
  using Unary = Tensor (*)(const TensorArg&);
  struct Row {
    const char* op;
    Unary call;
  };
  const Row rows[] = {{"neg", neg},
                      {"abs", abs},
                      {"sign", sign},
                      {"square", square},
                      {"reciprocal", reciprocal},
                      {"exp", exp},
                      {"expm1", expm1},
                      {"log", log},
                      {"log1p", log1p},
                      {"sqrt", sqrt},
                      {"rsqrt", rsqrt},
                      {"sin", sin},
                      {"cos", cos},
                      {"tan", tan},
                      {"asin", asin},
                      {"acos", acos},
                      {"atan", atan},
                      {"sinh", sinh},
                      {"cosh", cosh},
                      {"tanh", tanh},
                      {"erf", erf},
                      {"floor", floor},
                      {"ceil", ceil},
                      {"round", round},
                      {"trunc", trunc},
                      {"sigmoid", sigmoid},
                      {"relu", relu},
                      {"silu", silu},
                      {"log_sigmoid", log_sigmoid},
                      {"logical_not", logical_not},
                      {"bitwise_not", bitwise_not},
                      {"isnan", isnan},
                      {"isinf", isinf},
                      {"isfinite", isfinite},
                      {"relu6", relu6},
                      {"selu", selu},
                      {"mish", mish},
                      {"softsign", softsign},
                      {"tanhshrink", tanhshrink},
                      {"hardsigmoid", hardsigmoid},
                      {"hardswish", hardswish},
                      {"sum", sum},
                      {"mean", mean},
                      {"prod", prod},
                      {"max", max},
                      {"min", min},
                      {"any", any},
                      {"all", all},
                      {"t", t},
                      {"squeeze", squeeze},
                      {"nonzero", nonzero}};
  for (const Row& row : rows) refuses(row.op, {nothing}, [&] { here(), row.call(none); });
}

TEST_F(Elementwise, UnaryMethodsNeedATensor) {
  using Method = Tensor (Tensor::*)(Loc) const;
  struct Row {
    const char* op;
    Method call;
  };
  const Row rows[] = {{"neg", &Tensor::neg},
                      {"abs", &Tensor::abs},
                      {"sign", &Tensor::sign},
                      {"square", &Tensor::square},
                      {"reciprocal", &Tensor::reciprocal},
                      {"exp", &Tensor::exp},
                      {"expm1", &Tensor::expm1},
                      {"log", &Tensor::log},
                      {"log1p", &Tensor::log1p},
                      {"sqrt", &Tensor::sqrt},
                      {"rsqrt", &Tensor::rsqrt},
                      {"sin", &Tensor::sin},
                      {"cos", &Tensor::cos},
                      {"tan", &Tensor::tan},
                      {"asin", &Tensor::asin},
                      {"acos", &Tensor::acos},
                      {"atan", &Tensor::atan},
                      {"sinh", &Tensor::sinh},
                      {"cosh", &Tensor::cosh},
                      {"tanh", &Tensor::tanh},
                      {"sigmoid", &Tensor::sigmoid},
                      {"erf", &Tensor::erf},
                      {"floor", &Tensor::floor},
                      {"ceil", &Tensor::ceil},
                      {"round", &Tensor::round},
                      {"trunc", &Tensor::trunc},
                      {"relu", &Tensor::relu},
                      {"silu", &Tensor::silu},
                      {"logical_not", &Tensor::logical_not},
                      {"bitwise_not", &Tensor::bitwise_not},
                      {"isnan", &Tensor::isnan},
                      {"isinf", &Tensor::isinf},
                      {"isfinite", &Tensor::isfinite},
                      {"nonzero", &Tensor::nonzero},
                      {"detach", &Tensor::detach},
                      {"sum", &Tensor::sum},
                      {"mean", &Tensor::mean},
                      {"prod", &Tensor::prod},
                      {"max", &Tensor::max},
                      {"min", &Tensor::min},
                      {"any", &Tensor::any},
                      {"all", &Tensor::all},
                      {"t", &Tensor::t},
                      {"squeeze", &Tensor::squeeze}};
  for (const Row& row : rows) {
    refuses(row.op, {nothing}, [&] { here(), (none.*row.call)(Loc::current()); });
  }
}

TEST_F(Elementwise, FunctionsOfThreeAndOptions) {
  refuses("where", {"f32"}, [&] { here(), where(f23, f23, f23); });
  refuses("where", {"(2, 3)", "(4)"}, [&] { here(), where(b23, f4, f4); });
  refuses("where", {"(2, 3)", "(4)"}, [&] { here(), where(b23, f23, f4); });
  refuses("where", {nothing}, [&] { here(), where(none, f23, f23); });
  refuses("where", {nothing}, [&] { here(), where(b23, none, f23); });
  refuses("where", {"(2, 3)", "(4)"}, [&] { here(), f23.where(b23, f4); });
  refuses("masked_fill", {"f32"}, [&] { here(), masked_fill(f23, f23, 0); });
  refuses("masked_fill", {"(4)", "(2, 3)"}, [&] { here(), masked_fill(f4, b23, 0); });
  refuses("masked_fill", {"(3)"}, [&] { here(), masked_fill(f23, b23, f3); });
  refuses("masked_fill", {"(3)"}, [&] { here(), f23.masked_fill(b23, f3); });
  refuses("masked_fill", {nothing}, [&] { here(), masked_fill(none, b23, 0); });
  refuses("lerp", {"(2, 3)", "(4)"}, [&] { here(), lerp(f23, f4, 0.5); });
  refuses("lerp", {"(2, 3)", "(4)"}, [&] { here(), f23.lerp(f23, f4); });
  refuses("lerp", {nothing}, [&] { here(), lerp(f23, none, 0.5); });
  refuses("addcmul", {"(2, 3)", "(4)"}, [&] { here(), addcmul(f23, f4, f4); });
  refuses("addcmul", {"(2, 3)", "(4)"}, [&] { here(), f23.addcmul(f23, f4); });
  refuses("addcdiv", {"(2, 3)", "(4)"}, [&] { here(), addcdiv(f23, f23, f4); });
  refuses("addcdiv", {"(2, 3)", "(4)"}, [&] { here(), f23.addcdiv(f4, f4); });
  refuses("clamp", {"min", "max"}, [&] { here(), clamp(f23, std::nullopt); });
  refuses("clamp", {"min", "max"}, [&] { here(), f23.clamp(std::nullopt); });
  refuses("clamp", {nothing}, [&] { here(), clamp(none, 0, 1); });
  refuses("clamp_min", {nothing}, [&] { here(), clamp_min(none, 0); });
  refuses("clamp_max", {nothing}, [&] { here(), clamp_max(none, 0); });
  refuses("gelu", {"approximate", "erf"}, [&] { here(), gelu(f23, "erf"); });
  refuses("gelu", {"approximate", "erf"}, [&] { here(), f23.gelu("erf"); });
  refuses("gelu", {"approximate", "null"}, [&] { here(), gelu(f23, nullptr); });
  refuses("gelu", {nothing}, [&] { here(), gelu(none); });
  refuses("softshrink", {"-1"}, [&] { here(), softshrink(f23, -1); });
  refuses("celu", {"alpha"}, [&] { here(), celu(f23, 0); });
  refuses("leaky_relu", {nothing}, [&] { here(), leaky_relu(none); });
  refuses("elu", {nothing}, [&] { here(), elu(none); });
  refuses("softplus", {nothing}, [&] { here(), softplus(none); });
  refuses("hardshrink", {nothing}, [&] { here(), hardshrink(none); });
  refuses("threshold", {nothing}, [&] { here(), threshold(none, 0, 1); });
  refuses("glu", {"(2, 3)", "1"}, [&] { here(), glu(f23); });
  refuses("glu", {"2"}, [&] { here(), glu(f23, 2); });
  refuses("glu", {"()"}, [&] { here(), glu(f); });
  refuses("prelu", {"(2, 3)", "(4)"}, [&] { here(), prelu(f23, f4); });
  refuses("prelu", {nothing}, [&] { here(), prelu(f23, none); });
}

TEST_F(Elementwise, InPlaceKeepsShapeAndDtype) {
  refuses("add_", {"(4)", "(2, 3)"}, [&] { here(), f4.add_(f23); });
  refuses("add_", {"(3)", "(2, 3)"}, [&] { here(), f3.add_(f23); });
  refuses("add_", {"(3)", "(2, 3)"}, [&] { here(), f3.add_(f23, 2); });
  refuses("sub_", {"(3)", "(2, 3)"}, [&] { here(), f3.sub_(f23); });
  refuses("mul_", {"(3)", "(2, 3)"}, [&] { here(), f3.mul_(f23); });
  refuses("div_", {"(3)", "(2, 3)"}, [&] { here(), f3.div_(f23); });
  refuses("pow_", {"(3)", "(2, 3)"}, [&] { here(), f3.pow_(f23); });
  refuses("lerp_", {"(3)", "(2, 3)"}, [&] { here(), f3.lerp_(f23, 0.5); });
  refuses("addcmul_", {"(3)", "(2, 3)"}, [&] { here(), f3.addcmul_(f23, f23); });
  refuses("addcdiv_", {"(3)", "(2, 3)"}, [&] { here(), f3.addcdiv_(f23, f23); });
  refuses("masked_fill_", {"(3)", "(2, 3)"}, [&] { here(), f3.masked_fill_(b23, 1); });
  refuses("copy_", {"(3)", "(2, 3)"}, [&] { here(), f3.copy_(f23); });
  refuses("copy_", {nothing}, [&] { here(), f3.copy_(none); });
  refuses("add_", {"i64", "f32"}, [&] { here(), i3.add_(0.5); });
  refuses("div_", {"i64", "f32"}, [&] { here(), i3.div_(2); });
  refuses("mul_", {"i64", "f32"}, [&] { here(), i3.mul_(f3); });
  refuses("add_", {"bool", "i64"}, [&] { here(), b3.add_(i3); });
  refuses("exp_", {"i64", "f32"}, [&] { here(), i3.exp_(); });
  refuses("log_", {"i64", "f32"}, [&] { here(), i3.log_(); });
  refuses("sqrt_", {"i64", "f32"}, [&] { here(), i3.sqrt_(); });
  refuses("tanh_", {"i64", "f32"}, [&] { here(), i3.tanh_(); });
  refuses("sigmoid_", {"i64", "f32"}, [&] { here(), i3.sigmoid_(); });
  refuses("add_", {"cpu", "meta"}, [&] { here(), f23.add_(m23); });
  refuses("clamp", {"min", "max"}, [&] { here(), f23.clamp_(std::nullopt); });
  refuses("neg_", {nothing}, [&] { here(), none.neg_(); });
  refuses("abs_", {nothing}, [&] { here(), none.abs_(); });
  refuses("relu_", {nothing}, [&] { here(), none.relu_(); });
  refuses("floor_", {nothing}, [&] { here(), none.floor_(); });
  refuses("round_", {nothing}, [&] { here(), none.round_(); });
  refuses("sin_", {nothing}, [&] { here(), none.sin_(); });
  refuses("square_", {nothing}, [&] { here(), none.square_(); });
  refuses("rsqrt_", {"i64", "f32"}, [&] { here(), i3.rsqrt_(); });
  refuses("clamp", {nothing}, [&] { here(), none.clamp_min_(1); });
  refuses("relu_", {nothing}, [&] { here(), relu_(none); });
  refuses("fill_", {nothing}, [&] { here(), none.fill_(1); });
  refuses("zero_", {nothing}, [&] { here(), none.zero_(); });
}

TEST_F(Elementwise, WritesThroughExpandedViewsAreRefused) {
  const std::vector<std::string> texts{"(2, 3)", "(1, 0)", "clone()"};
  refuses("add_", texts, [&] { here(), wide.add_(1); });
  refuses("mul_", texts, [&] { here(), wide.mul_(f23); });
  refuses("neg_", texts, [&] { here(), wide.neg_(); });
  refuses("fill_", texts, [&] { here(), wide.fill_(1); });
  refuses("zero_", texts, [&] { here(), wide.zero_(); });
  refuses("copy_", texts, [&] { here(), wide.copy_(f23); });
  refuses("masked_fill_", texts, [&] { here(), wide.masked_fill_(b23, 1); });
  refuses("uniform_", texts, [&] { here(), wide.uniform_(); });
  refuses("normal_", texts, [&] { here(), wide.normal_(); });
  refuses("bernoulli_", texts, [&] { here(), wide.bernoulli_(); });
  refuses("scatter_", texts, [&] { here(), wide.scatter_(0, i23, 1); });
  refuses("index_put_", {"clone()"}, [&] { here(), wide.index_put_({0}, 1); });
  const Tensor windows = f4.unfold(0, 2, 1);
  refuses("add_", {"(3, 2)", "(1, 1)"}, [&] { here(), windows.add_(1); });
}

}  // namespace
}  // namespace taper::errors
