// What the files of a dump share: their format's name, and what is derived from the rest.
#pragma once
#include "taper/autograd/lens/dump.h"

namespace taper::lens {

inline constexpr const char* kDumpFormat = "taper-tape";
inline constexpr std::uint64_t kDumpVersion = 1;

// Elements times their size.
std::uint64_t bytes_of(const TensorSpec& spec);

// Fills in saved_bytes and first_bytes of the entries and the storages' first savers.
void count_bytes(TapeDump& dump);

}  // namespace taper::lens
