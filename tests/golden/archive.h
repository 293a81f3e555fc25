// Golden samples as plain values: arguments, tensors with their exact strides, expected outputs and
// gradients.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "taper/core/base/dtype.h"

namespace taper::golden {

// One tensor of a sample. Of an input, the bytes are a storage of `length` elements and the tensor
// a view of it; of an expected value they are the elements in order, and strides and offset say
// where they lie if it is a view. The bytes belong to the archive and live as long as any record of
// it.
struct TensorRecord {
  DType dtype = DType::kFloat64;
  std::vector<std::int64_t> shape, strides;
  std::int64_t offset = 0;
  std::int64_t length = 0;
  bool requires_grad = false;
  int view_of = -1;  // an output: the input whose storage it must share, with these strides
  std::shared_ptr<const std::string> blob;
  std::size_t at = 0;

  const char* bytes() const { return blob->data() + at; }
};

// An argument as Python wrote it.
struct Value {
  enum class Kind : std::uint8_t {
    kNull,
    kBool,
    kInt,
    kFloat,
    kText,
    kList,
    kTensor,  // integer is the position among the inputs
    kSlice,   // items are start, stop, step
    kEllipsis,
    kDType,
    kFormat,
  };
  Kind kind = Kind::kNull;
  std::int64_t integer = 0;
  double real = 0;
  std::string text;
  DType dtype = DType::kFloat64;
  std::vector<Value> items;
};

struct Sample {
  std::string op, variant, kind, note;
  int number = 0;  // among the samples of this op in this file
  std::vector<Value> args;
  std::map<std::string, Value> kwargs;
  std::vector<TensorRecord> inputs, outputs;
  std::vector<std::optional<TensorRecord>> grads;  // one per input, or none at all
  std::map<int, TensorRecord> after;               // inputs that the call writes
  bool throws = false;
  bool ones_cotangent = false;

  std::string full_name() const { return variant.empty() ? op : op + "." + variant; }
};

// "f64" and so on; throws std::runtime_error for a type that Taper does not have.
DType dtype_named(const std::string& name);

// A tensor without gaps whose elements are in `blob` from byte `at` on.
TensorRecord dense_record(const std::string& dtype,
                          const std::vector<std::int64_t>& shape,
                          std::shared_ptr<const std::string> blob,
                          std::size_t at);

// The text of data/NAME; a name that ends in .gz is unpacked. Throws std::runtime_error.
std::string read_data(const std::string& name);

// The samples of data/NAME.jsonl.gz and data/NAME.bin.gz.
std::vector<Sample> read_archive(const std::string& name);

// The samples of a table with its values in the text, such as data/edge.json.
std::vector<Sample> read_table(const std::string& name);

}  // namespace taper::golden
