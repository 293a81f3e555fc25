// How sequences are packed and padded: by one selection of rows each.
#include "taper/nn/sequence.h"

#include <algorithm>

#include "taper/autograd/ops/create.h"
#include "taper/autograd/ops/index.h"
#include "taper/autograd/ops/scan_sort.h"
#include "taper/autograd/ops/shape.h"

namespace taper::nn::utils::rnn {
namespace {

using Numbers = std::vector<std::int64_t>;

Numbers numbers_of(const Tensor& t) {
  const Tensor dense = t.contiguous();
  const auto* from = dense.data_ptr<std::int64_t>();
  return {from, from + dense.numel()};
}

void check_numbers(const char* function, const char* what, const Tensor& t) {
  TAPER_CHECK(t.defined() && t.dim() == 1 && t.dtype() == kInt64 && t.is_cpu() && t.numel() > 0,
              function, ": ", what, " must be some i64 numbers on the cpu, (n)",
              t.defined() ? str(", got ", t.dtype(), " ", t.sizes(), " on ", t.device()) : "");
}

// Where each number of a permutation stands in it.
Tensor inverse_of(const Tensor& permutation) {
  const Numbers from = numbers_of(permutation.to(kCPU));
  Numbers to(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    TAPER_CHECK(from[i] >= 0 && from[i] < static_cast<std::int64_t>(from.size()),
                "PackedSequence: sorted_indices must be the numbers below ", from.size());
    to[static_cast<std::size_t>(from[i])] = static_cast<std::int64_t>(i);
  }
  return tensor(to).to(permutation.device());
}

// Rows of x (R, ...) by their numbers; row R is one of `padding`.
Tensor rows_and_padding(const Tensor& x, const Numbers& rows, double padding) {
  Sizes one(x.sizes().size());
  for (std::size_t d = 0; d < one.size(); ++d) one[d] = d == 0 ? 1 : x.sizes()[d];
  const Tensor padded = cat({x, full(one, padding, x.options())}, 0);
  return padded.index_select(0, tensor(rows).to(x.device()));
}

// (T B, ...) -> (T, B, ...) or (B, T, ...)
Tensor in_order(const Tensor& rows, std::int64_t steps, std::int64_t batch, bool batch_first) {
  const Tensor x = rows.unflatten(0, {steps, batch});
  return batch_first ? x.transpose(0, 1) : x;
}

}  // namespace

PackedSequence::PackedSequence(
    Tensor data, Tensor batch_sizes, Tensor sorted_indices, Tensor unsorted_indices, Loc loc)
    : data_(std::move(data)),
      batch_sizes_(std::move(batch_sizes)),
      sorted_indices_(std::move(sorted_indices)),
      unsorted_indices_(std::move(unsorted_indices)) {
  const Call call(loc);
  check_numbers("PackedSequence", "batch_sizes", batch_sizes_);
  const Numbers sizes = numbers_of(batch_sizes_);
  std::int64_t rows = 0;
  for (std::size_t t = 0; t < sizes.size(); ++t) {
    TAPER_CHECK(sizes[t] > 0 && (t == 0 || sizes[t] <= sizes[t - 1]),
                "PackedSequence: batch_sizes must be above 0 and not grow, got ",
                IntArrayRef(sizes));
    rows += sizes[t];
  }
  TAPER_CHECK(data_.defined() && data_.dim() > 0 && data_.size(0) == rows,
              "PackedSequence: batch_sizes ", IntArrayRef(sizes), " need data (", rows,
              ", ...), got ", data_.defined() ? data_.sizes() : IntArrayRef());
  TAPER_CHECK(!sorted_indices_.defined() || sorted_indices_.sizes() == IntArrayRef(sizes[0]),
              "PackedSequence: expected sorted_indices (", sizes[0], "), got ",
              sorted_indices_.defined() ? sorted_indices_.sizes() : IntArrayRef());
  if (sorted_indices_.defined() && !unsorted_indices_.defined()) {
    unsorted_indices_ = inverse_of(sorted_indices_);
  }
}

PackedSequence PackedSequence::to(Device device, Loc loc) const {
  const Call call(loc);
  PackedSequence moved = *this;
  for (Tensor* t : {&moved.data_, &moved.sorted_indices_, &moved.unsorted_indices_}) {
    if (t->defined()) *t = t->to(device);
  }
  return moved;
}

PackedSequence PackedSequence::to(DType dtype, Loc loc) const {
  const Call call(loc);
  PackedSequence moved = *this;
  moved.data_ = data_.to(dtype);
  return moved;
}

PackedSequence pack_padded_sequence(const TensorArg& x,
                                    const Tensor& lengths,
                                    bool batch_first,
                                    bool enforce_sorted) {
  const Call call(x.loc);
  check_numbers("pack_padded_sequence", "lengths", lengths);
  TAPER_CHECK(x->dim() >= 2, "pack_padded_sequence: expected (T, B, ...), got ", x->sizes());
  Tensor padded = batch_first ? x->transpose(0, 1) : *x, sorted;
  Numbers length = numbers_of(lengths);
  const std::int64_t steps = padded.size(0), batch = padded.size(1);
  TAPER_CHECK(static_cast<std::int64_t>(length.size()) == batch,
              "pack_padded_sequence: ", length.size(), " lengths for a batch of ", batch);
  if (!enforce_sorted) {
    sorted = std::get<1>(lengths.sort(0, true)).to(x->device());
    padded = padded.index_select(1, sorted);
    std::sort(length.begin(), length.end(), [](std::int64_t a, std::int64_t b) { return a > b; });
  }
  TAPER_CHECK(std::is_sorted(length.rbegin(), length.rend()),
              "pack_padded_sequence: the lengths must not grow, got ", IntArrayRef(length),
              "; or pass enforce_sorted = false");
  TAPER_CHECK(length.back() > 0 && length[0] <= steps,
              "pack_padded_sequence: the lengths must be from 1 to ", steps, ", got ",
              IntArrayRef(length));
  Numbers rows, sizes;
  for (std::int64_t t = 0; t < length[0]; ++t) {
    std::int64_t count = 0;
    for (; count < batch && length[static_cast<std::size_t>(count)] > t; ++count) {
      rows.push_back(t * batch + count);
    }
    sizes.push_back(count);
  }
  const Tensor data = padded.flatten(0, 1).index_select(0, tensor(rows).to(x->device()));
  return PackedSequence(data, tensor(sizes), sorted);
}

std::tuple<Tensor, Tensor> pad_packed_sequence(const PackedSequence& sequence,
                                               bool batch_first,
                                               double padding_value,
                                               std::optional<std::int64_t> total_length,
                                               Loc loc) {
  const Call call(loc);
  const Numbers sizes = numbers_of(sequence.batch_sizes());
  const std::int64_t batch = sizes[0], longest = static_cast<std::int64_t>(sizes.size());
  const std::int64_t steps = total_length.value_or(longest);
  TAPER_CHECK(steps >= longest, "pad_packed_sequence: total_length is ", steps,
              ", and the longest sequence has ", longest, " steps");
  Numbers rows, length(static_cast<std::size_t>(batch));
  std::int64_t first = 0;
  for (std::int64_t t = 0; t < steps; ++t) {
    const std::int64_t count = t < longest ? sizes[static_cast<std::size_t>(t)] : 0;
    for (std::int64_t i = 0; i < batch; ++i) {
      rows.push_back(i < count ? first + i : sequence.data().size(0));
      length[static_cast<std::size_t>(i)] += i < count ? 1 : 0;
    }
    first += count;
  }
  Tensor padded = rows_and_padding(sequence.data(), rows, padding_value);
  padded = padded.unflatten(0, {steps, batch});
  Tensor lengths = tensor(length);
  if (sequence.unsorted_indices().defined()) {
    padded = padded.index_select(1, sequence.unsorted_indices());
    lengths = lengths.index_select(0, sequence.unsorted_indices().to(kCPU));
  }
  return {batch_first ? padded.transpose(0, 1) : padded, lengths};
}

Tensor pad_sequence(const TensorList& sequences, bool batch_first, double padding_value) {
  const Call call(sequences.loc);
  TAPER_CHECK(!sequences.empty(), "pad_sequence: give at least one sequence");
  std::int64_t steps = 0, all = 0;
  std::vector<Tensor> list;
  for (const Tensor& s : sequences) {
    TAPER_CHECK(s.defined() && s.dim() > 0, "pad_sequence: a sequence is (T, ...)");
    list.push_back(s);
    steps = std::max(steps, s.size(0));
    all += s.size(0);
  }
  const auto batch = static_cast<std::int64_t>(list.size());
  Numbers rows(static_cast<std::size_t>(steps * batch), all);
  std::int64_t row = 0;
  for (std::int64_t i = 0; i < batch; ++i) {
    for (std::int64_t t = 0; t < list[static_cast<std::size_t>(i)].size(0); ++t) {
      rows[static_cast<std::size_t>(t * batch + i)] = row++;
    }
  }
  return in_order(rows_and_padding(cat(list, 0), rows, padding_value), steps, batch, batch_first);
}

PackedSequence pack_sequence(const TensorList& sequences, bool enforce_sorted) {
  const Call call(sequences.loc);
  const Tensor padded = pad_sequence(sequences);
  Numbers length;
  for (const Tensor& s : sequences) length.push_back(s.size(0));
  return pack_padded_sequence(padded, tensor(length), false, enforce_sorted);
}

}  // namespace taper::nn::utils::rnn
