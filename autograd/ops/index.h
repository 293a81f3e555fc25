// Indexing as numpy does it, and its relatives: gather, scatter, embedding.
#pragma once
#include <vector>

#include "taper/autograd/op.h"

namespace taper {

namespace indexing {

struct EllipsisType {};

// Python's start:stop:step; an empty place is None. A negative step walks backwards.
struct Slice {
  std::optional<std::int64_t> start, stop;
  std::int64_t step = 1;

  Slice() = default;

  Slice(std::optional<std::int64_t> from,
        std::optional<std::int64_t> to = std::nullopt,
        std::optional<std::int64_t> by = std::nullopt)
      : start(from), stop(to), step(by.value_or(1)) {}
};

inline constexpr std::nullopt_t None = std::nullopt;
inline constexpr EllipsisType Ellipsis{};

}  // namespace indexing

// One index of x.index({...}): a number, a Slice, None (a new dim), "..." or Ellipsis, a bool,
// or a tensor of integers or bools.
struct TensorIndex {
  enum class Kind : std::uint8_t { kInteger, kFlag, kSlice, kNewDim, kEllipsis, kTensor };

  template <class T>
  requires std::is_integral_v<T> TensorIndex(T i)  // NOLINT(google-explicit-constructor)
      : kind(std::is_same_v<T, bool> ? Kind::kFlag : Kind::kInteger),
        integer(static_cast<std::int64_t>(i)) {}

  TensorIndex(indexing::Slice s) : kind(Kind::kSlice), slice(s) {}      // NOLINT
  TensorIndex(std::nullopt_t) : kind(Kind::kNewDim) {}                  // NOLINT
  TensorIndex(indexing::EllipsisType) : kind(Kind::kEllipsis) {}        // NOLINT
  TensorIndex(const char* dots, Loc at = Loc::current());               // NOLINT: "..."
  TensorIndex(Tensor t) : kind(Kind::kTensor), tensor(std::move(t)) {}  // NOLINT

  // Which of the members below holds the index.
  Kind kind;
  std::int64_t integer = 0;  // kInteger, and kFlag as 0 or 1
  indexing::Slice slice;
  Tensor tensor;
};

// x[i] and x[tensor], with the caller's line.
struct IndexArg {
  TensorIndex index;
  Loc loc;

  template <class T>
  requires std::is_integral_v<T> IndexArg(T i, Loc at = Loc::current())
      : index(i), loc(at) {}                                                 // NOLINT
  IndexArg(const Tensor& t, Loc at = Loc::current()) : index(t), loc(at) {}  // NOLINT
};

Tensor gather(const TensorArg& x, std::int64_t dim, const TensorArg& index);
Tensor scatter(const TensorArg& x, std::int64_t dim, const TensorArg& index, const TensorArg& src);
Tensor scatter_add(const TensorArg& x,
                   std::int64_t dim,
                   const TensorArg& index,
                   const TensorArg& src);
Tensor index_select(const TensorArg& x, std::int64_t dim, const TensorArg& index);
Tensor index_add(const TensorArg& x,
                 std::int64_t dim,
                 const TensorArg& index,
                 const TensorArg& src);
Tensor index_fill(const TensorArg& x, std::int64_t dim, const TensorArg& index, Scalar value);
Tensor take_along_dim(const TensorArg& x, const TensorArg& index, std::int64_t dim);
Tensor masked_select(const TensorArg& x, const TensorArg& mask);
Tensor nonzero(const TensorArg& x);
// x with values (added) at the places given by index tensors, one per leading dim.
Tensor index_put(const TensorArg& x,
                 const std::vector<Tensor>& indices,
                 const TensorArg& values,
                 bool accumulate = false);
// Rows of weight (V, D) by index (...) -> (..., D). The row padding_idx gets no gradient.
Tensor embedding(const TensorArg& weight, const TensorArg& index, std::int64_t padding_idx = -1);
// (...) -> (..., classes), i64.
Tensor one_hot(const TensorArg& index, std::int64_t classes = -1);

}  // namespace taper
