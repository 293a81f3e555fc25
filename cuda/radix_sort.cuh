// Sorts runs of unsigned keys, stably, and says where each key came from.
#pragma once

#include "taper/cuda/device.cuh"

namespace taper::cuda {

inline constexpr int kDigitBits = 8;  // of a key; digits are counted from the lowest

// Key is std::uint32_t or std::uint64_t. What it holds is scratch of the Exec.
template <class Key> class KeySorter {
 public:
  // Room for `lines` lines of n keys.
  KeySorter(const Exec& exec, Index lines, Index n);

  // The first `lines` lines of keys(), which hold the keys: afterwards they are in order, and
  // items() says at which place of its line each key was. Only the digits [first, last) tell keys
  // apart.
  void sort(Index lines, int first_digit, int last_digit);

  Key* keys() const { return keys_; }

  const std::uint32_t* items() const { return items_; }

 private:
  void sort_by_digit(Index lines, int digit, bool has_items);

  const Exec& exec_;
  Index n_, tiles_;
  Key *keys_, *other_keys_ = nullptr;
  std::uint32_t *items_, *other_items_ = nullptr;
  std::uint32_t *counts_ = nullptr, *totals_ = nullptr;
};

extern template class KeySorter<std::uint32_t>;
extern template class KeySorter<std::uint64_t>;

}  // namespace taper::cuda
