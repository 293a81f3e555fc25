// IDX, the file format of MNIST and Fashion-MNIST, plain or gzipped.
#pragma once
#include <string>

#include "taper/core/tensor.h"

namespace taper::data {

// Reads a whole file: magic 0x00 0x00 type dims, the sizes as big-endian u32, the elements.
// Types 0x08 (u8), 0x0C (i32), 0x0D (f32), 0x0E (f64). The file is not trusted: a bad magic, sizes
// that overflow, too few or too many bytes throw Error naming the file and the byte counts.
Tensor read_idx(const std::string& path, Loc loc = Loc::current());

// Writes t (one of those dtypes) as IDX; gzipped when the name ends in ".gz".
void write_idx(const Tensor& t, const std::string& path, Loc loc = Loc::current());

}  // namespace taper::data
