// What `std::cout << tensor` prints is what LibTorch prints, character for character.
#include <limits>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "taper/autograd/ops/create.h"
#include "taper/tests/golden/archive.h"

namespace taper::golden {
namespace {

using Json = nlohmann::json;

double number(const Json& j) {
  if (!j.is_object()) return j.get<double>();
  const auto word = j.at("f").get<std::string>();
  if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
  return (word == "inf" ? 1 : -1) * std::numeric_limits<double>::infinity();
}

TEST(GoldenPrinting, IsLibTorchs) {
  std::istringstream lines(read_data("printing.jsonl"));
  int cases = 0;
  for (std::string line; std::getline(lines, line); ++cases) {
    const Json j = Json::parse(line);
    std::vector<double> values;
    for (const Json& v : j.at("values")) values.push_back(number(v));
    const Tensor flat = tensor(values, TensorOptions(kFloat64));
    const Tensor t = flat.reshape(j.at("shape").get<std::vector<std::int64_t>>())
                         .to(dtype_named(j.at("dtype").get<std::string>()));
    std::ostringstream text;
    text << t;
    EXPECT_EQ(text.str(), j.at("text").get<std::string>()) << line.substr(0, 200);
  }
  EXPECT_EQ(cases, 46);
}

}  // namespace
}  // namespace taper::golden
