// safetensors: the rules of the header, the mapping, and the writer.
#include "taper/data/safetensors.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include <nlohmann/json.hpp>
#include <sys/mman.h>

#include "taper/autograd/ops/create.h"
#include "taper/core/base/file.h"

namespace taper::data {
namespace {

constexpr std::uint64_t kLargestHeader = 100'000'000;
constexpr std::size_t kLongestName = 1024;
constexpr std::uint64_t kLongestText = 65'536;  // or an eighth of the file
constexpr std::size_t kMostTensors = 16'384;    // finding a name among n takes n steps
constexpr std::size_t kMostMetadata = 10'000;

struct Name {
  const char* text;
  std::int64_t bits;
  int dtype;  // a DType, or -1: known to the format, not to Taper
};

constexpr int id(DType d) {
  return static_cast<int>(d);
}

constexpr Name kNames[] = {{"F64", 64, id(kFloat64)},
                           {"F32", 32, id(kFloat32)},
                           {"F16", 16, id(kFloat16)},
                           {"BF16", 16, id(kBFloat16)},
                           {"I64", 64, id(kInt64)},
                           {"I32", 32, id(kInt32)},
                           {"U8", 8, id(kUInt8)},
                           {"BOOL", 8, id(kBool)},
                           {"I8", 8, -1},
                           {"I16", 16, -1},
                           {"U16", 16, -1},
                           {"U32", 32, -1},
                           {"U64", 64, -1},
                           {"C64", 64, -1},
                           {"F8_E4M3", 8, -1},
                           {"F8_E5M2", 8, -1},
                           {"F8_E8M0", 8, -1},
                           {"F8_E4M3FNUZ", 8, -1},
                           {"F8_E5M2FNUZ", 8, -1},
                           {"F6_E2M3", 6, -1},
                           {"F6_E3M2", 6, -1},
                           {"F4", 4, -1}};

struct Entry {
  std::string name;
  const Name* dtype = nullptr;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;
};

// A text of the file as a message may show it.
std::string shown(const std::string& text) {
  std::string out = "'" + text.substr(0, 80) + (text.size() > 80 ? "...'" : "'");
  for (char& c : out) c = static_cast<unsigned char>(c) < ' ' ? '?' : c;
  return out;
}

// Stricter than the reference, which takes any text: names become keys, lines and paths of others.
void check_name(const std::string& name, const std::string& path) {
  TAPER_CHECK(!name.empty(), path, ": a tensor has no name");
  TAPER_CHECK(name.size() <= kLongestName, path, ": the name ", shown(name), " is longer than ",
              kLongestName, " bytes");
  for (const char c : name) {
    TAPER_CHECK(static_cast<unsigned char>(c) >= ' ', path, ": the name ", shown(name),
                " holds a control character");
  }
  TAPER_CHECK(("/" + name + "/").find("/../") == std::string::npos, path, ": the name ",
              shown(name), " leads out of its folder");
}

// What the JSON parser is more lenient about, and what it would hold several times over.
void check_text(const std::string& text, std::uint64_t file_size, const std::string& path) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  TAPER_CHECK(text.empty() || (first != std::string::npos && text[first] == '{'), path,
              ": the header does not begin with '{'");
  const std::size_t nul = text.find('\0');
  TAPER_CHECK(nul == std::string::npos, path, ": the header is no JSON: error at byte ", nul);
  const std::uint64_t longest = std::max(kLongestText, file_size / 8);
  std::size_t run = 0;  // since the last quote
  for (std::size_t i = 0; i < text.size(); ++i) {
    run = text[i] == '"' ? 0 : run + 1;
    if (text[i] == '\\') {  // and what it escapes
      ++i;
      ++run;
    }
    TAPER_CHECK(run <= longest, path, ": a text or gap in the header is longer than ", longest,
                " bytes");
  }
}

// Takes the header apart while it is parsed: nothing of it is built as a tree, so that nesting and
// size cost nothing, and each key is seen, duplicates too.
class Header final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Header(const std::string& path) : path_(path) {}

  std::vector<Entry> entries;
  std::map<std::string, std::string> metadata;

  bool null() override { return refuse("null"); }
  bool boolean(bool) override { return refuse("a bool"); }
  bool number_float(double, const std::string& text) override {
    return refuse("the number " + text);
  }
  bool binary(binary_t&) override { return refuse("binary data"); }

  bool number_integer(std::int64_t n) override { return refuse(str("the number ", n)); }

  bool number_unsigned(std::uint64_t n) override {
    if (place_ == Place::kShape && n <= INT64_MAX) {
      entry_.shape.push_back(static_cast<std::int64_t>(n));
      TAPER_CHECK(entry_.shape.size() <= kMaxDims, path_, ": tensor '", entry_.name,
                  "' has more than ", kMaxDims, " dims");
      return true;
    }
    if (place_ == Place::kOffsets && offsets_ < 2) {
      (offsets_++ == 0 ? entry_.begin : entry_.end) = n;
      return true;
    }
    return refuse(str("the number ", n));
  }

  bool string(std::string& s) override {
    if (place_ == Place::kMetadata) {
      metadata[key_] = std::move(s);
      TAPER_CHECK(metadata.size() <= kMostMetadata, path_, " has more than ", kMostMetadata,
                  " metadata");
      return true;
    }
    if (place_ != Place::kTensor || key_ != "dtype") return refuse("the text " + shown(s));
    for (const Name& n : kNames) {
      if (s == n.text) entry_.dtype = &n;
    }
    TAPER_CHECK(entry_.dtype != nullptr, path_, ": tensor '", entry_.name,
                "' has the unknown dtype ", shown(s));
    return true;
  }

  bool start_object(std::size_t) override {
    if (place_ == Place::kStart) place_ = Place::kTop;
    else if (place_ == Place::kTop && key_ == "__metadata__") place_ = Place::kMetadata;
    else if (place_ == Place::kTop) start_tensor();
    else return refuse("an object");
    return true;
  }

  bool key(std::string& k) override {
    if (place_ == Place::kTop) check_name(k, path_);
    TAPER_CHECK(k.size() <= kLongestName, path_, ": the key ", shown(k), " is longer than ",
                kLongestName, " bytes");
    key_ = k;
    const bool fresh = place_ == Place::kTop        ? names_.insert(k).second
                       : place_ == Place::kMetadata ? metadata.count(k) == 0
                                                    : keys_.insert(k).second;
    TAPER_CHECK(fresh, path_, ": ", shown(k), " appears twice");
    return true;
  }

  bool end_object() override {
    if (place_ == Place::kTensor) {
      TAPER_CHECK(
          keys_.size() == 3 &&
              keys_.count("dtype") + keys_.count("shape") + keys_.count("data_offsets") == 3 &&
              offsets_ == 2,
          path_, ": tensor '", entry_.name,
          "' must have dtype, shape and two data_offsets, and nothing else");
      entries.push_back(std::move(entry_));
      TAPER_CHECK(entries.size() <= kMostTensors, path_, " has more than ", kMostTensors,
                  " tensors");
    }
    place_ = place_ == Place::kTop ? Place::kEnd : Place::kTop;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ != Place::kTensor || (key_ != "shape" && key_ != "data_offsets"))
      return refuse("a list");
    place_ = key_ == "shape" ? Place::kShape : Place::kOffsets;
    return true;
  }

  bool end_array() override {
    place_ = Place::kTensor;
    return true;
  }

  bool parse_error(std::size_t at, const std::string&, const nlohmann::json::exception&) override {
    fail(str(path_, ": the header is no JSON: error at byte ", at));
  }

 private:
  enum class Place { kStart, kTop, kMetadata, kTensor, kShape, kOffsets, kEnd };

  void start_tensor() {
    place_ = Place::kTensor;
    entry_ = Entry();
    entry_.name = key_;
    keys_.clear();
    offsets_ = 0;
  }

  bool refuse(const std::string& what) {
    fail(str(path_, ": ", what, " is not expected in the header, at ", shown(key_),
             entry_.name.empty() ? "" : " of tensor " + shown(entry_.name)));
  }

  const std::string& path_;
  Place place_ = Place::kStart;
  std::string key_;
  Entry entry_;
  int offsets_ = 0;
  std::set<std::string> names_, keys_;
};

// The checks that the reference makes on each tensor, in its order.
void check_entries(std::vector<Entry>& entries, std::uint64_t data_bytes, const std::string& path) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  std::uint64_t at = 0;
  for (const Entry& e : entries) {
    TAPER_CHECK(e.begin == at && e.end >= e.begin, path, ": tensor '", e.name, "' lies at bytes ",
                e.begin, " to ", e.end, ", the one before it ends at ", at);
    std::uint64_t bits = static_cast<std::uint64_t>(e.dtype->bits);
    bool empty = false;
    for (const std::int64_t s : e.shape) {
      empty = empty || s == 0;
      const auto n = static_cast<std::uint64_t>(s == 0 ? 1 : s);  // strides must fit even so
      TAPER_CHECK(!__builtin_mul_overflow(bits, n, &bits), path, ": the size of tensor '", e.name,
                  "', ", IntArrayRef(e.shape), ", overflows");
    }
    if (empty) bits = 0;
    TAPER_CHECK(bits % 8 == 0, path, ": tensor '", e.name, "' does not fill whole bytes");
    TAPER_CHECK(e.end - e.begin == bits / 8, path, ": tensor '", e.name, "' of shape ",
                IntArrayRef(e.shape), " needs ", bits / 8, " bytes, the header gives it ",
                e.end - e.begin);
    at = e.end;
  }
  TAPER_CHECK(at == data_bytes, path, ": the tensors end at byte ", at, " of ", data_bytes,
              " bytes of data");
}

// A private mapping of a whole file: writes stay in this process.
class Mapping final : public MemoryOwner {
 public:
  Mapping(void* data, std::size_t bytes) : data_(data), bytes_(bytes) {}
  ~Mapping() override { munmap(data_, bytes_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

 private:
  void* data_;
  std::size_t bytes_;
};

Tensor tensor_of(const Entry& e,
                 const File& file,
                 const Ref<Storage>& mapped,
                 std::uint64_t data_start,
                 const std::string& path) {
  TAPER_CHECK(e.dtype->dtype >= 0, path, ": tensor '", e.name, "' is ", e.dtype->text,
              ", which Taper has no dtype for");
  const auto dtype = static_cast<DType>(e.dtype->dtype);
  Layout layout = contiguous_layout(e.shape);
  const auto size = static_cast<std::uint64_t>(element_size(dtype));
  const std::uint64_t at = data_start + e.begin;
  if (layout.numel() == 0) return empty(e.shape, dtype);
  if (at % size == 0) {
    layout.offset = static_cast<std::int64_t>(at / size);
    return make_tensor(mapped, layout, dtype);
  }
  Tensor copy = empty(e.shape, dtype);
  file.read_at(at, copy.data_ptr(), copy.nbytes());  // pages of a file that shrank would be fatal
  return copy;
}

}  // namespace

SafeTensors read_safetensors(const std::string& path, Loc loc) {
  const Call call(loc);
  const File file(path);
  TAPER_CHECK(file.size() >= 8, path, " has ", file.size(), " bytes; a header begins with 8");
  unsigned char length[8];
  file.read_at(0, length, 8);
  std::uint64_t n = 0;
  for (int i = 7; i >= 0; --i) n = n << 8 | length[i];
  TAPER_CHECK(n <= kLargestHeader, path, ": the header claims ", n, " bytes; at most ",
              kLargestHeader, " are allowed");
  TAPER_CHECK(n <= file.size() - 8, path, ": the header claims ", n, " bytes, the file has ",
              file.size());
  std::string text(n, '\0');
  file.read_at(8, text.data(), n);
  check_text(text, file.size(), path);
  Header header(path);
  nlohmann::json::sax_parse(text, &header);
  check_entries(header.entries, file.size() - 8 - n, path);
  SafeTensors out;
  out.metadata.assign(header.metadata.begin(), header.metadata.end());
  Ref<Storage> mapped;
  if (file.size() > 8 + n) {
    void* data = file.map();
    mapped = Storage::borrow(data, file.size(), kCPU, new Mapping(data, file.size()));
  }
  for (const Entry& e : header.entries) {
    out.tensors.insert(e.name, tensor_of(e, file, mapped, 8 + n, path));
  }
  return out;
}

namespace {

const Name& name_of(DType dtype) {
  for (const Name& n : kNames) {
    if (n.dtype == id(dtype)) return n;
  }
  fail(str("safetensors has no name for ", dtype));
}

std::string json_of(const nlohmann::json& value) {
  try {
    return value.dump();
  } catch (const nlohmann::json::exception&) {
    fail("write_safetensors: a name or metadata is not UTF-8");
  }
}

}  // namespace

void write_safetensors(const OrderedDict<std::string, Tensor>& tensors,
                       const std::string& path,
                       const Metadata& metadata,
                       Loc loc) {
  const Call call(loc);
  std::vector<const OrderedDict<std::string, Tensor>::Item*> order;
  for (const auto& item : tensors) {
    check_name(item.key(), path);
    TAPER_CHECK(item.value().defined(), "write_safetensors: '", item.key(), "' is undefined");
    TAPER_CHECK(item.key() != "__metadata__",
                "write_safetensors: '__metadata__' is a reserved name");
    order.push_back(&item);
  }
  TAPER_CHECK(order.size() <= kMostTensors && metadata.size() <= kMostMetadata,
              "write_safetensors: at most ", kMostTensors, " tensors and ", kMostMetadata,
              " metadata are allowed, got ", order.size(), " and ", metadata.size());
  // Large elements first, so that each tensor starts at a multiple of its element's size.
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    const auto x = a->value().element_size(), y = b->value().element_size();
    return x != y ? x > y : a->key() < b->key();
  });
  std::string text = "{";
  const std::map<std::string, std::string> by_name(metadata.begin(), metadata.end());
  TAPER_CHECK(by_name.size() == metadata.size(),
              "write_safetensors: a name of metadata is there twice");
  if (!metadata.empty()) text += "\"__metadata__\":" + json_of(by_name);
  std::uint64_t at = 0;
  for (const auto* item : order) {
    const Tensor& t = item->value();
    const std::uint64_t end = at + t.nbytes();
    text += str(text.size() > 1 ? "," : "", json_of(item->key()), ":{\"dtype\":\"",
                name_of(t.dtype()).text, "\",\"shape\":", json_of(t.sizes().vec()),
                ",\"data_offsets\":[", at, ",", end, "]}");
    at = end;
  }
  text += '}';
  text.append((8 - text.size() % 8) % 8, ' ');
  TAPER_CHECK(text.size() <= kLargestHeader, "write_safetensors: the header has ", text.size(),
              " bytes; at most ", kLargestHeader, " are allowed");
  check_text(text, 8 + text.size() + at, path);
  unsigned char length[8];
  for (int i = 0; i < 8; ++i) length[i] = static_cast<unsigned char>(text.size() >> (8 * i));
  Replacement writer(path);
  writer.write(length, 8);
  writer.write(text.data(), text.size());
  for (const auto* item : order) {
    const Tensor host = item->value().detach().cpu().contiguous();
    writer.write(host.data_ptr(), host.nbytes());
  }
  writer.finish();
}

}  // namespace taper::data
