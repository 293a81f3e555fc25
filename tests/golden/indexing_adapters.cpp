// Golden adapters of indexing, gathering, scattering and selection.
#include "taper/autograd/ops/index.h"
#include "taper/tests/golden/runner.h"

namespace taper::golden {
namespace {

using List = std::vector<Tensor>;

using Kind = Value::Kind;

std::optional<std::int64_t> bound(const Value& v) {
  return v.kind == Kind::kNull ? std::nullopt : std::optional(v.integer);
}

TensorIndex to_index(const Value& v, const Args& a) {
  switch (v.kind) {
    case Kind::kNull: return indexing::None;
    case Kind::kEllipsis: return indexing::Ellipsis;
    case Kind::kBool: return v.integer != 0;
    case Kind::kInt: return v.integer;
    case Kind::kTensor: return a.inputs()[static_cast<std::size_t>(v.integer)];
    case Kind::kSlice:
      return indexing::Slice(bound(v.items[0]), bound(v.items[1]), bound(v.items[2]));
    default: throw Skip("an index of this kind");
  }
}

std::vector<TensorIndex> indices(const Args& a) {
  std::vector<TensorIndex> found;
  for (const Value& v : a.at(1).items) found.push_back(to_index(v, a));
  return found;
}

void refuse_reduce(const Args& a) {
  if (a.has(99, "reduce")) throw Skip("scatter with reduce");
}

void add_selection(Registry& r) {
  r.calls["__getitem__"] = [](const Args& a) -> List { return {a.tensor(0).index(indices(a))}; };
  r.calls["setitem"] = [](const Args& a) -> List {
    const Tensor y = a.tensor(0).clone();
    y.index_put_(indices(a), a.operand(2));
    return {y};
  };
  r.calls["index_put"] = [](const Args& a) -> List {
    return {index_put(a.tensor(0), a.tensors(1), a.tensor(2), a.flag(3, "accumulate", false))};
  };
  r.calls["gather"] = [](const Args& a) -> List {
    return {a.tensor(0).gather(*a.integer(1, "dim"), a.tensor(2))};
  };
  r.calls["index_select"] = [](const Args& a) -> List {
    return {a.tensor(0).index_select(*a.integer(1, "dim"), a.tensor(2))};
  };
  r.calls["masked_select"] = [](const Args& a) -> List {
    return {a.tensor(0).masked_select(a.tensor(1))};
  };
  r.calls["take_along_dim"] = [](const Args& a) -> List {
    if (!a.has(2, "dim")) throw Skip("take_along_dim without dim");
    return {a.tensor(0).take_along_dim(a.tensor(1), *a.integer(2, "dim"))};
  };
  r.calls["nonzero"] = [](const Args& a) -> List {
    const Tensor x = a.tensor(0);
    if (!a.flag(9, "as_tuple", false)) return {x.nonzero()};
    return (x.dim() == 0 ? x.unsqueeze(0) : x).nonzero().unbind(1);  // a number counts as one row
  };
}

void add_writes(Registry& r) {
  r.calls["scatter"] = [](const Args& a) -> List {
    refuse_reduce(a);
    return {a.tensor(0).scatter(*a.integer(1, "dim"), a.tensor(2), a.operand(3))};
  };
  r.in_place["scatter"] = [](const Args& a) -> List {
    refuse_reduce(a);
    return {a.tensor(0).scatter_(*a.integer(1, "dim"), a.tensor(2), a.operand(3))};
  };
  r.calls["scatter_add"] = [](const Args& a) -> List {
    return {a.tensor(0).scatter_add(*a.integer(1, "dim"), a.tensor(2), a.tensor(3))};
  };
  r.in_place["scatter_add"] = [](const Args& a) -> List {
    return {a.tensor(0).scatter_add_(*a.integer(1, "dim"), a.tensor(2), a.tensor(3))};
  };
  r.calls["index_add"] = [](const Args& a) -> List {
    const auto alpha = a.scalar(4, "alpha", 1);
    return {a.tensor(0).index_add(*a.integer(1, "dim"), a.tensor(2), a.tensor(3) * alpha)};
  };
  r.in_place["index_add"] = [](const Args& a) -> List {
    const auto alpha = a.scalar(4, "alpha", 1);
    return {a.tensor(0).index_add_(*a.integer(1, "dim"), a.tensor(2), a.tensor(3) * alpha)};
  };
  r.calls["index_fill"] = [](const Args& a) -> List {
    if (a.is_tensor(3)) throw Skip("index_fill with a tensor");
    return {a.tensor(0).index_fill(*a.integer(1, "dim"), a.tensor(2), a.scalar(3, "value", 0))};
  };
}

}  // namespace

void add_indexing(Registry& r) {
  add_selection(r);
  add_writes(r);
}

}  // namespace taper::golden
