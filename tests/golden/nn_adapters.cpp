// Golden adapters of nn::functional: norms, convolutions, pooling, padding, distances, attention.
#include "taper/nn/functional.h"
#include "taper/tests/golden/runner.h"

namespace taper::golden {
namespace {

using List = std::vector<Tensor>;
namespace F = nn::functional;

void add(Registry& r, const char* name, Adapter call) {
  r.calls[std::string("nn.functional.") + name] = call;
}

void add_norms(Registry& r) {
  add(r, "layer_norm", [](const Args& a) -> List {
    const auto o = F::LayerNormFuncOptions(a.ints(1, "normalized_shape"))
                       .weight(a.tensor_or_none(2, "weight"))
                       .bias(a.tensor_or_none(3, "bias"))
                       .eps(a.real(4, "eps", 1e-5));
    return {F::layer_norm(a.tensor(0), o)};
  });
  add(r, "group_norm", [](const Args& a) -> List {
    const auto o = F::GroupNormFuncOptions(*a.integer(1, "num_groups"))
                       .weight(a.tensor_or_none(2, "weight"))
                       .bias(a.tensor_or_none(3, "bias"))
                       .eps(a.real(4, "eps", 1e-5));
    return {F::group_norm(a.tensor(0), o)};
  });
  add(r, "batch_norm", [](const Args& a) -> List {
    const auto o = F::BatchNormFuncOptions()
                       .weight(a.tensor_or_none(3, "weight"))
                       .bias(a.tensor_or_none(4, "bias"))
                       .training(a.flag(5, "training", false))
                       .momentum(a.real(6, "momentum", 0.1))
                       .eps(a.real(7, "eps", 1e-5));
    return {F::batch_norm(a.tensor(0), a.tensor_or_none(1, "running_mean"),
                          a.tensor_or_none(2, "running_var"), o)};
  });
  add(r, "instance_norm", [](const Args& a) -> List {
    const auto o = F::InstanceNormFuncOptions()
                       .running_mean(a.tensor_or_none(1, "running_mean"))
                       .running_var(a.tensor_or_none(2, "running_var"))
                       .weight(a.tensor_or_none(3, "weight"))
                       .bias(a.tensor_or_none(4, "bias"))
                       .use_input_stats(a.flag(5, "use_input_stats", true))
                       .momentum(a.real(6, "momentum", 0.1))
                       .eps(a.real(7, "eps", 1e-5));
    return {F::instance_norm(a.tensor(0), o)};
  });
  add(r, "normalize", [](const Args& a) -> List {
    const auto o = F::NormalizeFuncOptions()
                       .p(a.real(1, "p", 2))
                       .dim(a.integer(2, "dim", 1))
                       .eps(a.real(3, "eps", 1e-12));
    return {F::normalize(a.tensor(0), o)};
  });
  add(r, "cosine_similarity", [](const Args& a) -> List {
    const auto o =
        F::CosineSimilarityFuncOptions().dim(a.integer(2, "dim", 1)).eps(a.real(3, "eps", 1e-8));
    return {F::cosine_similarity(a.tensor(0), a.tensor(1), o)};
  });
}

template <std::size_t N>
nn::ExpandingArray<N> sizes(const Args& a,
                            std::size_t position,
                            const char* name,
                            std::vector<std::int64_t> otherwise) {
  return IntArrayRef(a.ints(position, name, std::move(otherwise)));
}

template <std::size_t N> nn::ConvPadding<N> padding(const Args& a) {
  if (a.at(4, "padding").kind == Value::Kind::kText) {
    return a.text(4, "padding", "") == "same" ? nn::PaddingRule::kSame : nn::PaddingRule::kValid;
  }
  return sizes<N>(a, 4, "padding", {0});
}

template <std::size_t N> F::ConvFuncOptions<N> conv_options(const Args& a) {
  return F::ConvFuncOptions<N>()
      .bias(a.tensor_or_none(2, "bias"))
      .stride(sizes<N>(a, 3, "stride", {1}))
      .padding(padding<N>(a))
      .dilation(sizes<N>(a, 5, "dilation", {1}))
      .groups(a.integer(6, "groups", 1));
}

void add_convolutions(Registry& r) {
  add(r, "linear", [](const Args& a) -> List {
    return {F::linear(a.tensor(0), a.tensor(1), a.tensor_or_none(2, "bias"))};
  });
  add(r, "bilinear", [](const Args& a) -> List {
    return {F::bilinear(a.tensor(0), a.tensor(1), a.tensor(2), a.tensor_or_none(3, "bias"))};
  });
  add(r, "conv1d", [](const Args& a) -> List {
    return {F::conv1d(a.tensor(0), a.tensor(1), conv_options<1>(a))};
  });
  add(r, "conv2d", [](const Args& a) -> List {
    return {F::conv2d(a.tensor(0), a.tensor(1), conv_options<2>(a))};
  });
  add(r, "conv_transpose2d", [](const Args& a) -> List {
    const auto o = F::ConvTranspose2dFuncOptions()
                       .bias(a.tensor_or_none(2, "bias"))
                       .stride(sizes<2>(a, 3, "stride", {1}))
                       .padding(sizes<2>(a, 4, "padding", {0}))
                       .output_padding(sizes<2>(a, 5, "output_padding", {0}))
                       .groups(a.integer(6, "groups", 1))
                       .dilation(sizes<2>(a, 7, "dilation", {1}));
    return {F::conv_transpose2d(a.tensor(0), a.tensor(1), o)};
  });
  add(r, "unfold", [](const Args& a) -> List {
    const auto o = F::UnfoldFuncOptions(sizes<2>(a, 1, "kernel_size", {}))
                       .dilation(sizes<2>(a, 2, "dilation", {1}))
                       .padding(sizes<2>(a, 3, "padding", {0}))
                       .stride(sizes<2>(a, 4, "stride", {1}));
    return {F::unfold(a.tensor(0), o)};
  });
  add(r, "pixel_shuffle", [](const Args& a) -> List {
    return {F::pixel_shuffle(a.tensor(0), *a.integer(1, "upscale_factor"))};
  });
}

// (x, kernel, stride, padding, dilation, ceil_mode, return_indices); no stride means the kernel.
template <class Options, std::size_t N> Options max_pool_options(const Args& a) {
  Options o(sizes<N>(a, 1, "kernel_size", {}));
  if (a.has(2, "stride")) o.stride(sizes<N>(a, 2, "stride", {}));
  return o.padding(sizes<N>(a, 3, "padding", {0}))
      .dilation(sizes<N>(a, 4, "dilation", {1}))
      .ceil_mode(a.flag(5, "ceil_mode", false));
}

template <class Options, std::size_t N> Options avg_pool_options(const Args& a) {
  Options o(sizes<N>(a, 1, "kernel_size", {}));
  if (!a.ints(2, "stride").empty()) o.stride(sizes<N>(a, 2, "stride", {}));
  return o.padding(sizes<N>(a, 3, "padding", {0}))
      .ceil_mode(a.flag(4, "ceil_mode", false))
      .count_include_pad(a.flag(5, "count_include_pad", true))
      .divisor_override(a.integer(6, "divisor_override"));
}

// One size for all dims, or each; None keeps the size of x.
std::vector<std::int64_t> pooled_sizes(const Args& a) {
  const Value& v = a.at(1, "output_size");
  if (v.kind != Value::Kind::kList) return a.ints(1, "output_size");
  std::vector<std::int64_t> found;
  const auto n = static_cast<std::int64_t>(v.items.size());
  for (std::int64_t d = 0; d < n; ++d) {
    const Value& item = v.items[static_cast<std::size_t>(d)];
    found.push_back(item.kind == Value::Kind::kNull ? a.tensor(0).size(d - n) : item.integer);
  }
  return found;
}

void add_pools(Registry& r) {
  add(r, "max_pool1d", [](const Args& a) -> List {
    a.refuse("return_indices");
    return {F::max_pool1d(a.tensor(0), max_pool_options<F::MaxPool1dFuncOptions, 1>(a))};
  });
  add(r, "max_pool2d", [](const Args& a) -> List {
    const auto o = max_pool_options<F::MaxPool2dFuncOptions, 2>(a);
    if (!a.flag(6, "return_indices", false)) return {F::max_pool2d(a.tensor(0), o)};
    auto [values, indices] = F::max_pool2d_with_indices(a.tensor(0), o);
    return {values, indices};
  });
  add(r, "avg_pool1d", [](const Args& a) -> List {
    return {F::avg_pool1d(a.tensor(0), avg_pool_options<F::AvgPool1dFuncOptions, 1>(a))};
  });
  add(r, "avg_pool2d", [](const Args& a) -> List {
    return {F::avg_pool2d(a.tensor(0), avg_pool_options<F::AvgPool2dFuncOptions, 2>(a))};
  });
  add(r, "adaptive_avg_pool1d", [](const Args& a) -> List {
    return {
        F::adaptive_avg_pool1d(a.tensor(0), nn::ExpandingArray<1>(IntArrayRef(pooled_sizes(a))))};
  });
  add(r, "adaptive_avg_pool2d", [](const Args& a) -> List {
    return {
        F::adaptive_avg_pool2d(a.tensor(0), nn::ExpandingArray<2>(IntArrayRef(pooled_sizes(a))))};
  });
}

void add_others(Registry& r) {
  add(r, "pad", [](const Args& a) -> List {
    const std::string name = a.text(2, "mode", "constant");
    const PadMode mode = name == "constant"    ? PadMode::kConstant
                         : name == "reflect"   ? PadMode::kReflect
                         : name == "replicate" ? PadMode::kReplicate
                                               : PadMode::kCircular;
    const auto o = F::PadFuncOptions(a.ints(1, "pad")).mode(mode).value(a.real(3, "value", 0));
    return {F::pad(a.tensor(0), o)};
  });
  add(r, "scaled_dot_product_attention", [](const Args& a) -> List {
    return {F::scaled_dot_product_attention(
        a.tensor(0), a.tensor(1), a.tensor(2), a.tensor_or_none(3, "attn_mask"),
        a.real(4, "dropout_p", 0), a.flag(5, "is_causal", false))};
  });
  add(r, "embedding", [](const Args& a) -> List {
    for (const char* name : {"max_norm", "scale_grad_by_freq", "sparse"}) a.refuse(name);
    // OpInfo gives (weight, index), the edge table F.embedding's (index, weight).
    const bool weight_first = is_floating_point(a.tensor(0).dtype());
    const Tensor weight = a.tensor(weight_first ? 0 : 1), index = a.tensor(weight_first ? 1 : 0);
    F::EmbeddingFuncOptions o;
    if (a.has(2, "padding_idx")) o.padding_idx(*a.integer(2, "padding_idx"));
    return {F::embedding(index, weight, o)};
  });
  add(r, "one_hot", [](const Args& a) -> List {
    return {F::one_hot(a.tensor(0), a.integer(1, "num_classes", -1))};
  });
}

}  // namespace

void add_nn(Registry& r) {
  add_norms(r);
  add_convolutions(r);
  add_pools(r);
  add_others(r);
}

}  // namespace taper::golden
