// What products, convolutions, pooling, normalisation, losses and random functions refuse.
#include "taper/tests/errors/refusal.h"

namespace taper::errors {
namespace {

using Networks = Refusal;

TEST_F(Networks, Products) {
  refuses("matmul", {"(2, 3)", "(2, 4)"}, [&] { here(), matmul(f23, f24); });
  refuses("matmul", {"f32", "f64"}, [&] { here(), matmul(f23, d34); });
  refuses("matmul", {"()", "(2, 3)"}, [&] { here(), matmul(f, f23); });
  refuses("matmul", {"(3, 3, 3)", "(2, 3, 4)"}, [&] { here(), matmul(f333, f234); });
  refuses("matmul", {"cpu", "meta"}, [&] { here(), matmul(f23, m34); });
  refuses("matmul", {nothing}, [&] { here(), matmul(f23, none); });
  refuses("matmul", {"(2, 3)", "(4)"}, [&] { here(), f23.matmul(f4); });
  refuses("mm", {"(2, 3)", "(3)"}, [&] { here(), mm(f23, f3); });
  refuses("mm", {"(2, 3)", "(2, 4)"}, [&] { here(), f23.mm(f24); });
  refuses("bmm", {"(2, 3)", "(3, 4)"}, [&] { here(), bmm(f23, f34); });
  refuses("bmm", {"(3, 3, 3)", "(2, 3, 4)"}, [&] { here(), f333.bmm(f234); });
  refuses("mv", {"(2, 3)", "(4)"}, [&] { here(), mv(f23, f4); });
  refuses("mv", {"(3)", "(2, 3)"}, [&] { here(), f3.mv(f23); });
  refuses("dot", {"(3)", "(4)"}, [&] { here(), dot(f3, f4); });
  refuses("dot", {"(2, 3)", "(3)"}, [&] { here(), f23.dot(f3); });
  refuses("outer", {"(2, 3)", "(3)"}, [&] { here(), outer(f23, f3); });
  refuses("outer", {"(3)", "(2, 3)"}, [&] { here(), f3.outer(f23); });
  refuses("addmm", {"(2, 3)", "(2, 4)"}, [&] { here(), addmm(f, f23, f24); });
  refuses("addmm", {"(3)", "(2, 4)"}, [&] { here(), addmm(f3, f23, f34); });
  refuses("addmm", {"f64", "f32"}, [&] { here(), d3.addmm(f23, f34); });
  refuses("addmm", {"(3)", "(2, 3)"}, [&] { here(), addmm(f, f3, f23); });
  refuses("baddbmm", {"(2, 3)", "(3, 4)"}, [&] { here(), baddbmm(f, f23, f34); });
  refuses("baddbmm", {"(3, 3, 3)", "(2, 3, 4)"}, [&] { here(), f.baddbmm(f333, f234); });
  refuses("linear", {"(2, 3)", "(2, 4)"}, [&] { here(), linear(f23, f24); });
  refuses("linear", {"f64", "f32"}, [&] { here(), linear(d23, f23); });
  refuses("linear", {"(4)", "(2, 3)"}, [&] { here(), linear(f23, f23, f4); });
  refuses("linear", {nothing}, [&] { here(), linear(f23, none); });
}

TEST_F(Networks, Einsum) {
  refuses("einsum", {"ij,jk->ik", "2", "1"}, [&] { here(), einsum("ij,jk->ik", {f23}); });
  refuses("einsum", {"(2, 3)", "3 dims"}, [&] { here(), einsum("ijk->i", {f23}); });
  refuses("einsum", {"3", "2"}, [&] { here(), einsum("ij,jk->ik", {f23, f24}); });
  refuses("einsum", {"letter"}, [&] { here(), einsum("ij->k", {f23}); });
  refuses("einsum", {"twice"}, [&] { here(), einsum("ij->ii", {f23}); });
  refuses("einsum", {"1", "no letter"}, [&] { here(), einsum("i1->i", {f23}); });
  refuses("einsum", {"..."}, [&] { here(), einsum("i..->i", {f23}); });
  refuses("einsum", {"2", "3"}, [&] { here(), einsum("ii->i", {f23}); });
  refuses("einsum", {"1", "0"}, [&] { here(), einsum("ij", std::vector<Tensor>()); });
}

TEST_F(Networks, Convolution) {
  const Tensor w = numbers({3, 2, 3, 3}), w2 = numbers({3, 1, 3, 3}), wd = w.to(kFloat64);
  const Tensor big = numbers({3, 2, 9, 9}), x1 = numbers({1, 2, 5}), w1 = numbers({3, 2, 3});
  watch(w), watch(x1), watch(w1);
  const Tensor& x = f1255;
  refuses("conv2d", {"(2, 3)", "(3, 2, 3, 3)"}, [&] { here(), conv2d(f23, w); });
  refuses("conv2d", {"(1, 2, 5, 5)", "(2, 3)"}, [&] { here(), conv2d(x, f23); });
  refuses("conv2d", {"f32", "f64"}, [&] { here(), conv2d(x, wd); });
  refuses("conv2d", {"2", "1"}, [&] { here(), conv2d(x, w2); });
  refuses("conv2d", {"(1, 2, 5, 5)", "(3, 2, 9, 9)"}, [&] { here(), conv2d(x, big); });
  refuses("conv2d", {"bias", "(3)", "(4)"}, [&] { here(), conv2d(x, w, f4); });
  refuses("conv2d", {"bias", "f64"}, [&] { here(), conv2d(x, w, d3); });
  refuses("conv2d", {"stride", "(0, 0)"}, [&] { here(), conv2d(x, w, {}, 0); });
  refuses("conv2d", {"stride", "(1, -1)"}, [&] { here(), conv2d(x, w, {}, {1, -1}); });
  refuses("conv2d", {"stride", "(1, 1, 1)"}, [&] { here(), conv2d(x, w, {}, {1, 1, 1}); });
  refuses("conv2d", {"padding", "-1"}, [&] { here(), conv2d(x, w, {}, 1, -1); });
  refuses("conv2d", {"dilation", "0"}, [&] { here(), conv2d(x, w, {}, 1, 0, 0); });
  refuses("conv2d", {"groups", "0"}, [&] { here(), conv2d(x, w, {}, 1, 0, 1, 0); });
  refuses("conv2d", {"groups", "2"}, [&] { here(), conv2d(x, w2, {}, 1, 0, 1, 2); });
  refuses("conv2d", {"i64"}, [&] { here(), conv2d(x.to(kInt64), w.to(kInt64)); });
  refuses("conv2d", {nothing}, [&] { here(), conv2d(none, w); });
  refuses("conv2d", {nothing}, [&] { here(), conv2d(x, none); });
  refuses("conv2d", {"cpu", "meta"}, [&] { here(), conv2d(x, w.to(kMeta)); });
  refuses("conv1d", {"(3)", "(3, 2, 3)"}, [&] { here(), conv1d(f3, w1); });
  refuses("conv1d", {"(1, 2, 5)", "(2, 3)"}, [&] { here(), conv1d(x1, f23); });
  refuses("conv1d", {"stride", "(1, 1)"}, [&] { here(), conv1d(x1, w1, {}, {1, 1}); });
  refuses("conv1d", {"stride", "0"}, [&] { here(), conv1d(x1, w1, {}, 0); });
  refuses("conv1d", {"2", "(2, 3, 4)"}, [&] { here(), conv1d(x1, f234); });
  refuses("conv_transpose2d", {"(1, 2, 5, 5)", "(3, 2, 3, 3)"},
          [&] { here(), conv_transpose2d(x, w); });
  const Tensor back = numbers({2, 3, 3, 3});
  refuses("conv_transpose2d", {"f64"}, [&] { here(), conv_transpose2d(x, back.to(kFloat64)); });
  refuses("conv_transpose2d", {"stride"}, [&] { here(), conv_transpose2d(x, back, {}, 0); });
  refuses("conv_transpose2d", {"output_padding", "(2)"},
          [&] { here(), conv_transpose2d(x, back, {}, 2, 0, 2); });
  refuses("conv_transpose2d", {"without elements"},
          [&] { here(), conv_transpose2d(x, back, {}, 1, 4); });
  refuses("conv_transpose2d", {"(4)"}, [&] { here(), conv_transpose2d(x, back, f4); });
}

TEST_F(Networks, Pooling) {
  const Tensor row = numbers({2, 5}), flat = numbers({1, 0, 5, 5});
  const Tensor& x = f1255;
  refuses("max_pool2d", {"(2, 3)"}, [&] { here(), max_pool2d(f23, 2); });
  refuses("max_pool2d", {"(6, 6)", "(1, 2, 5, 5)"}, [&] { here(), max_pool2d(x, 6); });
  refuses("max_pool2d", {"(0, 0)"}, [&] { here(), max_pool2d(x, 0); });
  refuses("max_pool2d", {"stride", "(0, 0)"}, [&] { here(), max_pool2d(x, 2, 0); });
  refuses("max_pool2d", {"padding", "(2, 2)"}, [&] { here(), max_pool2d(x, 2, 1, 2); });
  refuses("max_pool2d", {"padding", "(-1, -1)"}, [&] { here(), max_pool2d(x, 2, 1, -1); });
  refuses("max_pool2d", {"dilation", "(0, 0)"}, [&] { here(), max_pool2d(x, 2, 1, 0, 0); });
  refuses("max_pool2d", {"(2, 2, 2)"}, [&] { here(), max_pool2d(x, {2, 2, 2}); });
  refuses("max_pool2d", {"(1, 0, 5, 5)"}, [&] { here(), max_pool2d(flat, 2); });
  refuses("max_pool2d", {"(2, 3)"}, [&] { here(), max_pool2d_with_indices(f23, 2); });
  refuses("max_pool2d", {nothing}, [&] { here(), max_pool2d(none, 2); });
  refuses("avg_pool2d", {"(2, 3)"}, [&] { here(), avg_pool2d(f23, 2); });
  refuses("avg_pool2d", {"i64"}, [&] { here(), avg_pool2d(x.to(kInt64), 2); });
  refuses("avg_pool2d", {"stride", "(0, 0)"}, [&] { here(), avg_pool2d(x, 2, 0); });
  refuses("avg_pool2d", {"divisor"}, [&] { here(), avg_pool2d(x, 2, 1, 0, false, true, 0); });
  refuses("adaptive_avg_pool2d", {"(2, 3)"}, [&] { here(), adaptive_avg_pool2d(f23, 2); });
  refuses("adaptive_avg_pool2d", {"(-1)"}, [&] { here(), adaptive_avg_pool2d(x, -1); });
  refuses("adaptive_avg_pool2d", {"i64"}, [&] { here(), adaptive_avg_pool2d(x.to(kInt64), 1); });
  refuses("max_pool1d", {"(3)"}, [&] { here(), max_pool1d(f3, 2); });
  refuses("max_pool1d", {"(2, 2)"}, [&] { here(), max_pool1d(row, {2, 2}); });
  refuses("max_pool1d", {"6"}, [&] { here(), max_pool1d(row, 6); });
  refuses("avg_pool1d", {"(3)"}, [&] { here(), avg_pool1d(f3, 2); });
  refuses("avg_pool1d", {"stride"}, [&] { here(), avg_pool1d(row, 2, 0); });
  refuses("adaptive_avg_pool1d", {"(3)"}, [&] { here(), adaptive_avg_pool1d(f3, 2); });
  refuses("adaptive_avg_pool1d", {"-1"}, [&] { here(), adaptive_avg_pool1d(row, -1); });
}

TEST_F(Networks, Normalisation) {
  const Tensor& x = f1255;
  const Tensor c = ones({2});
  refuses("layer_norm", {"(2, 3)", "(4)"}, [&] { here(), layer_norm(f23, 4); });
  refuses("layer_norm", {"(2, 3)", "()"}, [&] { here(), layer_norm(f23, {}); });
  refuses("layer_norm", {"weight", "(3)", "(4)"}, [&] { here(), layer_norm(f23, 3, f4); });
  refuses("layer_norm", {"bias", "(3)", "(4)"}, [&] { here(), layer_norm(f23, 3, f3, f4); });
  refuses("layer_norm", {nothing}, [&] { here(), layer_norm(none, 3); });
  refuses("group_norm", {"(3)"}, [&] { here(), group_norm(f3, 1); });
  refuses("group_norm", {"(1, 2, 5, 5)", "3"}, [&] { here(), group_norm(x, 3); });
  refuses("group_norm", {"0"}, [&] { here(), group_norm(x, 0); });
  refuses("group_norm", {"weight", "(4)"}, [&] { here(), group_norm(x, 1, f4); });
  refuses("batch_norm", {"(3)"}, [&] { here(), batch_norm(f3, c, c); });
  refuses("batch_norm", {"running"}, [&] { here(), batch_norm(x, none, none); });
  refuses("batch_norm", {"running mean", "(4)"}, [&] { here(), batch_norm(x, f4, c); });
  refuses("batch_norm", {"variance", "(4)"}, [&] { here(), batch_norm(x, c, f4); });
  refuses("batch_norm", {"weight", "(4)"}, [&] { here(), batch_norm(x, c, c, f4); });
  const Tensor one = ones({1, 3});
  refuses("batch_norm", {"(1, 3)"}, [&] { here(), batch_norm(one, none, none, none, none, true); });
  refuses("instance_norm", {"(2, 3)"}, [&] { here(), instance_norm(f23); });
  refuses("instance_norm", {"weight"}, [&] { here(), instance_norm(x, f4); });
}

TEST_F(Networks, LossesOfClasses) {
  const Tensor high = tensor({0, 3}), low = tensor({-1, 0}), one = tensor(3), w = ones({3});
  watch(high);
  refuses("nll_loss", {"3", "0 to 2"}, [&] { here(), nll_loss(f23, high); });
  refuses("nll_loss", {"-1", "0 to 2"}, [&] { here(), nll_loss(f23, low); });
  refuses("nll_loss", {"(2, 3)", "(2)", "(3)"}, [&] { here(), nll_loss(f23, i3); });
  refuses("nll_loss", {"f32"}, [&] { here(), nll_loss(f23, zeros({2})); });
  refuses("nll_loss", {"weight", "(3)", "(4)"}, [&] { here(), nll_loss(f23, i2, f4); });
  refuses("nll_loss", {"i64", "(2, 3)"}, [&] { here(), nll_loss(i23, i2); });
  refuses("nll_loss", {"(3)", "(2)"}, [&] { here(), nll_loss(f3, i2); });
  refuses("nll_loss", {"3"}, [&] { here(), nll_loss(f3, one); });
  refuses("nll_loss", {"kBatchMean"}, [&] { here(), nll_loss(f23, i2, {}, kBatchMean); });
  refuses("nll_loss", {nothing}, [&] { here(), nll_loss(f23, none); });
  refuses("cross_entropy", {"3", "0 to 2"}, [&] { here(), cross_entropy(f23, high); });
  refuses("cross_entropy", {"-1"}, [&] { here(), cross_entropy(f23, low); });
  refuses("cross_entropy", {"(2, 3)", "(3)"}, [&] { here(), cross_entropy(f23, i3); });
  refuses("cross_entropy", {"(2, 3)", "(2, 4)"}, [&] { here(), cross_entropy(f23, f24); });
  refuses("cross_entropy", {"()"}, [&] { here(), cross_entropy(f, one); });
  refuses("cross_entropy", {"weight", "(4)"}, [&] { here(), cross_entropy(f23, i2, f4); });
  refuses("cross_entropy", {"label_smoothing", "2"},
          [&] { here(), cross_entropy(f23, i2, {}, kMean, -100, 2); });
  refuses("cross_entropy", {"weight", "(4)"}, [&] { here(), cross_entropy(f23, f23, f4); });
  refuses("cross_entropy", {nothing}, [&] { here(), cross_entropy(none, i2); });
}

TEST_F(Networks, LossesOfElements) {
  const Tensor p = full({2, 3}, 0.5);
  refuses("mse_loss", {"(2, 3)", "(4)"}, [&] { here(), mse_loss(f23, f4); });
  refuses("mse_loss", {"kBatchMean"}, [&] { here(), mse_loss(f23, f23, kBatchMean); });
  refuses("mse_loss", {nothing}, [&] { here(), mse_loss(f23, none); });
  refuses("l1_loss", {"(2, 3)", "(4)"}, [&] { here(), l1_loss(f23, f4); });
  refuses("smooth_l1_loss", {"(2, 3)", "(4)"}, [&] { here(), smooth_l1_loss(f23, f4); });
  refuses("smooth_l1_loss", {"-1"}, [&] { here(), smooth_l1_loss(f23, f23, kMean, -1); });
  refuses("huber_loss", {"(2, 3)", "(4)"}, [&] { here(), huber_loss(f23, f4); });
  refuses("huber_loss", {"delta", "0"}, [&] { here(), huber_loss(f23, f23, kMean, 0); });
  refuses("binary_cross_entropy", {"(2, 3)", "(3)"}, [&] { here(), binary_cross_entropy(p, f3); });
  refuses("binary_cross_entropy", {"i64"}, [&] { here(), binary_cross_entropy(p, i23); });
  refuses("binary_cross_entropy", {"(4)"}, [&] { here(), binary_cross_entropy(p, p, f4); });
  refuses("binary_cross_entropy_with_logits", {"(2, 3)", "(3)"},
          [&] { here(), binary_cross_entropy_with_logits(f23, f3); });
  refuses("binary_cross_entropy_with_logits", {"(4)"},
          [&] { here(), binary_cross_entropy_with_logits(f23, f23, f4); });
  refuses("kl_div", {"(2, 3)", "(4)"}, [&] { here(), kl_div(f23, f4); });
  refuses("kl_div", {"kBatchMean"}, [&] { here(), kl_div(f, f, kBatchMean); });
}

TEST_F(Networks, Attention) {
  const Tensor q = numbers({1, 4, 3}), k = numbers({1, 2, 3}), mask = ones({2, 2}, kBool);
  const auto sdpa = [](const TensorArg& x, const Tensor& y, const Tensor& z, const Tensor& m) {
    return scaled_dot_product_attention(x, y, z, m);
  };
  const char* op = "scaled_dot_product_attention";
  refuses(op, {"(1, 4, 3)", "(2, 3, 4)"}, [&] { here(), sdpa(q, f234, f234, {}); });
  refuses(op, {"(3)"}, [&] { here(), sdpa(f3, k, k, {}); });
  refuses(op, {"f32", "f64"}, [&] { here(), sdpa(q, k.to(kFloat64), k, {}); });
  refuses(op, {"(1, 4, 2)", "(2, 2)"}, [&] { here(), sdpa(q, k, k, mask); });
  refuses(op, {"i64"}, [&] { here(), sdpa(q, k, k, i2); });
  refuses(op, {"is_causal"}, [&] { here(), scaled_dot_product_attention(q, k, k, mask, 0, true); });
  refuses(op, {"2"}, [&] { here(), scaled_dot_product_attention(q, k, k, {}, 2); });
  refuses(op, {nothing}, [&] { here(), sdpa(q, none, k, {}); });
}

TEST_F(Networks, PaddingAndPatches) {
  const Tensor& x = f1255;
  refuses("pad", {"(1)", "(2, 3)"}, [&] { here(), pad(f23, {1}); });
  refuses("pad", {"(1, 1, 1, 1)", "(3)"}, [&] { here(), pad(f3, {1, 1, 1, 1}); });
  refuses("pad", {"(-2, -2)", "(3)"}, [&] { here(), pad(f3, {-2, -2}); });
  refuses("pad", {"(3, 3)", "(3)"}, [&] { here(), pad(f3, {3, 3}, kReflect); });
  refuses("pad", {"(4, 0)", "(3)"}, [&] { here(), pad(f3, {4, 0}, kCircular); });
  refuses("pad", {"(0, 3)"}, [&] { here(), pad(f03, {0, 0, 1, 1}, kReplicate); });
  refuses("constant_pad_nd", {"(1)"}, [&] { here(), constant_pad_nd(f23, {1}); });
  refuses("im2col", {"(2, 3)"}, [&] { here(), im2col(f23, 2); });
  refuses("im2col", {"6", "(1, 2, 5, 5)"}, [&] { here(), im2col(x, 6); });
  refuses("im2col", {"0"}, [&] { here(), im2col(x, 2, 1, 0, 0); });
  refuses("im2col", {"-1"}, [&] { here(), im2col(x, 2, 1, -1); });
  refuses("pixel_shuffle", {"(1, 2, 5, 5)", "2"}, [&] { here(), pixel_shuffle(x, 2); });
  refuses("pixel_shuffle", {"(1, 2, 5, 5)", "0"}, [&] { here(), pixel_shuffle(x, 0); });
  refuses("pixel_unshuffle", {"(1, 2, 5, 5)", "2"}, [&] { here(), pixel_unshuffle(x, 2); });
  refuses("pixel_unshuffle", {"(2, 3)"}, [&] { here(), pixel_unshuffle(f23, 1); });
}

TEST_F(Networks, RandomNumbers) {
  const Tensor p = full({3}, 0.5);
  refuses("rand", {"i64"}, [&] { here(), rand({2}, kInt64); });
  refuses("rand", {"(-1)"}, [&] { here(), rand({-1}); });
  refuses("randn", {"i64"}, [&] { here(), randn({2}, kInt64); });
  refuses("randint", {"[2, 2)"}, [&] { here(), randint(2, 2, {3}); });
  refuses("randint", {"[0, -1)"}, [&] { here(), randint(-1, {3}); });
  refuses("randperm", {"-1"}, [&] { here(), randperm(-1); });
  refuses("rand_like", {"i64"}, [&] { here(), rand_like(i3); });
  refuses("randn_like", {"bool"}, [&] { here(), randn_like(b3); });
  refuses("randint_like", {"[0, 0)"}, [&] { here(), randint_like(f3, 0); });
  refuses("rand_like", {nothing}, [&] { here(), rand_like(none); });
  refuses("normal", {"-1"}, [&] { here(), normal(0, -1, {2}); });
  refuses("normal", {"(2, 3)", "(4)"}, [&] { here(), normal(f23, f4); });
  refuses("bernoulli", {"i64"}, [&] { here(), bernoulli(i3); });
  refuses("bernoulli", {"[0, 1]", "(1)"}, [&] { here(), bernoulli(tensor({1.5})); });
  refuses("bernoulli", {"[0, 1]"}, [&] { here(), bernoulli(tensor({0.5, -0.1})); });
  refuses("bernoulli", {"[0, 1]"}, [&] { here(), bernoulli(tensor({std::nan("")})); });
  refuses("bernoulli", {"1.5"}, [&] { here(), bernoulli(f3, 1.5); });
  refuses("bernoulli_", {"-0.5"}, [&] { here(), f3.bernoulli_(-0.5); });
  refuses("bernoulli_", {"nan"}, [&] { here(), f3.bernoulli_(std::nan("")); });
  refuses("uniform_", {"i64"}, [&] { here(), i3.uniform_(); });
  refuses("uniform_", {"[2, 1)"}, [&] { here(), f3.uniform_(2, 1); });
  refuses("normal_", {"-1"}, [&] { here(), f3.normal_(0, -1); });
  refuses("normal_", {"i64"}, [&] { here(), i3.normal_(); });
  refuses("dropout", {"2"}, [&] { here(), dropout(f3, 2); });
  refuses("dropout", {"-0.1"}, [&] { here(), dropout(f3, -0.1); });
  refuses("dropout", {"nan"}, [&] { here(), dropout(f3, std::nan("")); });
  refuses("dropout", {nothing}, [&] { here(), dropout(none); });
}

TEST_F(Networks, ModulesNameTheirScope) {
  struct NetImpl : nn::Module {
    NetImpl() : fc(register_module("fc", nn::Linear(4, 2))) {}
    nn::Linear fc;
  };
  const auto net = std::make_shared<NetImpl>();
  refuses("linear", {"(2, 3)", "(2, 4)", "fc"}, [&] { here(), net->fc(f23); });
  const nn::Conv2d conv(2, 3, 3);
  refuses("conv2d", {"(2, 3)"}, [&] { here(), const_cast<nn::Conv2d&>(conv)(f23); });
}

}  // namespace
}  // namespace taper::errors
