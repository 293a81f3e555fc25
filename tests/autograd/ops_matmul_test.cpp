// Matrix products against three plain loops, and their gradients.
#include "taper/autograd/ops/matmul.h"
#include "taper/tests/autograd/ops_support.h"

namespace taper {
namespace {

// The product of matrices (m, k) and (k, n) at one place of the batch.
void multiply(const double* a,
              const double* b,
              std::int64_t m,
              std::int64_t k,
              std::int64_t n,
              Numbers& out) {
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t q = 0; q < k; ++q) sum += a[i * k + q] * b[q * n + j];
      out.push_back(sum);
    }
  }
}

// The slow matmul: batches stretched by copies, then loops.
Numbers oracle(Tensor a, Tensor b) {
  if (a.dim() == 1) a = a.unsqueeze(0);
  if (b.dim() == 1) b = b.unsqueeze(1);
  const std::int64_t m = a.size(-2), k = a.size(-1), n = b.size(-1);
  const auto front = [](const Tensor& t) {
    return IntArrayRef(t.sizes().data(), static_cast<std::size_t>(t.dim() - 2));
  };
  const Sizes batch = broadcast_sizes(front(a), front(b));
  Sizes sizes_a = batch, sizes_b = batch;
  sizes_a.push_back(m), sizes_a.push_back(k), sizes_b.push_back(k), sizes_b.push_back(n);
  const Numbers left = values(a.expand(sizes_a)), right = values(b.expand(sizes_b));
  Numbers out;
  const std::int64_t count = checked_numel(batch);
  for (std::int64_t i = 0; i < count; ++i) {
    multiply(left.data() + i * m * k, right.data() + i * k * n, m, k, n, out);
  }
  return out;
}

struct Case {
  Shape a, b, out;
};

TEST(Matmul, TakesEveryCombinationOfDims) {
  const Case cases[] = {
      {{3}, {3}, {}},
      {{2, 3}, {3}, {2}},
      {{3}, {3, 4}, {4}},
      {{2, 3}, {3, 4}, {2, 4}},
      {{5, 2, 3}, {3}, {5, 2}},
      {{3}, {5, 3, 4}, {5, 4}},
      {{5, 2, 3}, {3, 4}, {5, 2, 4}},
      {{2, 3}, {5, 3, 4}, {5, 2, 4}},
      {{5, 2, 3}, {5, 3, 4}, {5, 2, 4}},
      {{5, 1, 2, 3}, {6, 3, 4}, {5, 6, 2, 4}},
      {{2, 1, 2, 3}, {1, 3, 3, 4}, {2, 3, 2, 4}},
      {{1, 1}, {1, 1}, {1, 1}},
  };
  for (const Case& c : cases) {
    const Tensor a = variable(c.a), b = variable(c.b, 2);
    const Tensor out = matmul(a, b);
    EXPECT_EQ(shape(out), c.out);
    expect_near(out, oracle(a.detach(), b.detach()));
    const auto f = [](const std::vector<Tensor>& in) { return matmul(in[0], in[1]); };
    check_derivatives(f, {a, b});
  }
}

TEST(Matmul, ReadsStridedOperands) {
  const Tensor a = numbers({4, 2, 3, 5}).permute({2, 0, 3, 1});  // (3, 4, 5, 2)
  const Tensor b = numbers({2, 3, 8}, 2).permute({1, 0, 2}).unsqueeze(1).slice(3, 0, 8, 2);
  expect_near(matmul(a, b), oracle(a, b));
  const Tensor turned = numbers({6, 5}).slice(0, std::nullopt, std::nullopt, -2);
  expect_near(matmul(turned, numbers({5, 3})), oracle(turned, numbers({5, 3})));
  const Tensor heads = numbers({3, 7, 2, 4}).transpose(1, 2);  // (B, H, T, D)
  expect_near(matmul(heads, heads.mT()), oracle(heads, heads.mT()));
  const Tensor wide = numbers({2, 3}).unsqueeze(0).expand({4, 2, 3});
  expect_near(matmul(wide, numbers({4, 3, 2})), oracle(wide, numbers({4, 3, 2})));
}

TEST(Matmul, HasZerosWhereNothingIsSummed) {
  EXPECT_EQ(values(matmul(f64(0).expand({2, 0}), f64(0).expand({0, 3}))), Numbers(6));
  EXPECT_EQ(shape(matmul(zeros({0, 3}), zeros({3, 4}))), (Shape{0, 4}));
  EXPECT_EQ(shape(matmul(zeros({0, 2, 3}), zeros({3, 4}))), (Shape{0, 2, 4}));
  EXPECT_EQ(matmul(zeros({0}), zeros({0})).item<float>(), 0);
  const Tensor w = variable({4, 3}), bias = variable({4}, 2);
  EXPECT_EQ(shape(linear(f64(0).expand({0, 3}), w)), (Shape{0, 4}));
  const Tensor y = linear(zeros({2, 0}, kFloat64), zeros({4, 0}, kFloat64), bias);
  EXPECT_EQ(values(y.select(0, 1)), values(bias));
  linear(zeros({0, 3}, kFloat64), w, bias).sum().backward();
  EXPECT_EQ(values(w.grad()), Numbers(12));
}

// Values and gradients to the bit, recorded or not, for each subset of the inputs that wants one.
TEST(Matmul, LinearEndsAsTheOpWouldThatFollows) {
  const auto follow = [](const Tensor& x, Activation activation) {
    if (activation == Activation::kRelu) return relu(x);
    if (activation == Activation::kGelu) return gelu(x);
    return activation == Activation::kGeluTanh ? gelu(x, "tanh") : x;
  };
  for (const Activation activation :
       {Activation::kNone, Activation::kRelu, Activation::kGelu, Activation::kGeluTanh}) {
    for (const Shape& shape : {Shape{3}, {5, 3}, {2, 5, 3}, {0, 3}}) {
      for (const Shape& weights : {Shape{4, 3}, Shape{3}}) {
        for (unsigned wanted = 0; wanted < 8; ++wanted) {
          std::vector<Tensor> one, two;
          for (std::vector<Tensor>* in : {&one, &two}) {
            *in = {numbers(shape) - 0.4, numbers(weights, 2) - 0.5,
                   numbers(weights.size() == 1 ? Shape{} : Shape{4}, 3) - 0.5};
            for (unsigned i = 0; i < 3; ++i) (*in)[i].set_requires_grad((wanted >> i & 1U) != 0);
          }
          const Tensor fused = linear(one[0], one[1], one[2], activation);
          const Tensor plain = follow(linear(two[0], two[1], two[2]), activation);
          ASSERT_EQ(values(fused), values(plain));
          if (wanted == 0) continue;
          (fused * fused.detach()).sum().backward();
          (plain * plain.detach()).sum().backward();
          for (unsigned i = 0; i < 3; ++i) {
            if ((wanted >> i & 1U) == 0) continue;
            EXPECT_EQ(values(one[i].grad()), values(two[i].grad()));
          }
        }
      }
    }
  }
}

TEST(Matmul, LinearWithReluIsOneEntryAndNoticesThatItsResultWasWritten) {
  const Tensor w = variable({4, 3});
  const Tensor y = linear(numbers({2, 3}), w, Tensor(), Activation::kRelu);
  EXPECT_EQ(std::string(y.grad_fn()), "linear");
  y.mul_(2);
  EXPECT_TRUE(contains(message_of([&] { y.sum().backward(); }), "written"));
  EXPECT_TRUE(
      contains(message_of([] {
                 linear(ones({2, 3}, kInt64), ones({4, 3}, kInt64), Tensor(), Activation::kRelu);
               }),
               "linear: an activation needs a floating-point dtype, got i64"));
}

TEST(Matmul, RefusesWhatDoesNotFit) {
  EXPECT_TRUE(contains(message_of([] {
                         matmul(zeros({2, 3}), zeros({4, 5}));
                       }),
                       "matmul: the inner sizes differ: (2, 3) x (4, 5)"));
  EXPECT_TRUE(contains(message_of([] {
                         matmul(zeros({2, 2, 3}), zeros({3, 3, 5}));
                       }),
                       "do not broadcast"));
  EXPECT_TRUE(contains(message_of([] {
                         matmul(zeros({2, 3}), zeros({3}, kFloat64));
                       }),
                       "must have one dtype, got f32 and f64"));
  EXPECT_TRUE(contains(message_of([] { matmul(zeros({}), zeros({3})); }), "vectors and matrices"));
  EXPECT_TRUE(contains(message_of([] { mm(zeros({2, 3}), zeros({3})); }), "mm: takes"));
  EXPECT_TRUE(contains(message_of([] {
                         bmm(zeros({2, 2, 3}), zeros({1, 3, 2}));
                       }),
                       "bmm: the batch"));
  EXPECT_TRUE(contains(message_of([] { mv(zeros({2, 3}), zeros({3, 1})); }), "mv: takes"));
  EXPECT_TRUE(contains(message_of([] { dot(zeros({2}), zeros({3})); }), "dot: the inner sizes"));
  EXPECT_TRUE(contains(message_of([] {
                         linear(zeros({2, 3}), zeros({4, 2}));
                       }),
                       "linear: x (2, 3)"));
  EXPECT_TRUE(contains(message_of([] {
                         linear(zeros({2, 3}), zeros({4, 3}), zeros({3}));
                       }),
                       "bias f32 (3) does not fit"));
}

TEST(Matmul, NamedFormsAgreeWithIt) {
  const Tensor a = numbers({2, 3}), b = numbers({3, 4}, 2), v = numbers({3}, 3);
  EXPECT_EQ(values(mm(a, b)), values(a.matmul(b)));
  EXPECT_EQ(values(mv(a, v)), values(a.matmul(v)));
  EXPECT_EQ(values(dot(v, v)), values(v.matmul(v)));
  EXPECT_EQ(values(bmm(a.unsqueeze(0), b.unsqueeze(0))), values(mm(a, b)));
  expect_near(outer(v, v), values(matmul(v.unsqueeze(1), v.unsqueeze(0))));
  EXPECT_EQ(outer(i64({1, 2}), f64({1, 2})).dtype(), kFloat64);
}

TEST(Matmul, MultipliesIntegersAndHalves) {
  const Tensor a = i64({{1, 2}, {3, 4}});
  EXPECT_EQ(values(matmul(a, a)), (Numbers{7, 10, 15, 22}));
  EXPECT_EQ(matmul(a, a).dtype(), kInt64);
  const Tensor h = f64({{1, 2}, {3, 4}}).to(kBFloat16);
  EXPECT_EQ(values(matmul(h, h)), (Numbers{7, 10, 15, 22}));
  EXPECT_EQ(matmul(h, h).dtype(), kBFloat16);
}

TEST(Matmul, AddsScaled) {
  const Tensor x = variable({4}), a = variable({2, 3}, 2), b = variable({3, 4}, 3);
  const Tensor expected = x * 0.5 + matmul(a, b) * 2;
  expect_near(addmm(x, a, b, 0.5, 2), values(expected));
  expect_near(addmm(x, a, b), values(x + matmul(a, b)));
  for (const double beta : {1., 0.5}) {
    const auto f = [&](const std::vector<Tensor>& in) {
      return addmm(in[0], in[1], in[2], beta, beta == 1 ? 1 : -2);
    };
    check_derivatives(f, {x, a, b});
  }
  const Tensor nothing = full({2, 4}, kNaN, kFloat64);
  expect_near(addmm(nothing, a, b, 0), values(matmul(a, b)));
  const Tensor batch = baddbmm(x, a.unsqueeze(0), b.unsqueeze(0), 0.5, 2);
  expect_near(batch, values(expected));
  EXPECT_EQ(shape(batch), (Shape{1, 2, 4}));
  EXPECT_TRUE(contains(message_of([] {
                         addmm(zeros({3, 2}), zeros({2, 2}), zeros({2, 2}));
                       }),
                       "cannot expand (3, 2)"));
  const Tensor i = i64({{1, 2}, {3, 4}});
  EXPECT_EQ(values(addmm(i, i, i, 0.5, 1.5)), (Numbers{7, 10, 15, 22}));  // 0 and 1
}

TEST(Matmul, LinearIsOneEntryWithTheBiasInside) {
  for (const Shape& sizes : {Shape{3}, Shape{5, 3}, Shape{2, 5, 3}, Shape{2, 1, 2, 3}}) {
    const Tensor x = variable(sizes), w = variable({4, 3}, 2), bias = variable({4}, 3);
    const Tensor y = linear(x, w, bias);
    EXPECT_STREQ(y.grad_fn(), "linear");
    expect_near(y, values(matmul(x, w.t()) + bias));
    const auto f = [](const std::vector<Tensor>& in) { return linear(in[0], in[1], in[2]); };
    check_derivatives(f, {x, w, bias});
    const auto plain = [](const std::vector<Tensor>& in) { return linear(in[0], in[1]); };
    check_derivatives(plain, {x, w});
  }
  const Tensor moved = numbers({3, 5, 2}).permute({2, 1, 0}), w = numbers({4, 3});
  expect_near(linear(moved, w), values(matmul(moved, w.t())));
  expect_near(linear(moved, w.select(0, 0)), values(matmul(moved, w.select(0, 0))));
}

TEST(Matmul, SavesOnlyWhatTheOtherNeeds) {
  const Tensor a = variable({2, 3}), b = numbers({3, 4}, 2);
  const Tensor out = matmul(a, b);
  a.detach().fill_(7);  // not saved: b's gradient is not wanted
  out.sum().backward();
  expect_near(a.grad().select(0, 0), values(b.sum(1)));
  const Tensor again = matmul(a, b);
  b.fill_(1);
  EXPECT_TRUE(contains(message_of([&] { again.sum().backward(); }), "has been written since"));
}

TEST(Matmul, KnowsItsShapeOnMeta) {
  const TensorOptions meta = TensorOptions(kFloat).device(kMeta);
  EXPECT_EQ(shape(matmul(zeros({5, 1, 2, 3}, meta), zeros({6, 3, 4}, meta))), (Shape{5, 6, 2, 4}));
  EXPECT_EQ(shape(linear(zeros({2, 3}, meta), zeros({4, 3}, meta), zeros({4}, meta))),
            (Shape{2, 4}));
  EXPECT_EQ(shape(einsum("bij,jk->kbi", {zeros({5, 2, 3}, meta), zeros({3, 4}, meta)})),
            (Shape{4, 5, 2}));
}

}  // namespace
}  // namespace taper
