// The compiled CPU columns, one for each instruction set.
#pragma once
#include "taper/core/kernels.h"

namespace taper::cpu {

struct Column {
  const char* isa;
  bool runs;  // this machine has the instructions
  const Kernels* kernels;
};

// Best first; the last one always runs.
ArrayRef<Column> columns();

}  // namespace taper::cpu
