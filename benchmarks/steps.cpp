// Lists of matrix products, from the layers' sizes.
#include "taper/benchmarks/steps.h"

namespace bench {
namespace {

// y (rows, out) = x w^T; dw = dy^T x; and, unless x is the data, dx = dy w.
void add_linear(
    std::vector<StepProduct>& list, long rows, long in, long out, bool first, int times) {
  list.push_back({{rows, out, in, false, true}, times});
  list.push_back({{out, in, rows, true, false}, times});
  if (!first) list.push_back({{rows, in, out, false, false}, times});
}

// A 3x3 convolution as one product over all patches (in * 9, pixels): y = w p, dw = dy p^T, and the
// gradient of the patches w^T dy.
void add_conv(std::vector<StepProduct>& list, long pixels, long in, long out, bool first) {
  list.push_back({{out, pixels, 9 * in, false, false}, 1});
  list.push_back({{out, 9 * in, pixels, false, true}, 1});
  if (!first) list.push_back({{9 * in, pixels, out, true, false}, 1});
}

}  // namespace

std::vector<StepProduct> products_of(const MlpSizes& s) {
  std::vector<StepProduct> list;
  add_linear(list, s.batch, 784, 256, true, 1);
  add_linear(list, s.batch, 256, 128, false, 1);
  add_linear(list, s.batch, 128, 10, false, 1);
  return list;
}

std::vector<StepProduct> products_of(const CnnSizes& s) {
  std::vector<StepProduct> list;
  add_conv(list, s.batch * 28 * 28, 1, 32, true);
  add_conv(list, s.batch * 14 * 14, 32, 64, false);
  add_linear(list, s.batch, 64 * 7 * 7, 128, false, 1);
  add_linear(list, s.batch, 128, 10, false, 1);
  return list;
}

std::vector<StepProduct> products_of(const GptSizes& s) {
  const long rows = s.batch * s.context, head = s.width / s.heads, pairs = s.batch * s.heads;
  const int blocks = static_cast<int>(s.blocks);
  std::vector<StepProduct> list;
  add_linear(list, rows, s.width, 3 * s.width, false, blocks);  // query, key and value
  add_linear(list, rows, s.width, s.width, false, blocks);
  add_linear(list, rows, s.width, 4 * s.width, false, blocks);
  add_linear(list, rows, 4 * s.width, s.width, false, blocks);
  // Scores s = q k^T and ds = do v^T; then p v and ds k; then p^T do and ds^T q.
  list.push_back({{s.context, s.context, head, false, true, pairs}, 2 * blocks});
  list.push_back({{s.context, head, s.context, false, false, pairs}, 2 * blocks});
  list.push_back({{s.context, head, s.context, true, false, pairs}, 2 * blocks});
  add_linear(list, rows, s.width, s.letters, false, 1);
  return list;
}

ModelSizes model_sizes(bool tiny) {
  if (tiny) return {{8}, {16}, {2}, {2, 16, 32, 2, 1, 16}};
  return {{64}, {512}, {64}, {8, 128, 256, 4, 4, 512}};
}

std::vector<StepProduct> training_products(bool tiny) {
  const ModelSizes sizes = model_sizes(tiny);
  std::vector<StepProduct> all;
  for (const auto& list : {products_of(sizes.mlp), products_of(sizes.large_mlp),
                           products_of(sizes.cnn), products_of(sizes.gpt)})
    all.insert(all.end(), list.begin(), list.end());
  return all;
}

}  // namespace bench
