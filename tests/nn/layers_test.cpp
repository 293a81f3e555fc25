// Linear, Conv2d, Embedding and LayerNorm: shapes, values by slow loops, gradients, first values.
#include "taper/nn/layers.h"

#include "taper/autograd/ops/index.h"
#include "taper/autograd/ops/random.h"
#include "taper/tests/nn/nn_testing.h"

namespace taper::testing {
namespace {

template <class Holder> Holder f64(Holder module) {
  module->to(kFloat64);
  return module;
}

// --- Linear
// ---------------------------------------------------------------------------------------

TEST(Linear, IsWeightTimesInputPlusBias) {
  for (const bool bias : {true, false}) {
    const auto fc = f64(nn::Linear(nn::LinearOptions(3, 2).bias(bias)));
    const Tensor x = sample({2, 4, 3});
    const Tensor y = fc(x);
    ASSERT_TRUE(y.sizes() == IntArrayRef({2, 4, 2}));
    const Numbers in = values(x), w = values(fc->weight), got = values(y);
    for (std::size_t row = 0; row < 8; ++row) {
      for (std::size_t o = 0; o < 2; ++o) {
        double want = bias ? values(fc->bias)[o] : 0;
        for (std::size_t k = 0; k < 3; ++k) want += in[3 * row + k] * w[3 * o + k];
        EXPECT_NEAR(got[2 * row + o], want, 1e-12);
      }
    }
    EXPECT_EQ(fc->named_parameters().size(), bias ? 2U : 1U);
    expect_parameter_gradients(*fc, [&] { return fc(x); });
  }
}

TEST(Linear, EndsWithItsActivation) {
  const auto relu = f64(nn::Linear(nn::LinearOptions(3, 2).activation(kReLU)));
  const auto gelu = f64(nn::Linear(nn::LinearOptions(3, 2).activation(kGELU).bias(false)));
  const auto tanh = f64(nn::Linear(nn::LinearOptions(3, 2).activation(Activation::kGeluTanh)));
  const Tensor x = sample({2, 4, 3});
  EXPECT_EQ(values(relu(x)), values(nn::functional::linear(x, relu->weight, relu->bias).relu()));
  EXPECT_EQ(values(gelu(x)), values(nn::functional::linear(x, gelu->weight).gelu()));
  EXPECT_EQ(values(tanh(x)),
            values(nn::functional::linear(x, tanh->weight, tanh->bias).gelu("tanh")));
  for (const auto& fc : {relu, gelu, tanh}) {
    expect_parameter_gradients(*fc, [&] { return fc(x); });
  }
  EXPECT_EQ(printed(*relu), "Linear(in_features=3, out_features=2, bias=true, activation=relu)");
  EXPECT_EQ(printed(*gelu), "Linear(in_features=3, out_features=2, bias=false, activation=gelu)");
  EXPECT_EQ(printed(*tanh),
            "Linear(in_features=3, out_features=2, bias=true, activation=gelu_tanh)");
  const NoGradGuard no_grad;
  EXPECT_EQ(values(gelu(x)), values(nn::functional::linear(x, gelu->weight).gelu()));
}

TEST(Linear, TakesVectorsAndEmptyBatches) {
  const auto fc = f64(nn::Linear(3, 2));
  EXPECT_TRUE(fc(sample({3})).sizes() == IntArrayRef({2}));
  const Tensor y = fc(sample({0, 3}));
  EXPECT_TRUE(y.sizes() == IntArrayRef({0, 2}));
  y.sum().backward();
  EXPECT_EQ(values(fc->weight.grad()), Numbers(6, 0));
}

TEST(Linear, BeginsUniformWithinTheRootOfItsFanIn) {
  manual_seed(1);
  const nn::Linear fc(100, 300);
  expect_uniform(fc->weight, 0.1);
  expect_uniform(fc->bias, 0.1);
  manual_seed(1);
  EXPECT_EQ(values(nn::Linear(100, 300)->weight), values(fc->weight));
}

// Nothing to multiply: the result is the bias, which must be a number all the same.
TEST(Linear, OfNoFeaturesIsItsBias) {
  for (int i = 0; i < 20; ++i) {
    Tensor dirt = full({64}, 123.0);  // what a fresh block may still hold
    dirt = Tensor();
    const nn::Linear fc(0, 64);
    EXPECT_EQ(values(fc->bias), Numbers(64, 0));
    EXPECT_EQ(values(fc(ones({1, 0}))), Numbers(64, 0));
  }
}

TEST(Linear, ErrorsNameShapesLineAndScope) {
  struct NetImpl : nn::Module {
    NetImpl() : fc(register_module("fc", nn::Linear(3, 2))) {}
    const unsigned line = __LINE__ + 1;
    Tensor forward(const Tensor& x) { return fc(x); }
    nn::Linear fc;
  };
  const nn::ModuleHolder<NetImpl> net;
  const Error e = error_of([&] { net(ones({5, 4})); });
  expect_names(e, net->line, "fc", {"linear", "(5, 4)", "(2, 3)"});
  const Error dtype = error_of([&] { net->fc(ones({5, 3}, kFloat64)); });
  expect_names(dtype, __LINE__ - 1, "fc", {"linear", "f64", "f32"});
  const Error direct = error_of([&] { net->fc->forward(ones({5, 4})); });
  expect_names(direct, __LINE__ - 1, "fc", {"linear", "(5, 4)"});
  const Error undefined = error_of([&] { net->fc(Tensor()); });
  expect_names(undefined, __LINE__ - 1, "fc", {"undefined"});
  EXPECT_EQ(scope_name(call_site.scope), "");
}

// --- Conv2d
// ---------------------------------------------------------------------------------------

struct Window {
  std::int64_t stride, padding, dilation, groups;
};

double at(const Tensor& t, std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
  const bool inside = c >= 0 && c < t.size(2) && d >= 0 && d < t.size(3);
  const auto* p = t.data_ptr<double>();
  return inside ? p[((a * t.size(1) + b) * t.size(2) + c) * t.size(3) + d] : 0;
}

double convolved(const nn::Conv2dImpl& conv,
                 const Tensor& x,
                 const Window& w,
                 const std::array<std::int64_t, 4>& place) {
  const auto [n, o, row, column] = place;
  const std::int64_t per_group = conv.weight.size(1);
  const std::int64_t first = o / (conv.weight.size(0) / w.groups) * per_group;
  double sum = conv.bias.defined() ? values(conv.bias)[static_cast<std::size_t>(o)] : 0;
  for (std::int64_t c = 0; c < per_group; ++c) {
    for (std::int64_t i = 0; i < conv.weight.size(2); ++i) {
      for (std::int64_t j = 0; j < conv.weight.size(3); ++j) {
        sum += at(conv.weight, o, c, i, j) * at(x, n, first + c,
                                                row * w.stride + i * w.dilation - w.padding,
                                                column * w.stride + j * w.dilation - w.padding);
      }
    }
  }
  return sum;
}

TEST(Conv2d, IsTheSumOverItsWindow) {
  const std::vector<Window> windows = {{1, 0, 1, 1}, {2, 1, 1, 1}, {1, 2, 2, 1}, {2, 1, 1, 2}};
  for (const Window& w : windows) {
    const auto conv = f64(nn::Conv2d(nn::Conv2dOptions(4, 6, {3, 2})
                                         .stride(w.stride)
                                         .padding(w.padding)
                                         .dilation(w.dilation)
                                         .groups(w.groups)
                                         .bias(w.stride == 1)));
    const Tensor x = sample({2, 4, 7, 6});
    const Tensor y = conv(x);
    const auto size = [&](std::int64_t in, std::int64_t k) {
      return (in + 2 * w.padding - w.dilation * (k - 1) - 1) / w.stride + 1;
    };
    ASSERT_TRUE(y.sizes() == IntArrayRef({2, 6, size(7, 3), size(6, 2)}));
    const Numbers got = values(y);
    std::size_t k = 0;
    for (std::int64_t n = 0; n < 2; ++n)
      for (std::int64_t o = 0; o < 6; ++o)
        for (std::int64_t i = 0; i < y.size(2); ++i)
          for (std::int64_t j = 0; j < y.size(3); ++j)
            ASSERT_NEAR(got[k++], convolved(*conv, x, w, {n, o, i, j}), 1e-12);
  }
}

TEST(Conv2d, GradientsReachWeightAndBias) {
  const auto conv = f64(nn::Conv2d(nn::Conv2dOptions(2, 4, 3).stride(2).padding(1).groups(2)));
  const Tensor x = sample({2, 2, 5, 4});
  expect_parameter_gradients(*conv, [&] { return conv(x); });
}

TEST(Conv2d, PaddingByRuleKeepsTheSize) {
  const nn::Conv2d same(nn::Conv2dOptions(2, 3, {3, 4}).padding(kSame));
  EXPECT_TRUE(same(ones({1, 2, 5, 6})).sizes() == IntArrayRef({1, 3, 5, 6}));
  const nn::Conv2d valid(nn::Conv2dOptions(2, 3, {3, 4}).padding(kValid));
  EXPECT_TRUE(valid(ones({1, 2, 5, 6})).sizes() == IntArrayRef({1, 3, 3, 3}));
}

TEST(Conv2d, BeginsUniformWithinTheRootOfItsFanIn) {
  manual_seed(2);
  const nn::Conv2d conv(nn::Conv2dOptions(8, 600, {3, 2}).groups(2));
  const double bound = 1 / std::sqrt(4 * 3 * 2);
  expect_uniform(conv->weight, bound);
  expect_uniform(conv->bias, bound);
  EXPECT_EQ(values(nn::Conv2d(nn::Conv2dOptions(0, 64, 3))->bias), Numbers(64, 0));
}

TEST(Conv2d, ErrorsNameShapesAndLine) {
  const nn::Conv2d conv(nn::Conv2dOptions(3, 4, 3));
  const Error channels = error_of([&] { conv(ones({1, 2, 8, 8})); });
  expect_names(channels, __LINE__ - 1, "", {"conv2d", "2 channels", "(4, 3, 3, 3)"});
  const Error dims = error_of([&] { conv(ones({8, 8})); });
  expect_names(dims, __LINE__ - 1, "", {"conv2d", "(8, 8)"});
  const Error small = error_of([&] { conv(ones({1, 3, 2, 8})); });
  expect_names(small, __LINE__ - 1, "", {"conv2d", "(1, 3, 2, 8)"});
  expect_error([] { nn::Conv2d(nn::Conv2dOptions(3, 4, 3).groups(2)); }, {"Conv2d", "groups"});
}

// --- Embedding
// ------------------------------------------------------------------------------------

TEST(Embedding, PicksRows) {
  const auto table = f64(nn::Embedding(5, 3));
  const Tensor index = tensor({{4, 0}, {2, 4}}, kInt64);
  const Tensor y = table(index);
  ASSERT_TRUE(y.sizes() == IntArrayRef({2, 2, 3}));
  const Numbers w = values(table->weight), got = values(y);
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_EQ(got[k], w[12 + k]);
    EXPECT_EQ(got[3 + k], w[k]);
    EXPECT_EQ(got[6 + k], w[6 + k]);
  }
  expect_parameter_gradients(*table, [&] { return table(index); });
  y.sum().backward();
  EXPECT_TRUE(table(zeros({0}, kInt64)).sizes() == IntArrayRef({0, 3}));
  EXPECT_TRUE(table(tensor(3, kInt32)).sizes() == IntArrayRef({3}));
}

TEST(Embedding, ThePaddingRowIsZeroAndStaysSo) {
  for (const std::int64_t pad : {1, -4}) {
    const nn::Embedding table(nn::EmbeddingOptions(5, 2).padding_idx(pad));
    EXPECT_EQ(table->options.padding_idx(), 1);
    EXPECT_EQ(values(table->weight[1]), Numbers(2, 0));
    table(tensor({1, 1, 2}, kInt64)).sum().backward();
    EXPECT_EQ(values(table->weight.grad().sum(1)), (Numbers{0, 0, 2, 0, 0}));
  }
  expect_error([] { nn::Embedding(nn::EmbeddingOptions(5, 2).padding_idx(5)); },
               {"Embedding", "5"});
}

TEST(Embedding, BeginsNormal) {
  manual_seed(3);
  const Tensor w = nn::Embedding(200, 50)->weight.detach();
  EXPECT_NEAR(w.mean().item<double>(), 0, 5 / std::sqrt(1e4));
  EXPECT_NEAR(w.square().mean().item<double>(), 1, 5 * std::sqrt(2 / 1e4));
}

TEST(Embedding, ErrorsNameTheIndexAndLine) {
  const nn::Embedding table(5, 2);
  const Error far = error_of([&] { table(tensor({1, 5}, kInt64)); });
  expect_names(far, __LINE__ - 1, "", {"embedding", "5"});
  const Error below = error_of([&] { table(tensor({-1}, kInt64)); });
  expect_names(below, __LINE__ - 1, "", {"embedding", "-1"});
  const Error dtype = error_of([&] { table(ones({2})); });
  expect_names(dtype, __LINE__ - 1, "", {"embedding", "f32"});
}

// --- LayerNorm
// ------------------------------------------------------------------------------------

TEST(LayerNorm, NormalisesTheLastDims) {
  const auto norm = f64(nn::LayerNorm(nn::LayerNormOptions({2, 3}).eps(0.01)));
  norm->weight.detach().copy_(sample({2, 3}, 2));
  norm->bias.detach().copy_(sample({2, 3}, 3));
  const Tensor x = sample({4, 2, 3});
  const Numbers in = values(x), got = values(norm(x)), w = values(norm->weight),
                b = values(norm->bias);
  for (std::size_t row = 0; row < 4; ++row) {
    double mean = 0, var = 0;
    for (std::size_t k = 0; k < 6; ++k) mean += in[6 * row + k] / 6;
    for (std::size_t k = 0; k < 6; ++k) var += std::pow(in[6 * row + k] - mean, 2) / 6;
    for (std::size_t k = 0; k < 6; ++k) {
      EXPECT_NEAR(got[6 * row + k], (in[6 * row + k] - mean) / std::sqrt(var + 0.01) * w[k] + b[k],
                  1e-12);
    }
  }
  expect_parameter_gradients(*norm, [&] { return norm(x); });
}

TEST(LayerNorm, BeginsAsPlainNormalisation) {
  const nn::LayerNorm norm(nn::LayerNormOptions({4}));
  EXPECT_EQ(values(norm->weight), Numbers(4, 1));
  EXPECT_EQ(values(norm->bias), Numbers(4, 0));
  const nn::LayerNorm plain(nn::LayerNormOptions({4}).elementwise_affine(false));
  EXPECT_TRUE(plain->parameters().empty());
  const Tensor x = sample({3, 4}).to(kFloat32);
  EXPECT_EQ(values(plain(x)), values(norm(x)));
}

TEST(LayerNorm, ErrorsNameShapesAndLine) {
  const nn::LayerNorm norm(nn::LayerNormOptions({4}));
  const Error e = error_of([&] { norm(ones({2, 5})); });
  expect_names(e, __LINE__ - 1, "", {"layer_norm", "(2, 5)", "(4)"});
}

// A constructor does not know the user's line, and must not name one of ours.
TEST(Layers, NegativeSizesAreRefused) {
  const auto expect_refused = [](const auto& make, const std::string& type) {
    const Error e = error_of(make);
    EXPECT_FALSE(e.loc().known()) << e.what();
    EXPECT_NE(e.message().find(type), std::string::npos) << e.what();
    EXPECT_NE(e.message().find("negative"), std::string::npos) << e.what();
  };
  expect_refused([] { nn::Linear(-1, 2); }, "Linear");
  expect_refused([] { nn::Conv2d(3, -4, 1); }, "Conv2d");
  expect_refused([] { nn::Conv2d(3, 4, -1); }, "(4, 3, -1, -1)");
  expect_refused([] { nn::Embedding(-1, 2); }, "Embedding");
  expect_refused([] { nn::LayerNorm(nn::LayerNormOptions({-2})); }, "(-2)");
  expect_refused([] { nn::BatchNorm2d(-3); }, "(-3)");
}

TEST(Layers, PrintTheirOptions) {
  EXPECT_EQ(printed(*nn::Conv2d(1, 8, 5)), "Conv2d(1, 8, kernel_size=[5, 5], stride=[1, 1])");
  const auto all = nn::Conv2dOptions(2, 8, {5, 3}).stride(2).padding({1, 2}).dilation(2).groups(2);
  EXPECT_EQ(printed(*nn::Conv2d(nn::Conv2dOptions(all).bias(false))),
            "Conv2d(2, 8, kernel_size=[5, 3], stride=[2, 2], padding=[1, 2], dilation=[2, 2], "
            "groups=2, bias=false)");
  EXPECT_EQ(printed(*nn::Conv2d(nn::Conv2dOptions(2, 8, 3).padding(kSame))),
            "Conv2d(2, 8, kernel_size=[3, 3], stride=[1, 1], padding='same')");
  EXPECT_EQ(printed(*nn::Embedding(nn::EmbeddingOptions(5, 3).padding_idx(-1))),
            "Embedding(num_embeddings=5, embedding_dim=3, padding_idx=4)");
  EXPECT_EQ(printed(*nn::LayerNorm(nn::LayerNormOptions({3, 4}))),
            "LayerNorm([3, 4], eps=1e-05, elementwise_affine=true)");
}

}  // namespace
}  // namespace taper::testing
