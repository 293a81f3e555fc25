// Golden adapters of the reductions, scans and softmax.
#include "taper/autograd/ops/reduce.h"
#include "taper/tests/golden/runner.h"

namespace taper::golden {
namespace {

using List = std::vector<Tensor>;

List pair(std::tuple<Tensor, Tensor> two) {
  return {std::get<0>(two), std::get<1>(two)};
}

// The dims to reduce; an absent or empty list means all of them.
std::vector<std::int64_t> dims(const Args& a, std::size_t position = 1) {
  return a.ints(position, "dim");
}

bool keep(const Args& a, std::size_t position = 2) {
  return a.flag(position, "keepdim", false);
}

void add_sums(Registry& r) {
  r.calls["sum"] = [](const Args& a) -> List {
    if (!a.has(1, "dim") && !a.has(9, "dtype")) return {a.tensor(0).sum()};
    return {a.tensor(0).sum(dims(a), keep(a), a.dtype(3))};
  };
  r.calls["mean"] = [](const Args& a) -> List {
    if (!a.has(1, "dim") && !a.has(9, "dtype")) return {a.tensor(0).mean()};
    return {a.tensor(0).mean(dims(a), keep(a), a.dtype(3))};
  };
  r.calls["prod"] = [](const Args& a) -> List {
    const auto dtype = a.dtype(9);
    const Tensor x = dtype ? a.tensor(0).to(*dtype) : a.tensor(0);
    if (!a.has(1, "dim")) return {x.prod()};
    return {x.prod(*a.integer(1, "dim"), keep(a))};
  };
  r.calls["logsumexp"] = [](const Args& a) -> List {
    return {a.tensor(0).logsumexp(dims(a), keep(a))};
  };
  r.calls["cumsum"] = [](const Args& a) -> List {
    const auto dtype = a.dtype(9);
    const Tensor x = dtype ? a.tensor(0).to(*dtype) : a.tensor(0);
    return {x.cumsum(*a.integer(1, "dim"))};
  };
  r.calls["cumprod"] = [](const Args& a) -> List {
    const auto dtype = a.dtype(9);
    const Tensor x = dtype ? a.tensor(0).to(*dtype) : a.tensor(0);
    return {x.cumprod(*a.integer(1, "dim"))};
  };
  r.calls["softmax"] = [](const Args& a) -> List {
    return {a.tensor(0).softmax(*a.integer(1, "dim"), a.dtype(2))};
  };
  r.calls["log_softmax"] = [](const Args& a) -> List {
    return {a.tensor(0).log_softmax(*a.integer(1, "dim"), a.dtype(2))};
  };
}

// std and var come as (x), (x, unbiased), (x, dim, unbiased, keepdim) or with correction=n.
template <class All, class Some> List spread(const Args& a, All all, Some some) {
  if (a.has(9, "correction") && a.integer(9, "correction", 1) > 1) throw Skip("correction above 1");
  const bool unbiased = a.integer(9, "correction", 1) == 1 && a.flag(9, "unbiased", true);
  const bool positional = a.count() > 1 && a.at(1).kind == Value::Kind::kBool;
  if (positional) return {all(a.tensor(0), a.flag(1, "", true))};
  if (!a.has(1, "dim") && !keep(a, 9)) return {all(a.tensor(0), unbiased)};
  return {some(a.tensor(0), dims(a), unbiased, keep(a, 9))};
}

void add_spreads(Registry& r) {
  r.calls["var"] = [](const Args& a) -> List {
    return spread(
        a, [](const Tensor& x, bool u) { return x.var(u); },
        [](const Tensor& x, IntArrayRef d, bool u, bool k) { return x.var(d, u, k); });
  };
  r.calls["std"] = [](const Args& a) -> List {
    return spread(
        a, [](const Tensor& x, bool u) { return x.std(u); },
        [](const Tensor& x, IntArrayRef d, bool u, bool k) { return x.std(d, u, k); });
  };
  r.calls["var_mean"] = [](const Args& a) -> List {
    if (!a.has(1, "dim") || a.at(1).kind == Value::Kind::kBool) throw Skip("var_mean without dim");
    if (a.integer(9, "correction", 1) > 1) throw Skip("correction above 1");
    const bool unbiased = a.integer(9, "correction", 1) == 1 && a.flag(9, "unbiased", true);
    return pair(var_mean(a.tensor(0), dims(a), unbiased, keep(a, 9)));
  };
}

void add_extremes(Registry& r) {
  r.calls["amax"] = [](const Args& a) -> List { return {a.tensor(0).amax(dims(a), keep(a))}; };
  r.calls["amin"] = [](const Args& a) -> List { return {a.tensor(0).amin(dims(a), keep(a))}; };
  r.calls["max"] = [](const Args& a) -> List {
    if (!a.has(1, "dim")) return {a.tensor(0).max()};
    return pair(a.tensor(0).max(*a.integer(1, "dim"), keep(a)));
  };
  r.calls["min"] = [](const Args& a) -> List {
    if (!a.has(1, "dim")) return {a.tensor(0).min()};
    return pair(a.tensor(0).min(*a.integer(1, "dim"), keep(a)));
  };
  r.calls["argmax"] = [](const Args& a) -> List {
    return {a.tensor(0).argmax(a.integer(1, "dim"), keep(a))};
  };
  r.calls["argmin"] = [](const Args& a) -> List {
    return {a.tensor(0).argmin(a.integer(1, "dim"), keep(a))};
  };
  r.calls["any"] = [](const Args& a) -> List {
    if (!a.has(1, "dim")) return {a.tensor(0).any()};
    return {a.tensor(0).any(*a.integer(1, "dim"), keep(a))};
  };
  r.calls["all"] = [](const Args& a) -> List {
    if (!a.has(1, "dim")) return {a.tensor(0).all()};
    return {a.tensor(0).all(*a.integer(1, "dim"), keep(a))};
  };
}

void add_norms(Registry& r) {
  r.calls["norm"] = [](const Args& a) -> List {
    if (a.at(1, "p").kind == Value::Kind::kText) throw Skip("a norm by name");
    const auto p = a.scalar(1, "p", 2);
    if (!a.has(2, "dim")) return {a.tensor(0).norm(p)};
    return {a.tensor(0).norm(p, dims(a, 2), keep(a, 3))};
  };
  r.calls["linalg.vector_norm"] = [](const Args& a) -> List {
    const auto p = a.scalar(1, "ord", 2);
    if (!a.has(2, "dim") && !keep(a, 3)) return {a.tensor(0).norm(p)};
    return {a.tensor(0).norm(p, dims(a, 2), keep(a, 3))};
  };
}

void add_orders(Registry& r) {
  r.calls["sort"] = [](const Args& a) -> List {
    return pair(a.tensor(0).sort(a.integer(1, "dim", -1), a.flag(2, "descending", false)));
  };
  r.calls["argsort"] = [](const Args& a) -> List {
    return {a.tensor(0).argsort(a.integer(1, "dim", -1), a.flag(2, "descending", false))};
  };
  r.calls["topk"] = [](const Args& a) -> List {
    return pair(a.tensor(0).topk(*a.integer(1, "k"), a.integer(2, "dim", -1),
                                 a.flag(3, "largest", true), a.flag(4, "sorted", true)));
  };
}

}  // namespace

void add_reductions(Registry& r) {
  add_sums(r);
  add_spreads(r);
  add_extremes(r);
  add_norms(r);
  add_orders(r);
}

}  // namespace taper::golden
