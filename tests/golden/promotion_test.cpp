// The result dtype of every pair of dtypes, as tensors, 0-dim tensors and numbers, is PyTorch's.
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/shape.h"
#include "taper/core/promote.h"
#include "taper/tests/golden/archive.h"

namespace taper::golden {
namespace {

using Json = nlohmann::json;
using Binary = Tensor (*)(const Tensor&, const Tensor&);
using Unary = Tensor (*)(const Tensor&);

const std::map<std::string, Binary> kBinary = {
    {"add", [](const Tensor& a, const Tensor& b) { return a.add(b); }},
    {"sub", [](const Tensor& a, const Tensor& b) { return a.sub(b); }},
    {"mul", [](const Tensor& a, const Tensor& b) { return a.mul(b); }},
    {"div", [](const Tensor& a, const Tensor& b) { return a.div(b); }},
    {"floor_divide", [](const Tensor& a, const Tensor& b) { return a.floor_divide(b); }},
    {"remainder", [](const Tensor& a, const Tensor& b) { return a.remainder(b); }},
    {"pow", [](const Tensor& a, const Tensor& b) { return a.pow(b); }},
    {"eq", [](const Tensor& a, const Tensor& b) { return a.eq(b); }},
    {"lt", [](const Tensor& a, const Tensor& b) { return a.lt(b); }},
    {"logical_and", [](const Tensor& a, const Tensor& b) { return a.logical_and(b); }},
    {"maximum", [](const Tensor& a, const Tensor& b) { return a.maximum(b); }},
    {"add_", [](const Tensor& a, const Tensor& b) { return a.add_(b); }},
    {"mul_", [](const Tensor& a, const Tensor& b) { return a.mul_(b); }},
    {"div_", [](const Tensor& a, const Tensor& b) { return a.div_(b); }},
};

const std::map<std::string, Unary> kUnary = {
    {"neg", [](const Tensor& x) { return x.neg(); }},
    {"abs", [](const Tensor& x) { return x.abs(); }},
    {"exp", [](const Tensor& x) { return x.exp(); }},
    {"sqrt", [](const Tensor& x) { return x.sqrt(); }},
    {"sigmoid", [](const Tensor& x) { return x.sigmoid(); }},
    {"floor", [](const Tensor& x) { return x.floor(); }},
    {"sign", [](const Tensor& x) { return x.sign(); }},
    {"logical_not", [](const Tensor& x) { return x.logical_not(); }},
    {"sum", [](const Tensor& x) { return x.sum(); }},
    {"prod", [](const Tensor& x) { return x.prod(); }},
    {"cumsum", [](const Tensor& x) { return x.cumsum(0); }},
    {"mean", [](const Tensor& x) { return x.mean(); }},
    {"var", [](const Tensor& x) { return x.var(); }},
    {"amax", [](const Tensor& x) { return x.amax(); }},
    {"max", [](const Tensor& x) { return x.max(); }},
    {"argmax", [](const Tensor& x) { return x.argmax(); }},
    {"any", [](const Tensor& x) { return x.any(); }},
    {"softmax", [](const Tensor& x) { return x.softmax(0); }},
    {"relu", [](const Tensor& x) { return x.relu(); }},
    {"reciprocal", [](const Tensor& x) { return x.reciprocal(); }},
    {"ones_like", [](const Tensor& x) { return ones_like(x); }},
    {"where_scalar",
     [](const Tensor& x) { return where(x.eq(0), x, ones({}, TensorOptions(kFloat64))); }},
};

Tensor operand(const std::string& kind, const Json& dtype) {
  if (kind == "bool") return wrapped_number(true);
  if (kind == "int") return wrapped_number(2);
  if (kind == "float") return wrapped_number(1.5);
  const TensorOptions options(dtype_named(dtype.get<std::string>()));
  return kind == "tensor" ? ones({2}, options) : ones({}, options);
}

template <class F> std::string result(F call) {
  try {
    return info(call().dtype()).name;
  } catch (const Error&) {
    return "throws";
  }
}

TEST(GoldenPromotion, PairsGiveTheDtypeOfPyTorch) {
  const Json table = Json::parse(read_data("promotion.json"));
  int rows = 0;
  for (const Json& row : table.at("binary")) {
    ++rows;
    if (row[5].is_null()) continue;  // PyTorch lacks a kernel: no rule to follow
    const auto call = kBinary.at(row[0]);
    const Tensor a = operand(row[1], row[2]), b = operand(row[3], row[4]);
    EXPECT_EQ(result([&] { return call(a, b); }), row[5].get<std::string>()) << row;
  }
  EXPECT_EQ(rows, 4160);
}

TEST(GoldenPromotion, OneOperandGivesTheDtypeOfPyTorch) {
  const Json table = Json::parse(read_data("promotion.json"));
  for (const Json& row : table.at("unary")) {
    const auto call = kUnary.find(row[0].get<std::string>());
    if (row[2].is_null() || row[0] == "cat_f32") continue;
    ASSERT_NE(call, kUnary.end()) << row;
    const Tensor x = operand("tensor", row[1]);
    EXPECT_EQ(result([&] { return call->second(x); }), row[2].get<std::string>()) << row;
  }
}

TEST(GoldenPromotion, CatPromotes) {
  const Json table = Json::parse(read_data("promotion.json"));
  for (const Json& row : table.at("unary")) {
    if (row[0] != "cat_f32") continue;
    const Tensor x = operand("tensor", row[1]), one = ones({1}, TensorOptions(kFloat32));
    EXPECT_EQ(result([&] { return cat({x, one}); }), row[2].get<std::string>()) << row;
  }
}

TEST(GoldenPromotion, PromoteTypesIsPyTorchs) {
  const Json table = Json::parse(read_data("promotion.json"));
  for (const Json& row : table.at("promote_types")) {
    const DType found = promote_types(dtype_named(row[0]), dtype_named(row[1]));
    EXPECT_EQ(info(found).name, row[2].get<std::string>()) << row;
  }
}

}  // namespace
}  // namespace taper::golden
