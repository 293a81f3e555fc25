// safetensors: the rules of the header, the mapping, and the writer.
#include "taper/data/safetensors.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <set>
#include <vector>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "taper/autograd/ops/create.h"

namespace taper::data {
namespace {

constexpr std::uint64_t kLargestHeader = 100'000'000;
constexpr std::size_t kLongestName = 65'536;
constexpr std::size_t kMostTensors = 1'000'000;

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

// Takes the header apart while it is parsed: nothing of it is built as a tree, so that nesting and
// size cost nothing, and each key is seen, duplicates too.
class Header final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Header(const std::string& path) : path_(path) {}

  std::vector<Entry> entries;
  Metadata metadata;

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
      metadata[key_] = s;
      return true;
    }
    if (place_ != Place::kTensor || key_ != "dtype")
      return refuse("the text '" + s.substr(0, 40) + "'");
    for (const Name& n : kNames) {
      if (s == n.text) entry_.dtype = &n;
    }
    TAPER_CHECK(entry_.dtype != nullptr, path_, ": tensor '", entry_.name,
                "' has the unknown dtype '", s.substr(0, 40), "'");
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
    TAPER_CHECK(k.size() <= kLongestName, path_, ": a name has ", k.size(), " bytes");
    key_ = k;
    const bool fresh = place_ == Place::kTop        ? names_.insert(k).second
                       : place_ == Place::kMetadata ? metadata.count(k) == 0
                                                    : keys_.insert(k).second;
    TAPER_CHECK(fresh, path_, ": '", k.substr(0, 80), "' appears twice");
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
    fail(str(path_, ": ", what, " is not expected in the header",
             place_ == Place::kStart ? "" : ", at '" + key_.substr(0, 80) + "'"));
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
    for (const std::int64_t s : e.shape) {
      TAPER_CHECK(!__builtin_mul_overflow(bits, static_cast<std::uint64_t>(s), &bits), path,
                  ": the size of tensor '", e.name, "', ", IntArrayRef(e.shape), ", overflows");
    }
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

class File {
 public:
  explicit File(const std::string& path)
      : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    TAPER_CHECK(fd_ >= 0, "cannot open ", path, ": ", std::strerror(errno));
    struct stat s {};
    const bool known = fstat(fd_, &s) == 0 && S_ISREG(s.st_mode);
    if (!known) close(fd_);
    TAPER_CHECK(known, path, " is not a plain file");
    size = static_cast<std::uint64_t>(s.st_size);
  }

  ~File() { close(fd_); }

  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void read_at(std::uint64_t offset, void* out, std::size_t bytes, const std::string& path) const {
    std::size_t done = 0;
    while (done < bytes) {
      const ssize_t n = pread(fd_, static_cast<char*>(out) + done, bytes - done,
                              static_cast<off_t>(offset + done));
      TAPER_CHECK(n > 0, "cannot read ", path,
                  n == 0 ? ": it became shorter" : std::strerror(errno));
      done += static_cast<std::size_t>(n);
    }
  }

  // Reference counted through the storage that holds it.
  void* map(const std::string& path) const {
    void* p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd_, 0);
    TAPER_CHECK(p != MAP_FAILED, "cannot map ", path, ": ", std::strerror(errno));
    return p;
  }

  std::uint64_t size = 0;

 private:
  int fd_;
};

Tensor tensor_of(const Entry& e,
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
  std::memcpy(copy.data_ptr(), static_cast<const char*>(mapped->data()) + at, copy.nbytes());
  return copy;
}

}  // namespace

SafeTensors read_safetensors(const std::string& path, Loc loc) {
  const Call call(loc);
  const File file(path);
  TAPER_CHECK(file.size >= 8, path, " has ", file.size, " bytes; a header begins with 8");
  unsigned char length[8];
  file.read_at(0, length, 8, path);
  std::uint64_t n = 0;
  for (int i = 7; i >= 0; --i) n = n << 8 | length[i];
  TAPER_CHECK(n <= kLargestHeader, path, ": the header claims ", n, " bytes; at most ",
              kLargestHeader, " are allowed");
  TAPER_CHECK(n <= file.size - 8, path, ": the header claims ", n, " bytes, the file has ",
              file.size);
  std::string text(n, '\0');
  file.read_at(8, text.data(), n, path);
  Header header(path);
  nlohmann::json::sax_parse(text, &header);
  check_entries(header.entries, file.size - 8 - n, path);
  SafeTensors out;
  out.metadata = std::move(header.metadata);
  Ref<Storage> mapped;
  if (file.size > 8 + n) {
    void* data = file.map(path);
    mapped = Storage::borrow(data, file.size, kCPU, new Mapping(data, file.size));
  }
  for (const Entry& e : header.entries) {
    out.tensors.insert(e.name, tensor_of(e, mapped, 8 + n, path));
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

class Writer {
 public:
  explicit Writer(const std::string& target)
      : target_(target), path_(target + ".part"), file_(std::fopen(path_.c_str(), "wb")) {
    TAPER_CHECK(file_ != nullptr, "cannot write ", path_, ": ", std::strerror(errno));
  }

  ~Writer() {
    if (file_ == nullptr) return;
    std::fclose(file_);
    std::remove(path_.c_str());
  }

  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void write(const void* data, std::size_t bytes) {
    TAPER_CHECK(bytes == 0 || std::fwrite(data, 1, bytes, file_) == bytes, "cannot write ", path_,
                ": ", std::strerror(errno));
  }

  // The bytes are on the disk before the name points to them.
  void finish() {
    TAPER_CHECK(std::fflush(file_) == 0 && fsync(fileno(file_)) == 0, "cannot write ", path_, ": ",
                std::strerror(errno));
    std::fclose(file_);
    file_ = nullptr;
    TAPER_CHECK(std::rename(path_.c_str(), target_.c_str()) == 0, "cannot rename ", path_, " to ",
                target_, ": ", std::strerror(errno));
  }

 private:
  std::string target_, path_;
  std::FILE* file_;
};

}  // namespace

void write_safetensors(const OrderedDict<std::string, Tensor>& tensors,
                       const std::string& path,
                       const Metadata& metadata,
                       Loc loc) {
  const Call call(loc);
  std::vector<const OrderedDict<std::string, Tensor>::Item*> order;
  for (const auto& item : tensors) {
    TAPER_CHECK(item.value().defined(), "write_safetensors: '", item.key(), "' is undefined");
    TAPER_CHECK(item.key() != "__metadata__",
                "write_safetensors: '__metadata__' is a reserved name");
    order.push_back(&item);
  }
  // Large elements first, so that each tensor starts at a multiple of its element's size.
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    const auto x = a->value().element_size(), y = b->value().element_size();
    return x != y ? x > y : a->key() < b->key();
  });
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t at = 0;
  for (const auto* item : order) {
    const Tensor& t = item->value();
    const std::uint64_t end = at + t.nbytes();
    header[item->key()] = {{"dtype", name_of(t.dtype()).text},
                           {"shape", t.sizes().vec()},
                           {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  TAPER_CHECK(text.size() <= kLargestHeader, "write_safetensors: the header has ", text.size(),
              " bytes; at most ", kLargestHeader, " are allowed");
  unsigned char length[8];
  for (int i = 0; i < 8; ++i) length[i] = static_cast<unsigned char>(text.size() >> (8 * i));
  Writer writer(path);
  writer.write(length, 8);
  writer.write(text.data(), text.size());
  for (const auto* item : order) {
    const Tensor host = item->value().detach().cpu().contiguous();
    writer.write(host.data_ptr(), host.nbytes());
  }
  writer.finish();
}

}  // namespace taper::data
