// The arguments of a sample, asked for by position and name as Python would bind them.
#pragma once
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "taper/core/tensor.h"
#include "taper/tests/golden/archive.h"

namespace taper::golden {

// The sample asks for something that Taper does not have; the report counts it under the reason.
struct Skip : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Args {
 public:
  Args(const Sample& sample, std::vector<Tensor> inputs)
      : sample_(sample), inputs_(std::move(inputs)) {}

  const std::vector<Tensor>& inputs() const { return inputs_; }

  // The value at this position or under this name; null when neither was given.
  const Value& at(std::size_t position, const char* name = "") const;

  std::size_t count() const { return sample_.args.size(); }

  bool has(std::size_t position, const char* name = "") const {
    return at(position, name).kind != Value::Kind::kNull;
  }

  bool is_tensor(std::size_t position, const char* name = "") const {
    return at(position, name).kind == Value::Kind::kTensor;
  }

  // Throws Skip if the sample uses this keyword with anything but None or False.
  void refuse(const char* name) const;

  Tensor tensor(std::size_t position, const char* name = "") const;
  Tensor tensor_or_none(std::size_t position, const char* name = "") const;
  // A tensor, or a number that takes part in promotion as numbers do.
  Tensor operand(std::size_t position, const char* name = "") const;
  std::vector<Tensor> tensors(std::size_t position, const char* name = "") const;
  std::vector<Tensor> tensors_from(std::size_t position) const;  // f(a, b, c)

  Scalar scalar(std::size_t position, const char* name, Scalar otherwise) const;
  double real(std::size_t position, const char* name, double otherwise) const;
  std::int64_t integer(std::size_t position, const char* name, std::int64_t otherwise) const;
  std::optional<std::int64_t> integer(std::size_t position, const char* name) const;
  bool flag(std::size_t position, const char* name, bool otherwise) const;
  std::string text(std::size_t position, const char* name, const char* otherwise) const;
  std::optional<DType> dtype(std::size_t position, const char* name = "dtype") const;
  // One number or a list of them; an absent argument gives `otherwise`.
  std::vector<std::int64_t> ints(std::size_t position,
                                 const char* name,
                                 std::vector<std::int64_t> otherwise = {}) const;
  // f(x, 2, 3) as well as f(x, (2, 3)).
  std::vector<std::int64_t> ints_from(std::size_t position) const;

 private:
  const Sample& sample_;
  std::vector<Tensor> inputs_;
};

Scalar to_scalar(const Value& value);

}  // namespace taper::golden
