// Sequences of unequal lengths: padded to one tensor, or packed without padding.
#pragma once
#include <optional>
#include <tuple>
#include <vector>

#include "taper/core/tensor.h"

namespace taper::nn::utils::rnn {

// Sequences without padding: data (N, ...) holds the first step of all of them, the longest
// sequence first, then the second step of those that have one, and so on; batch_sizes (T), on the
// cpu, says how many have each. Where sequences were not in that order, sorted_indices (B) says
// which stands at each place, and unsorted_indices where each stands; else they are undefined.
class PackedSequence {
 public:
  // What is not given follows: unsorted_indices from sorted_indices.
  explicit PackedSequence(Tensor data,
                          Tensor batch_sizes,
                          Tensor sorted_indices = {},
                          Tensor unsorted_indices = {},
                          Loc loc = Loc::current());

  const Tensor& data() const { return data_; }
  const Tensor& batch_sizes() const { return batch_sizes_; }
  const Tensor& sorted_indices() const { return sorted_indices_; }
  const Tensor& unsorted_indices() const { return unsorted_indices_; }
  Device device() const { return data_.device(); }
  DType dtype() const { return data_.dtype(); }
  PackedSequence to(Device device, Loc loc = Loc::current()) const;
  PackedSequence to(DType dtype, Loc loc = Loc::current()) const;

 private:
  Tensor data_, batch_sizes_, sorted_indices_, unsorted_indices_;
};

// x (T, B, ...) or, with batch_first, (B, T, ...), of which sequence i has lengths[i] steps;
// lengths (B) of i64 on the cpu, none below 1. Unless enforce_sorted, they may come in any order.
PackedSequence pack_padded_sequence(const TensorArg& x,
                                    const Tensor& lengths,
                                    bool batch_first = false,
                                    bool enforce_sorted = true);
// (padded, lengths): sequences in their first order; total_length is T at least.
std::tuple<Tensor, Tensor> pad_packed_sequence(const PackedSequence& sequence,
                                               bool batch_first = false,
                                               double padding_value = 0,
                                               std::optional<std::int64_t> total_length = {},
                                               Loc loc = Loc::current());
// Sequences (T_i, ...), alike but for their lengths, to (T, B, ...) or (B, T, ...).
Tensor pad_sequence(const TensorList& sequences,
                    bool batch_first = false,
                    double padding_value = 0);
PackedSequence pack_sequence(const TensorList& sequences, bool enforce_sorted = true);

}  // namespace taper::nn::utils::rnn
