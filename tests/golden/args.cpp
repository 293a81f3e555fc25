// Binds a sample's arguments by position and name.
#include "taper/tests/golden/args.h"

namespace taper::golden {
namespace {

using Kind = Value::Kind;

[[noreturn]] void wrong(const char* wanted, const Value& got) {
  throw Skip(std::string("the adapter expects ") + wanted + " where the sample has kind " +
             std::to_string(static_cast<int>(got.kind)));
}

std::vector<std::int64_t> all_ints(const Value& v) {
  if (v.kind == Kind::kInt || v.kind == Kind::kBool) return {v.integer};
  if (v.kind != Kind::kList) wrong("integers", v);
  std::vector<std::int64_t> found;
  for (const Value& item : v.items) {
    if (item.kind != Kind::kInt) wrong("an integer", item);
    found.push_back(item.integer);
  }
  return found;
}

}  // namespace

Scalar to_scalar(const Value& v) {
  if (v.kind == Kind::kBool) return Scalar(v.integer != 0);
  if (v.kind == Kind::kInt) return Scalar(v.integer);
  if (v.kind == Kind::kFloat) return Scalar(v.real);
  wrong("a number", v);
}

const Value& Args::at(std::size_t position, const char* name) const {
  static const Value none;
  if (position < sample_.args.size()) return sample_.args[position];
  const auto found = sample_.kwargs.find(name);
  return found == sample_.kwargs.end() ? none : found->second;
}

void Args::refuse(const char* name) const {
  const auto found = sample_.kwargs.find(name);
  if (found == sample_.kwargs.end()) return;
  const Value& v = found->second;
  const bool off = v.kind == Kind::kNull || (v.kind == Kind::kBool && v.integer == 0);
  if (!off) throw Skip(std::string("no parameter ") + name);
}

Tensor Args::tensor(std::size_t position, const char* name) const {
  const Value& v = at(position, name);
  if (v.kind != Kind::kTensor) wrong("a tensor", v);
  return inputs_[static_cast<std::size_t>(v.integer)];
}

Tensor Args::tensor_or_none(std::size_t position, const char* name) const {
  return has(position, name) ? tensor(position, name) : Tensor();
}

Tensor Args::operand(std::size_t position, const char* name) const {
  const Value& v = at(position, name);
  return v.kind == Kind::kTensor ? tensor(position, name) : wrapped_number(to_scalar(v));
}

std::vector<Tensor> Args::tensors(std::size_t position, const char* name) const {
  const Value& v = at(position, name);
  if (v.kind != Kind::kList) wrong("a list of tensors", v);
  std::vector<Tensor> found;
  for (const Value& item : v.items) {
    if (item.kind != Kind::kTensor) wrong("a tensor", item);
    found.push_back(inputs_[static_cast<std::size_t>(item.integer)]);
  }
  return found;
}

std::vector<Tensor> Args::tensors_from(std::size_t position) const {
  std::vector<Tensor> found;
  for (; position < count(); ++position) found.push_back(tensor(position));
  return found;
}

Scalar Args::scalar(std::size_t position, const char* name, Scalar otherwise) const {
  const Value& v = at(position, name);
  return v.kind == Kind::kNull ? otherwise : to_scalar(v);
}

double Args::real(std::size_t position, const char* name, double otherwise) const {
  return scalar(position, name, Scalar(otherwise)).to_double();
}

std::int64_t Args::integer(std::size_t position, const char* name, std::int64_t otherwise) const {
  return integer(position, name).value_or(otherwise);
}

std::optional<std::int64_t> Args::integer(std::size_t position, const char* name) const {
  const Value& v = at(position, name);
  if (v.kind == Kind::kNull) return std::nullopt;
  if (v.kind == Kind::kList && v.items.size() == 1) return all_ints(v)[0];
  if (v.kind != Kind::kInt && v.kind != Kind::kBool) wrong("an integer", v);
  return v.integer;
}

bool Args::flag(std::size_t position, const char* name, bool otherwise) const {
  const Value& v = at(position, name);
  if (v.kind == Kind::kNull) return otherwise;
  if (v.kind != Kind::kBool && v.kind != Kind::kInt) wrong("a flag", v);
  return v.integer != 0;
}

std::string Args::text(std::size_t position, const char* name, const char* otherwise) const {
  const Value& v = at(position, name);
  if (v.kind == Kind::kNull) return otherwise;
  if (v.kind != Kind::kText) wrong("a word", v);
  return v.text;
}

std::optional<DType> Args::dtype(std::size_t position, const char* name) const {
  const Value& v = at(position, name);
  if (v.kind == Kind::kNull) return std::nullopt;
  if (v.kind != Kind::kDType) wrong("a dtype", v);
  return v.dtype;
}

std::vector<std::int64_t> Args::ints(std::size_t position,
                                     const char* name,
                                     std::vector<std::int64_t> otherwise) const {
  const Value& v = at(position, name);
  return v.kind == Kind::kNull ? otherwise : all_ints(v);
}

std::vector<std::int64_t> Args::ints_from(std::size_t position) const {
  if (position < count() && at(position).kind == Kind::kList) return all_ints(at(position));
  std::vector<std::int64_t> found;
  for (; position < count(); ++position) found.push_back(all_ints(at(position))[0]);
  return found;
}

}  // namespace taper::golden
