// Reads golden files: gzip, JSON lines, and the records in them.
#include "taper/tests/golden/archive.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>

#include <nlohmann/json.hpp>
#include <zlib.h>

namespace taper::golden {
namespace {

using Json = nlohmann::json;

double number(const Json& j) {
  if (j.is_boolean()) return j.get<bool>() ? 1 : 0;
  if (!j.is_object()) return j.get<double>();
  const auto word = j.at("f").get<std::string>();
  if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  return word == "inf" ? inf : -inf;
}

std::vector<Value> values(const Json& list);

Value object(const Json& j) {
  Value v;
  if (j.contains("t")) {
    v.kind = Value::Kind::kTensor;
    v.integer = j["t"].get<std::int64_t>();
  } else if (j.contains("f")) {
    v.kind = Value::Kind::kFloat;
    v.real = number(j);
  } else if (j.contains("slice")) {
    v.kind = Value::Kind::kSlice;
    v.items = values(j["slice"]);
  } else if (j.contains("ellipsis")) {
    v.kind = Value::Kind::kEllipsis;
  } else if (j.contains("dtype")) {
    v.kind = Value::Kind::kDType;
    v.dtype = dtype_named(j["dtype"].get<std::string>());
  } else if (j.contains("memory_format")) {
    v.kind = Value::Kind::kFormat;
    v.text = j["memory_format"].get<std::string>();
  } else {
    throw std::runtime_error("golden: no such kind of argument: " + j.dump());
  }
  return v;
}

Value value(const Json& j) {
  if (j.is_object()) return object(j);
  Value v;
  if (j.is_boolean()) {
    v.kind = Value::Kind::kBool;
    v.integer = j.get<bool>() ? 1 : 0;
  } else if (j.is_number_integer()) {
    v.kind = Value::Kind::kInt;
    v.integer = j.get<std::int64_t>();
  } else if (j.is_number_float()) {
    v.kind = Value::Kind::kFloat;
    v.real = j.get<double>();
  } else if (j.is_string()) {
    v.kind = Value::Kind::kText;
    v.text = j.get<std::string>();
  } else if (j.is_array()) {
    v.kind = Value::Kind::kList;
    v.items = values(j);
  }
  return v;
}

std::vector<Value> values(const Json& list) {
  std::vector<Value> found;
  for (const Json& j : list) found.push_back(value(j));
  return found;
}

// The bytes of a dense tensor whose values stand in the text.
std::shared_ptr<const std::string> packed(const Json& list, DType dtype) {
  auto bytes = std::make_shared<std::string>();
  for (const Json& j : list) {
    visit_dtype(dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      T one{};
      if constexpr (std::is_same_v<T, std::int64_t>) one = j.get<std::int64_t>();
      else one = static_cast<T>(static_cast<double>(number(j)));
      char raw[sizeof(T)];
      std::memcpy(raw, &one, sizeof(T));
      bytes->append(raw, sizeof(T));
    });
  }
  return bytes;
}

TensorRecord record(const Json& j, const std::shared_ptr<const std::string>& blob) {
  TensorRecord r;
  r.dtype = dtype_named(j.at("dtype").get<std::string>());
  r.shape = j.at("shape").get<std::vector<std::int64_t>>();
  r.length = 1;
  for (const std::int64_t n : r.shape) r.length *= n;
  if (j.contains("strides")) {
    r.strides = j["strides"].get<std::vector<std::int64_t>>();
  } else {
    r.strides.assign(r.shape.size(), 1);
    for (std::size_t i = r.shape.size(); i-- > 1;) {
      r.strides[i - 1] = r.strides[i] * std::max<std::int64_t>(r.shape[i], 1);
    }
  }
  r.offset = j.value("offset", std::int64_t{0});
  r.length = j.value("len", r.length);
  r.requires_grad = j.value("grad", false);
  r.view_of = j.value("view_of", -1);
  if (j.contains("values")) {
    r.blob = packed(j["values"], r.dtype);
    return r;
  }
  r.blob = blob;
  r.at = j.at("at").get<std::size_t>();
  const auto size = static_cast<std::size_t>(r.length * element_size(r.dtype));
  if (r.at > blob->size() || blob->size() - r.at < size) {
    throw std::runtime_error("golden: record outside the blob: " + j.dump());
  }
  return r;
}

Sample sample(const Json& j, const std::shared_ptr<const std::string>& blob) {
  Sample s;
  s.op = j.at("op").get<std::string>();
  s.variant = j.value("variant", "");
  s.kind = j.value("kind", "");
  s.note = j.value("note", "");
  s.throws = j.value("throws", false);
  s.args = values(j.at("args"));
  if (j.contains("kwargs")) {
    for (const auto& [name, v] : j["kwargs"].items()) s.kwargs[name] = value(v);
  }
  for (const Json& r : j.at("inputs")) s.inputs.push_back(record(r, blob));
  if (j.contains("outputs")) {
    for (const Json& r : j["outputs"]) s.outputs.push_back(record(r, blob));
  }
  if (j.contains("grads")) {
    for (const Json& r : j["grads"]) {
      s.grads.push_back(r.is_null() ? std::nullopt : std::optional(record(r, blob)));
    }
  }
  if (j.contains("after")) {
    for (const auto& [position, r] : j["after"].items()) {
      s.after[std::stoi(position)] = record(r, blob);
    }
  }
  return s;
}

void count(std::vector<Sample>& samples) {
  std::map<std::string, int> seen;
  for (Sample& s : samples) s.number = seen[s.full_name()]++;
}

}  // namespace

DType dtype_named(const std::string& name) {
  for (int i = 0; i < kNumDTypes; ++i) {
    if (name == kDTypeInfo[i].name) return static_cast<DType>(i);
  }
  throw std::runtime_error("golden: no dtype " + name);
}

TensorRecord dense_record(const std::string& dtype,
                          const std::vector<std::int64_t>& shape,
                          std::shared_ptr<const std::string> blob,
                          std::size_t at) {
  TensorRecord r;
  r.dtype = dtype_named(dtype);
  r.shape = shape;
  r.strides.assign(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) r.strides[i - 1] = r.strides[i] * shape[i];
  r.length = shape.empty() ? 1 : shape[0] * r.strides[0];
  r.blob = std::move(blob);
  r.at = at;
  return r;
}

std::string read_data(const std::string& name) {
  const std::string path = TAPER_TESTS_DIR "/golden/data/" + name;
  gzFile file = gzopen(path.c_str(), "rb");  // reads plain files as well
  if (file == nullptr) throw std::runtime_error("golden: cannot open " + path);
  std::string text;
  char buffer[1 << 16];
  int n = 0;
  while ((n = gzread(file, buffer, sizeof buffer)) > 0) {
    text.append(buffer, static_cast<std::size_t>(n));
  }
  gzclose(file);
  if (n < 0) throw std::runtime_error("golden: broken file " + path);
  return text;
}

std::vector<Sample> read_archive(const std::string& name) {
  const auto blob = std::make_shared<const std::string>(read_data(name + ".bin.gz"));
  const std::string text = read_data(name + ".jsonl.gz");
  std::vector<Sample> samples;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    const Json line = Json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                  text.begin() + static_cast<std::ptrdiff_t>(end));
    if (line.contains("op")) samples.push_back(sample(line, blob));
    begin = end + 1;
  }
  count(samples);
  return samples;
}

std::vector<Sample> read_table(const std::string& name) {
  std::vector<Sample> samples;
  for (const Json& line : Json::parse(read_data(name))) {
    samples.push_back(sample(line, nullptr));
    samples.back().ones_cotangent = true;
  }
  count(samples);
  return samples;
}

}  // namespace taper::golden
