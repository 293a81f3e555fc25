// safetensors: named tensors in one file, read by mapping it, without a copy.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "taper/core/base/ordered_dict.h"
#include "taper/core/tensor.h"

namespace taper::data {

// Texts by name; what a file gives comes by rising name.
using Metadata = std::vector<std::pair<std::string, std::string>>;

struct SafeTensors {
  OrderedDict<std::string, Tensor> tensors;  // in the order of their bytes
  Metadata metadata;
};

// Format: u64 little-endian N; N bytes of JSON {name: {dtype, shape, data_offsets}}; the elements.
// The file is not trusted. All rules of the reference reader hold (header at most 100 MB, offsets
// without gap or overlap from 0 to the end, sizes that multiply without overflow and match).
// Stricter than it: a name appears once, is not empty, at most 1 KiB long, without control
// characters and "..", and there are at most 16384 tensors and 10000 metadata; one text is at most
// 64 KiB or an eighth of the file. Errors name the file, the tensor and the numbers.
//
// The tensors borrow the mapping, which lives as long as they do; pages are private, so writing to
// them does not change the file. Tensors that are not aligned for their type are copied. Reading
// survives a file that shrinks meanwhile; later, its tensors must not be touched any more (SIGBUS),
// so replace a file by renaming, as write_safetensors does, and do not cut it.
SafeTensors read_safetensors(const std::string& path, Loc loc = Loc::current());

// Writes beside the target and renames, so that a crash leaves the old file and readers their
// mapping. Non-contiguous tensors are written in row-major order; shared storage is not kept.
void write_safetensors(const OrderedDict<std::string, Tensor>& tensors,
                       const std::string& path,
                       const Metadata& metadata = {},
                       Loc loc = Loc::current());

}  // namespace taper::data
