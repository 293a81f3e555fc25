// Each function of nn::functional gives what taper::NAME gives with the options read.
#include "taper/nn/functional.h"

#include "taper/autograd/ops/attention.h"
#include "taper/autograd/ops/conv.h"
#include "taper/autograd/ops/index.h"
#include "taper/autograd/ops/matmul.h"
#include "taper/autograd/ops/norm.h"
#include "taper/autograd/ops/patches.h"
#include "taper/autograd/ops/pool.h"
#include "taper/autograd/ops/random.h"
#include "taper/autograd/ops/softmax.h"
#include "taper/tests/autograd/ops_testing.h"

namespace taper::testing {
namespace {

namespace F = nn::functional;

const Tensor x = sample({3, 4}, 1, -3, 3);

TEST(Functional, Activations) {
  expect_close(F::relu(x), relu(x));
  expect_close(F::relu6(x * 4), relu6(x * 4));
  expect_close(F::elu(x, F::ELUFuncOptions().alpha(0.3)), elu(x, 0.3));
  expect_close(F::selu(x), selu(x));
  expect_close(F::celu(x, F::CELUFuncOptions().alpha(0.3)), celu(x, 0.3));
  expect_close(F::gelu(x, F::GELUFuncOptions().approximate("tanh")), gelu(x, "tanh"));
  expect_close(F::glu(x, 1), glu(x, 1));
  expect_close(F::silu(x), silu(x));
  expect_close(F::mish(x), mish(x));
  expect_close(F::leaky_relu(x, F::LeakyReLUFuncOptions().negative_slope(0.3)), leaky_relu(x, 0.3));
  expect_close(F::prelu(x, tensor(0.3, kFloat64)), leaky_relu(x, 0.3));
  expect_close(F::hardtanh(x, F::HardtanhFuncOptions().min_val(-0.5).max_val(2)),
               hardtanh(x, -0.5, 2));
  expect_close(F::hardshrink(x, 0.3), hardshrink(x, 0.3));
  expect_close(F::softshrink(x, 0.3), softshrink(x, 0.3));
  expect_close(F::softplus(x, F::SoftplusFuncOptions().beta(2).threshold(3)), softplus(x, 2, 3));
  expect_close(F::softsign(x), softsign(x));
  expect_close(F::tanhshrink(x), tanhshrink(x));
  expect_close(F::hardsigmoid(x), hardsigmoid(x));
  expect_close(F::hardswish(x), hardswish(x));
  expect_close(F::logsigmoid(x), log_sigmoid(x));
  expect_close(F::threshold(x, {0.5, 7}), threshold(x, 0.5, 7));
  expect_close(F::softmax(x, 0), softmax(x, 0));
  expect_close(F::log_softmax(x, 1), log_softmax(x, 1));
  expect_close(F::softmin(x, 1), softmax(-x, 1));
  EXPECT_EQ(F::softmax(x, F::SoftmaxFuncOptions(1).dtype(kFloat32)).dtype(), kFloat32);
}

TEST(Functional, InPlaceWritesTheInput) {
  const auto writes = [](auto f) {
    const Tensor t = x.clone();
    const Tensor y = f(t);
    EXPECT_TRUE(y.is_alias_of(t));
    return t;
  };
  expect_close(writes([](const Tensor& t) { return F::relu(t, true); }), relu(x));
  expect_close(writes([](const Tensor& t) { return F::relu6(t, true); }), relu6(x));
  expect_close(writes([](const Tensor& t) { return F::elu(t, F::ELUFuncOptions().inplace(true)); }),
               elu(x));
  const Tensor v = leaf(x);
  F::leaky_relu(v * 1, F::LeakyReLUFuncOptions().inplace(true)).sum().backward();
  expect_close(v.grad(), where(x > 0, ones_like(x), 0.01));
}

TEST(Functional, Losses) {
  const Tensor t = sample({3, 4}, 2, 0.1, 0.9), p = sigmoid(x), w = sample({4}, 3, 0, 2);
  const Tensor labels = tensor({1, -1, 2}, kInt64);
  expect_close(F::l1_loss(x, t, kSum), l1_loss(x, t, kSum));
  expect_close(F::mse_loss(x, t, F::MSELossFuncOptions().reduction(kNone)), mse_loss(x, t, kNone));
  const auto nll = F::NLLLossFuncOptions().weight(w).ignore_index(-1).reduction(kSum);
  expect_close(F::nll_loss(x, labels, nll), nll_loss(x, labels, w, kSum, -1));
  const auto ce = F::CrossEntropyFuncOptions().weight(w).ignore_index(-1).label_smoothing(0.1);
  expect_close(F::cross_entropy(x, labels, ce), cross_entropy(x, labels, w, kMean, -1, 0.1));
  expect_close(F::smooth_l1_loss(x, t, F::SmoothL1LossFuncOptions(kSum).beta(0.3)),
               smooth_l1_loss(x, t, kSum, 0.3));
  expect_close(F::huber_loss(x, t, F::HuberLossFuncOptions().delta(0.3)),
               huber_loss(x, t, kMean, 0.3));
  expect_close(F::binary_cross_entropy(p, t, F::BinaryCrossEntropyFuncOptions().weight(w)),
               binary_cross_entropy(p, t, w));
  expect_close(F::binary_cross_entropy_with_logits(
                   x, t, F::BinaryCrossEntropyWithLogitsFuncOptions().weight(w).pos_weight(w)),
               binary_cross_entropy_with_logits(x, t, w, w));
  expect_close(F::kl_div(x, t, F::KLDivFuncOptions(kBatchMean).log_target(true)),
               kl_div(x, t, kBatchMean, true));
}

TEST(Functional, Pools) {
  const Tensor v = sample({2, 3, 8, 9}), row = v.select(2, 0);
  const auto max = F::MaxPool2dFuncOptions({3, 2}).stride({2, 1}).padding(1).ceil_mode(true);
  expect_close(F::max_pool2d(v, max), max_pool2d(v, {3, 2}, {2, 1}, 1, 1, true));
  expect_close(std::get<1>(F::max_pool2d_with_indices(v, 2)),
               std::get<1>(max_pool2d_with_indices(v, 2)));
  const auto avg = F::AvgPool2dFuncOptions(3).padding(1).count_include_pad(false);
  expect_close(F::avg_pool2d(v, avg), avg_pool2d(v, 3, {}, 1, false, false));
  expect_close(F::avg_pool2d(v, F::AvgPool2dFuncOptions(2).divisor_override(3)),
               avg_pool2d(v, 2, {}, 0, false, true, 3));
  expect_close(F::adaptive_avg_pool2d(v, {2, 3}), adaptive_avg_pool2d(v, {2, 3}));
  expect_close(F::max_pool1d(row, F::MaxPool1dFuncOptions(3).dilation(2)),
               max_pool1d(row, 3, {}, 0, 2));
  expect_close(F::avg_pool1d(row, F::AvgPool1dFuncOptions(3).stride(1)), avg_pool1d(row, 3, 1));
  expect_close(F::adaptive_avg_pool1d(row, 2), adaptive_avg_pool1d(row, 2));
}

TEST(Functional, Convolutions) {
  const Tensor v = sample({2, 4, 6, 7}), w = sample({6, 2, 3, 2}, 2), b = sample({6}, 3);
  const auto options =
      F::Conv2dFuncOptions().bias(b).stride({2, 1}).padding({1, 0}).dilation(2).groups(2);
  expect_close(F::conv2d(v, w, options), conv2d(v, w, b, {2, 1}, {1, 0}, 2, 2));
  const auto same = F::Conv2dFuncOptions().padding(kSame).groups(2).dilation({1, 3});
  const Tensor y = F::conv2d(v, w, same);
  ASSERT_TRUE(y.size(2) == 6 && y.size(3) == 7);
  expect_close(y, conv2d(pad(v, {1, 2, 1, 1}), w, {}, 1, 0, {1, 3}, 2));
  expect_close(F::conv2d(v, w, F::Conv2dFuncOptions().padding(kValid).groups(2)),
               conv2d(v, w, {}, 1, 0, 1, 2));
  const Tensor row = sample({2, 3, 9}), k = sample({4, 3, 2}, 2);
  expect_close(F::conv1d(row, k, F::Conv1dFuncOptions().stride(2).padding(1)),
               conv1d(row, k, {}, 2, 1));
  expect_close(F::conv1d(row, k, F::Conv1dFuncOptions().padding(kSame)),
               conv1d(pad(row, {0, 1}), k));
  const auto back = F::ConvTranspose2dFuncOptions().stride(2).padding(1).output_padding(1);
  expect_close(F::conv_transpose2d(sample({1, 6, 3, 3}), w, back),
               conv_transpose2d(sample({1, 6, 3, 3}), w, {}, 2, 1, 1));
  expect_close(F::unfold(v, F::UnfoldFuncOptions({2, 3}).stride(2)), im2col(v, {2, 3}, 1, 0, 2));
  expect_error([&] { F::conv2d(v, w, F::Conv2dFuncOptions().padding(kSame).stride(2)); },
               {"kSame", "stride"});
}

TEST(Functional, LinearAndEmbedding) {
  const Tensor w = sample({5, 4}, 2), b = sample({5}, 3), i = tensor({1, 3, 1}, kInt64);
  expect_close(F::linear(x, w, b), matmul(x, w.t()) + b);
  expect_close(F::linear(x, w, b, Activation::kRelu), relu(matmul(x, w.t()) + b));
  expect_close(F::embedding(i, w), w.index_select(0, i));
  const Tensor v = leaf(w);
  F::embedding(i, v, F::EmbeddingFuncOptions().padding_idx(1)).sum().backward();
  EXPECT_EQ(values(v.grad().sum(1)), (Numbers{0, 0, 0, 4, 0}));
  v.mutable_grad() = Tensor();
  F::embedding(i, v, F::EmbeddingFuncOptions().padding_idx(-2)).sum().backward();
  EXPECT_EQ(values(v.grad().sum(1)), (Numbers{0, 8, 0, 0, 0}));
  expect_error([&] { F::embedding(i, v, F::EmbeddingFuncOptions().padding_idx(5)); },
               {"embedding", "padding_idx 5"});
  EXPECT_TRUE(F::one_hot(i, 6).sizes() == IntArrayRef({3, 6}));
  const Tensor u = sample({2, 4, 5}, 4);
  expect_close(F::bilinear(x, matmul(x, w.t()), u, tensor({1., 2.}, kFloat64)).select(1, 1),
               ((matmul(x, u.select(0, 1))) * matmul(x, w.t())).sum(1) + 2);
}

TEST(Functional, Norms) {
  const Tensor v = sample({3, 4, 5}), w = sample({4}, 2), b = sample({4}, 3);
  expect_close(F::layer_norm(v, F::LayerNormFuncOptions({5}).weight(v.select(0, 0).select(0, 0))),
               layer_norm(v, 5, v.select(0, 0).select(0, 0)));
  expect_close(F::group_norm(v, F::GroupNormFuncOptions(2).weight(w).bias(b).eps(0.1)),
               group_norm(v, 2, w, b, 0.1));
  const Tensor m = zeros({4}, kFloat64), s = ones({4}, kFloat64);
  expect_close(F::batch_norm(v, m.clone(), s.clone(),
                             F::BatchNormFuncOptions().weight(w).bias(b).training(true)),
               batch_norm(v, m.clone(), s.clone(), w, b, true));
  expect_close(F::batch_norm(v, m, s, F::BatchNormFuncOptions().eps(0.1)),
               batch_norm(v, m, s, {}, {}, false, 0.1, 0.1));
  expect_close(F::instance_norm(v, F::InstanceNormFuncOptions().weight(w)), instance_norm(v, w));
  const Tensor n = F::normalize(v, F::NormalizeFuncOptions().p(1).dim(2));
  expect_close(abs(n).sum(2), ones({3, 4}, kFloat64));
  EXPECT_EQ(values(F::normalize(zeros({1, 2}))), (Numbers{0, 0}));
  expect_close(F::cosine_similarity(v, v * 3), ones({3, 5}, kFloat64));
}

TEST(Functional, DropoutPadAttention) {
  EXPECT_EQ(values(F::dropout(x, F::DropoutFuncOptions().training(false))), values(x));
  EXPECT_EQ(values(F::dropout(x, F::DropoutFuncOptions().p(1))), Numbers(12, 0));
  const Tensor t = x.clone();
  F::dropout(t, F::DropoutFuncOptions().p(1).inplace(true));
  EXPECT_EQ(values(t), Numbers(12, 0));
  expect_close(F::pad(x, F::PadFuncOptions({1, 2}).value(3)), pad(x, {1, 2}, kConstant, 3));
  expect_close(F::pad(x, F::PadFuncOptions({1, 2}).mode(kReflect)), pad(x, {1, 2}, kReflect));
  expect_close(F::scaled_dot_product_attention(x, x, x, {}, 0, true),
               scaled_dot_product_attention(x, x, x, {}, 0, true));
}

// The user's line, not ours, is in the error.
TEST(Functional, ErrorsNameTheCaller) {
  expect_error([] { F::layer_norm(x, F::LayerNormFuncOptions({5})); }, {"functional_test.cpp"});
}

}  // namespace
}  // namespace taper::testing
