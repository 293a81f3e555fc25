// Golden adapters of views, copies, casts and creation.
#include "taper/autograd/ops/shape.h"
#include "taper/tests/golden/runner.h"

namespace taper::golden {
namespace {

using List = std::vector<Tensor>;

void refuse_formats(const Args& a) {
  const Value& v = a.at(99, "memory_format");
  if (v.kind != Value::Kind::kFormat) return;
  if (v.text == "channels_last_3d") throw Skip("channels_last_3d");
}

MemoryFormat format(const Args& a, MemoryFormat otherwise) {
  refuse_formats(a);
  const Value& v = a.at(99, "memory_format");
  if (v.kind != Value::Kind::kFormat || v.text == "preserve_format") return otherwise;
  return v.text == "channels_last" ? MemoryFormat::kChannelsLast : MemoryFormat::kContiguous;
}

void add_views(Registry& r) {
  r.calls["t"] = [](const Args& a) -> List { return {a.tensor(0).t()}; };
  r.calls["mT"] = [](const Args& a) -> List { return {a.tensor(0).mT()}; };
  r.calls["transpose"] = [](const Args& a) -> List {
    return {a.tensor(0).transpose(*a.integer(1, "dim0"), *a.integer(2, "dim1"))};
  };
  r.calls["permute"] = [](const Args& a) -> List { return {a.tensor(0).permute(a.ints_from(1))}; };
  r.calls["view"] = [](const Args& a) -> List { return {a.tensor(0).view(a.ints_from(1))}; };
  r.calls["view_as"] = [](const Args& a) -> List { return {a.tensor(0).view_as(a.tensor(1))}; };
  r.calls["reshape"] = [](const Args& a) -> List { return {a.tensor(0).reshape(a.ints_from(1))}; };
  r.calls["reshape_as"] = [](const Args& a) -> List {
    return {a.tensor(0).reshape_as(a.tensor(1))};
  };
  r.calls["flatten"] = [](const Args& a) -> List {
    return {a.tensor(0).flatten(a.integer(1, "start_dim", 0), a.integer(2, "end_dim", -1))};
  };
  r.calls["unflatten"] = [](const Args& a) -> List {
    return {a.tensor(0).unflatten(*a.integer(1, "dim"), a.ints(2, "sizes"))};
  };
  r.calls["squeeze"] = [](const Args& a) -> List {
    if (!a.has(1, "dim")) return {a.tensor(0).squeeze()};
    return {a.tensor(0).squeeze(*a.integer(1, "dim"))};
  };
  r.calls["unsqueeze"] = [](const Args& a) -> List {
    return {a.tensor(0).unsqueeze(*a.integer(1, "dim"))};
  };
  r.calls["expand"] = [](const Args& a) -> List { return {a.tensor(0).expand(a.ints_from(1))}; };
  r.calls["expand_as"] = [](const Args& a) -> List { return {a.tensor(0).expand_as(a.tensor(1))}; };
  r.calls["broadcast_to"] = [](const Args& a) -> List {
    return {a.tensor(0).broadcast_to(a.ints_from(1))};
  };
  r.calls["diagonal"] = [](const Args& a) -> List {
    return {a.tensor(0).diagonal(a.integer(1, "offset", 0), a.integer(2, "dim1", 0),
                                 a.integer(3, "dim2", 1))};
  };
  r.calls["unfold"] = [](const Args& a) -> List {
    return {a.tensor(0).unfold(*a.integer(1, "dimension"), *a.integer(2, "size"),
                               *a.integer(3, "step"))};
  };
  r.calls["as_strided"] = [](const Args& a) -> List {
    return {a.tensor(0).as_strided(a.ints(1, "size"), a.ints(2, "stride"),
                                   a.integer(3, "storage_offset"))};
  };
  r.calls["movedim"] = [](const Args& a) -> List {
    const auto from = a.ints(1, "source"), to = a.ints(2, "destination");
    if (from.size() != 1) throw Skip("movedim of several dims");
    return {a.tensor(0).movedim(from[0], to[0])};
  };
}

void add_parts(Registry& r) {
  r.calls["narrow"] = [](const Args& a) -> List {
    std::int64_t start = 0;
    if (a.is_tensor(2, "start")) start = a.tensor(2).item<std::int64_t>();
    else start = *a.integer(2, "start");
    return {a.tensor(0).narrow(*a.integer(1, "dim"), start, *a.integer(3, "length"))};
  };
  r.calls["select"] = [](const Args& a) -> List {
    return {a.tensor(0).select(*a.integer(1, "dim"), *a.integer(2, "index"))};
  };
  r.calls["slice"] = [](const Args& a) -> List {
    return {a.tensor(0).slice(a.integer(1, "dim", 0), a.integer(2, "start"), a.integer(3, "end"),
                              a.integer(4, "step", 1))};
  };
  r.calls["split"] = [](const Args& a) -> List {
    const std::int64_t dim = a.integer(2, "dim", 0);
    if (a.at(1).kind == Value::Kind::kList) return a.tensor(0).split(a.ints(1, ""), dim);
    return a.tensor(0).split(*a.integer(1, "split_size"), dim);
  };
  r.calls["split_with_sizes"] = [](const Args& a) -> List {
    return a.tensor(0).split(a.ints(1, "split_sizes"), a.integer(2, "dim", 0));
  };
  r.calls["chunk"] = [](const Args& a) -> List {
    return a.tensor(0).chunk(*a.integer(1, "chunks"), a.integer(2, "dim", 0));
  };
  r.calls["unbind"] = [](const Args& a) -> List {
    return a.tensor(0).unbind(a.integer(1, "dim", 0));
  };
}

void add_copies(Registry& r) {
  r.calls["clone"] = [](const Args& a) -> List {
    return {a.tensor(0).clone(format(a, MemoryFormat::kPreserve))};
  };
  r.calls["contiguous"] = [](const Args& a) -> List {
    return {a.tensor(0).contiguous(format(a, MemoryFormat::kContiguous))};
  };
  r.calls["cat"] = [](const Args& a) -> List {
    return {cat(a.tensors(0), a.integer(1, "dim", 0))};
  };
  r.calls["stack"] = [](const Args& a) -> List {
    return {stack(a.tensors(0), a.integer(1, "dim", 0))};
  };
  r.calls["repeat"] = [](const Args& a) -> List { return {a.tensor(0).repeat(a.ints_from(1))}; };
  r.calls["flip"] = [](const Args& a) -> List { return {a.tensor(0).flip(a.ints(1, "dims"))}; };
  r.calls["roll"] = [](const Args& a) -> List {
    return {a.tensor(0).roll(a.ints(1, "shifts"), a.ints(2, "dims"))};
  };
  r.calls["tril"] = [](const Args& a) -> List {
    return {a.tensor(0).tril(a.integer(1, "diagonal", 0))};
  };
  r.calls["triu"] = [](const Args& a) -> List {
    return {a.tensor(0).triu(a.integer(1, "diagonal", 0))};
  };
  r.calls["to"] = [](const Args& a) -> List {
    for (std::size_t i = 1; i < a.count(); ++i) {
      const auto kind = a.at(i).kind;
      if (kind == Value::Kind::kDType) return {a.tensor(0).to(*a.dtype(i))};
      if (kind == Value::Kind::kTensor) return {a.tensor(0).type_as(a.tensor(i))};
    }
    throw Skip("to without a dtype");
  };
}

template <DType kTo> List cast(const Args& a) {
  refuse_formats(a);
  return {a.tensor(0).to(kTo)};
}

void add_casts(Registry& r) {
  r.calls["double"] = cast<kFloat64>;
  r.calls["float"] = cast<kFloat32>;
  r.calls["half"] = cast<kFloat16>;
  r.calls["bfloat16"] = cast<kBFloat16>;
  r.calls["long"] = cast<kInt64>;
  r.calls["int"] = cast<kInt32>;
  r.calls["byte"] = cast<kUInt8>;
  r.calls["bool"] = cast<kBool>;
}

TensorOptions options(const Args& a) {
  TensorOptions o;
  if (const auto dtype = a.dtype(99)) o = o.dtype(dtype);
  return o;
}

void add_creation(Registry& r) {
  r.calls["full_like"] = [](const Args& a) -> List {
    return {full_like(a.tensor(0), a.scalar(1, "fill_value", 0), options(a))};
  };
  r.calls["zeros_like"] = [](const Args& a) -> List {
    return {zeros_like(a.tensor(0), options(a))};
  };
  r.calls["ones_like"] = [](const Args& a) -> List { return {ones_like(a.tensor(0), options(a))}; };
  r.calls["zeros"] = [](const Args& a) -> List { return {zeros(a.ints_from(0), options(a))}; };
  r.calls["ones"] = [](const Args& a) -> List { return {ones(a.ints_from(0), options(a))}; };
  r.calls["eye"] = [](const Args& a) -> List {
    const std::int64_t rows = *a.integer(0, "n");
    if (a.count() == 1) return {eye(rows, options(a))};
    return {eye(rows, *a.integer(1, "m"), options(a))};
  };
  r.calls["linspace"] = [](const Args& a) -> List {
    return {linspace(a.scalar(0, "start", 0), a.scalar(1, "end", 0), *a.integer(2, "steps"),
                     options(a))};
  };
  r.calls["arange"] = [](const Args& a) -> List {
    const auto first = a.scalar(0, "start", 0);
    if (!a.has(1, "end")) return {arange(first, options(a))};
    return {arange(first, a.scalar(1, "end", 0), a.scalar(2, "step", 1), options(a))};
  };
}

}  // namespace

void add_shapes(Registry& r) {
  add_views(r);
  add_parts(r);
  add_copies(r);
  add_casts(r);
  add_creation(r);
}

}  // namespace taper::golden
