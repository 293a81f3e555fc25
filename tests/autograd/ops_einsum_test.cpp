// einsum against a sum over all index values, written down as its definition says.
#include "taper/autograd/ops/matmul.h"
#include "taper/tests/autograd/ops_support.h"

namespace taper {
namespace {

// The definition, for equations of letters with "->": every assignment of the letters adds the
// product of the elements that it names.
Numbers oracle(const std::string& equation, const std::vector<Tensor>& operands) {
  const std::size_t arrow = equation.find("->");
  std::vector<std::string> terms{""};
  for (const char c : equation.substr(0, arrow)) {
    if (c == ',') terms.emplace_back();
    else terms.back() += c;
  }
  const std::string result = equation.substr(arrow + 2);
  std::string letters = result;
  std::int64_t size[128] = {};
  for (std::size_t t = 0; t < terms.size(); ++t) {
    for (std::size_t d = 0; d < terms[t].size(); ++d) {
      const char c = terms[t][d];
      if (letters.find(c) == std::string::npos) letters += c;
      const std::int64_t n = operands[t].size(static_cast<std::int64_t>(d));
      size[static_cast<int>(c)] = std::max(size[static_cast<int>(c)], n);
    }
  }
  std::vector<Numbers> elements;
  for (const Tensor& t : operands) elements.push_back(values(t));
  std::int64_t count = 1, outputs = 1;
  for (const char c : letters) count *= size[static_cast<int>(c)];
  for (const char c : result) outputs *= size[static_cast<int>(c)];
  Numbers out(static_cast<std::size_t>(outputs));
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t at[128] = {}, rest = i;
    for (auto c = letters.rbegin(); c != letters.rend(); ++c) {
      at[static_cast<int>(*c)] = rest % size[static_cast<int>(*c)];
      rest /= size[static_cast<int>(*c)];
    }
    double product = 1;
    for (std::size_t t = 0; t < terms.size(); ++t) {
      std::int64_t place = 0;
      for (std::size_t d = 0; d < terms[t].size(); ++d) {
        const std::int64_t n = operands[t].size(static_cast<std::int64_t>(d));
        place = place * n + (n == 1 ? 0 : at[static_cast<int>(terms[t][d])]);
      }
      product *= elements[t][static_cast<std::size_t>(place)];
    }
    out[static_cast<std::size_t>(i / (count / outputs))] += product;
  }
  return out;
}

void check(const std::string& equation, const std::vector<Tensor>& operands, const Shape& sizes) {
  const Tensor out = einsum(equation, operands);
  EXPECT_EQ(shape(out), sizes) << equation;
  expect_near(out, oracle(equation, operands));
  const auto f = [&](const std::vector<Tensor>& in) { return einsum(equation, in); };
  check_derivatives(f, operands);
}

TEST(Einsum, SumsProductsAsTheEquationSays) {
  check("ij,jk->ik", {variable({2, 3}), variable({3, 4}, 2)}, {2, 4});
  check("ij,jk->ki", {variable({2, 3}), variable({3, 4}, 2)}, {4, 2});
  check("ij->ji", {variable({2, 3})}, {3, 2});
  check("ij->", {variable({2, 3})}, {});
  check("ij->j", {variable({2, 3})}, {3});
  check("i,i->", {variable({3}), variable({3}, 2)}, {});
  check("i,i->i", {variable({3}), variable({3}, 2)}, {3});
  check("i,j->ji", {variable({3}), variable({2}, 2)}, {2, 3});
  check("bij,bjk->bik", {variable({2, 2, 3}), variable({2, 3, 2}, 2)}, {2, 2, 2});
  check("bij,bjk->k", {variable({2, 2, 3}), variable({2, 3, 2}, 2)}, {2});
  check("bhid,bhjd->bhij", {variable({2, 2, 3, 2}), variable({2, 2, 2, 2}, 2)}, {2, 2, 3, 2});
  check("ab,bc,cd->ad", {variable({2, 3}), variable({3, 2}, 2), variable({2, 4}, 3)}, {2, 4});
  check("ab,cb,db->acd", {variable({2, 3}), variable({2, 3}, 2), variable({2, 3}, 3)}, {2, 2, 2});
  check("ij,k->i", {variable({2, 3}), variable({4}, 2)}, {2});
  check("aB,Bc->ca", {variable({2, 3}), variable({3, 2}, 2)}, {2, 2});
}

TEST(Einsum, TakesDiagonalsOfRepeatedLetters) {
  check("ii->", {variable({3, 3})}, {});
  check("ii->i", {variable({3, 3})}, {3});
  check("iij->j", {variable({3, 3, 2})}, {2});
  check("iii->i", {variable({2, 2, 2})}, {2});
  check("iij,jk->ik", {variable({3, 3, 2}), variable({2, 2}, 2)}, {3, 2});
}

TEST(Einsum, StretchesDimsOfSizeOne) {
  check("ij,jk->ik", {variable({2, 1}), variable({3, 4}, 2)}, {2, 4});
  check("ij,ij->ij", {variable({2, 1}), variable({1, 3}, 2)}, {2, 3});
  check("ij,ij->", {variable({1, 3}), variable({2, 3}, 2)}, {});
}

TEST(Einsum, ImpliesTheResultsLetters) {
  const Tensor a = numbers({2, 3}), b = numbers({3, 4}, 2);
  EXPECT_EQ(values(einsum("ij,jk", {a, b})), values(matmul(a, b)));
  EXPECT_EQ(shape(einsum("ba", {a})), (Shape{3, 2}));
  EXPECT_EQ(shape(einsum("bA", {a})), (Shape{3, 2}));
  EXPECT_EQ(shape(einsum("ii", {numbers({2, 2})})), Shape{});
  EXPECT_EQ(values(einsum(" i j , j k -> i k ", {a, b})), values(matmul(a, b)));
}

TEST(Einsum, CarriesDimsInFrontByDots) {
  const Tensor a = numbers({5, 1, 2, 3}), b = numbers({6, 3, 4}, 2);
  const Tensor out = einsum("...ij,...jk->...ik", {a, b});
  EXPECT_EQ(shape(out), (Shape{5, 6, 2, 4}));
  expect_near(out, values(matmul(a, b)));
  EXPECT_EQ(values(einsum("...ij,...jk", {a, b})), values(out));
  EXPECT_EQ(shape(einsum("i...->...i", {a})), (Shape{1, 2, 3, 5}));
  expect_near(einsum("...ij->ij", {a}), values(a.sum({0, 1})));
  EXPECT_EQ(shape(einsum("ij...->...", {numbers({2, 3})})), Shape{});
  EXPECT_EQ(shape(einsum("...,...->...", {f64(2), numbers({3})})), Shape{3});
}

TEST(Einsum, RefusesWhatItCannotRead) {
  const Tensor a = zeros({2, 3});
  const auto failure = [&](const char* text) { return message_of([&] { einsum(text, {a}); }); };
  EXPECT_TRUE(contains(failure("ij,jk->ik"), "has 2 terms for 1 operands"));
  EXPECT_TRUE(contains(failure("i->i"), "operand 0 has shape (2, 3) but its term names 1 dims"));
  EXPECT_TRUE(contains(failure("ijk->i"), "its term names 3 dims"));
  EXPECT_TRUE(contains(failure("i?->i"), "is no letter"));
  EXPECT_TRUE(contains(failure("ij->ik"), "a letter that no operand has"));
  EXPECT_TRUE(contains(failure("ij->ii"), "names a letter twice"));
  EXPECT_TRUE(contains(failure("ii->i"), "one letter at dims of sizes 2 and 3"));
  EXPECT_TRUE(contains(failure("..i->i"), "one \"...\""));
  EXPECT_TRUE(contains(message_of([&] {
                         einsum("ij,jk->ik", {a, a});
                       }),
                       "one label has sizes 3 and 2"));
}

}  // namespace
}  // namespace taper
