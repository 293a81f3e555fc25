// Golden adapters of the matrix products.
#include "taper/autograd/ops/matmul.h"
#include "taper/tests/golden/runner.h"

namespace taper::golden {
namespace {

using List = std::vector<Tensor>;

}  // namespace

void add_products(Registry& r) {
  r.calls["matmul"] = [](const Args& a) -> List { return {a.tensor(0).matmul(a.tensor(1))}; };
  r.calls["__rmatmul__"] = [](const Args& a) -> List { return {a.tensor(1).matmul(a.tensor(0))}; };
  r.calls["mm"] = [](const Args& a) -> List { return {a.tensor(0).mm(a.tensor(1))}; };
  r.calls["bmm"] = [](const Args& a) -> List { return {a.tensor(0).bmm(a.tensor(1))}; };
  r.calls["mv"] = [](const Args& a) -> List { return {a.tensor(0).mv(a.tensor(1))}; };
  r.calls["dot"] = [](const Args& a) -> List { return {a.tensor(0).dot(a.tensor(1))}; };
  r.calls["outer"] = [](const Args& a) -> List { return {a.tensor(0).outer(a.tensor(1))}; };
  r.calls["einsum"] = [](const Args& a) -> List {
    return {einsum(a.text(1, "equation", ""), a.tensors(0))};
  };
  r.calls["addmm"] = [](const Args& a) -> List {
    return {a.tensor(0).addmm(a.tensor(1), a.tensor(2), a.scalar(3, "beta", 1),
                              a.scalar(4, "alpha", 1))};
  };
  r.calls["baddbmm"] = [](const Args& a) -> List {
    return {a.tensor(0).baddbmm(a.tensor(1), a.tensor(2), a.scalar(3, "beta", 1),
                                a.scalar(4, "alpha", 1))};
  };
}

}  // namespace taper::golden
