// Where a NaN or an infinity began, and how that is told.
#pragma once
#include <string>
#include <vector>

#include "taper/autograd/tape.h"
#include "taper/core/kernels.h"

namespace taper::lens {

// The memory that a view's elements lie in.
struct Range {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;

  bool holds(const std::byte* p) const { return p >= begin && p < end; }
};

Range memory_of(const View& view);
const std::byte* element_of(const View& view, const Sizes& at);

// Of the tensor that a kernel read, at the element that went bad, or as a whole.
struct OperandSeen {
  Sizes sizes;
  DType dtype = DType::kFloat32;
  Range memory;
  bool known = false;  // floating, and not what the kernel wrote over
  double value = 0;    // at the element; without one the largest by magnitude, or NaN
};

// A kernel that made a bad number of good ones; or was the first to meet one that was there.
struct Origin {
  enum class Kind : std::uint8_t {
    kMade,     // its operands were finite
    kMadeNaN,  // its operands held infinities, but no NaN
    kCameIn,   // an operand was bad, and no kernel under the hunt had written it
  };

  Kind kind = Kind::kMade;
  const char* op = "";
  const char* rule = nullptr;  // the op whose derivative ran; null in forward
  SourceLoc loc;
  std::uint32_t scope = 0;
  std::uint64_t entry = 0;
  int slot = 0;
  const char* kernel = "";
  double value = 0;
  Sizes sizes, at;  // of what was written, and the element
  DType dtype = DType::kFloat32;
  bool elementwise = false;
  std::vector<OperandSeen> operands;
  std::size_t bad_operand = 0;  // kCameIn
  int before = -1;              // kMadeNaN: the origin of the infinity, if known

  bool same_place(const Origin& other) const {
    return op == other.op && rule == other.rule && loc.file == other.loc.file &&
           loc.line == other.loc.line && slot == other.slot && kind == other.kind;
  }
};

// The kernel's operands as they are after the call. `at` is an element of what it wrote.
Origin see(const KernelCall& call, const View& written, std::int64_t index);

// A number of any floating dtype, wherever it lies.
double number_at(const Exec& exec, const void* address, DType dtype);

// The first NaN or infinity, -1 if there is none.
std::int64_t first_nonfinite(const View& view, Device device, StreamId stream);

// Several lines: "#12 log at train.cpp:42 in main made element (0, 2) of f32 (4, 3) -inf ...".
// What came in is looked for among the leaves and saved tensors that `from` leads to.
std::string to_string(const Origin& origin, const Node* from);

}  // namespace taper::lens
