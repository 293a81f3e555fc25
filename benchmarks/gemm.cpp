// Lists the products, and times ours.
#include "taper/benchmarks/gemm.h"

#include <set>

#include "taper/benchmarks/machine.h"
#include "taper/benchmarks/peers.h"
#include "taper/benchmarks/steps.h"
#include "taper/taper.h"

namespace bench {
namespace {

constexpr const char* kOpenBlas = "OpenBLAS";
constexpr const char* kOneDnn = "oneDNN";

std::vector<Row> rows(const Setup& setup) {
  std::vector<Row> out;
  std::set<std::string> seen;
  const auto add = [&](const Product& p, std::vector<Goal> goals) {
    if (seen.insert(p.name()).second) out.push_back({p.name(), "us", std::move(goals)});
  };
  const std::vector<long> squares = setup.tiny
                                        ? std::vector<long>{64, 128}
                                        : std::vector<long>{64, 128, 256, 512, 1024, 2048, 4096};
  for (const long n : squares) {
    if (n >= 512) add({n, n, n}, {{kLimit, 1 / 0.9}});
    else if (n == 128) add({n, n, n}, {{kLimit, 1 / 0.75}});
    else add({n, n, n}, {});
  }
  const std::vector<long> skinny =
      setup.tiny ? std::vector<long>{8} : std::vector<long>{1, 2, 4, 8, 16, 32};
  for (const long m : skinny) {
    if (m >= 8) add({m, 1536, 576}, {{kLimit, 1 / 0.75}});
    else add({m, 1536, 576}, {});
    add({m, 1536, 576, false, true}, {});  // as a linear layer's weight lies
  }
  for (const StepProduct& p : training_products(setup.tiny))
    add(p.product, {{kOpenBlas, 1}, {kOneDnn, 1 / 0.95}});
  for (const long n : squares) {
    if (n <= 1024) add({n, n, n, false, false, 1, true}, {});
  }
  for (const long m : skinny) add({m, 1536, 576, false, true, 1, true}, {});
  return out;
}

// A random operand whose last two dims are (rows, columns) to the product.
taper::Tensor operand(const Product& p, long rows, long columns, bool transposed) {
  const taper::Tensor x =
      transposed ? taper::rand({p.batch, columns, rows}) : taper::rand({p.batch, rows, columns});
  const taper::Tensor y =
      (p.batch == 1 ? x.squeeze(0) : x).to(p.bf16 ? taper::kBFloat16 : taper::kFloat32);
  return transposed ? y.transpose(-2, -1) : y;
}

Turn turn(const Setup& setup, const std::string& row) {
  Product p;
  parse_product(row, p);
  // bf16 is multiplied as f32, into which it converts: the same peak.
  return {product_seconds(p), p.flops() / peak_flops(setup.threads)};
}

}  // namespace

double product_seconds(const Product& p) {
  const taper::NoGradGuard no_grad;
  const taper::Tensor a = operand(p, p.m, p.k, p.a_transposed);
  const taper::Tensor b = operand(p, p.k, p.n, p.b_transposed);
  return seconds_in_turn([&] { keep(matmul(a, b)); });
}

const Group kGemm = {"gemm", "matrix products beside OpenBLAS and oneDNN", rows, gemm_peers, turn,
                     nullptr};

}  // namespace bench
