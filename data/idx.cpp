// IDX, the file format of MNIST and Fashion-MNIST, plain or gzipped.
#include "taper/data/idx.h"

#include <cstring>
#include <vector>

#include <sys/stat.h>
#include <zlib.h>

#include "taper/autograd/ops/create.h"

namespace taper::data {
namespace {

struct TypeCode {
  unsigned char code;
  DType dtype;
};

constexpr TypeCode kCodes[] = {{0x08, kUInt8}, {0x0C, kInt32}, {0x0D, kFloat32}, {0x0E, kFloat64}};

// deflate cannot shrink further than this: what a small file may unpack to is bounded by it.
constexpr std::int64_t kLargestRatio = 1032;

// zlib reads plain files as they are.
class GzFile {
 public:
  GzFile(const std::string& path, const char* mode)
      : path_(path), file_(gzopen(path.c_str(), mode)) {
    TAPER_CHECK(file_ != nullptr, "cannot open ", path, ": ", std::strerror(errno));
    gzbuffer(file_, 1U << 17);
  }

  ~GzFile() {
    if (file_ != nullptr) gzclose(file_);
  }

  GzFile(const GzFile&) = delete;
  GzFile& operator=(const GzFile&) = delete;

  // As many of `bytes` as there are.
  std::size_t read(void* out, std::size_t bytes) {
    std::size_t done = 0;
    while (done < bytes) {
      const std::size_t left = bytes - done;
      const auto now = static_cast<unsigned>(left < (1U << 30) ? left : (1U << 30));
      const int n = gzread(file_, static_cast<char*>(out) + done, now);
      TAPER_CHECK(n >= 0, path_, " is damaged: the gzip stream does not unpack");
      if (n == 0) break;
      done += static_cast<std::size_t>(n);
    }
    return done;
  }

  void write(const void* in, std::size_t bytes) {
    std::size_t done = 0;
    while (done < bytes) {
      const std::size_t left = bytes - done;
      const auto now = static_cast<unsigned>(left < (1U << 30) ? left : (1U << 30));
      const int n = gzwrite(file_, static_cast<const char*>(in) + done, now);
      TAPER_CHECK(n > 0, "cannot write ", path_);
      done += static_cast<std::size_t>(n);
    }
  }

  void close() {
    gzFile file = file_;
    file_ = nullptr;
    TAPER_CHECK(gzclose(file) == Z_OK, "cannot write ", path_);
  }

 private:
  const std::string& path_;
  gzFile file_;
};

std::int64_t file_size(const std::string& path) {
  struct stat s {};
  TAPER_CHECK(stat(path.c_str(), &s) == 0, "cannot open ", path, ": ", std::strerror(errno));
  TAPER_CHECK(S_ISREG(s.st_mode), path, " is not a plain file");
  return s.st_size;
}

std::uint32_t big_endian(const unsigned char* b) {
  return static_cast<std::uint32_t>(b[0]) << 24 | static_cast<std::uint32_t>(b[1]) << 16 |
         static_cast<std::uint32_t>(b[2]) << 8 | b[3];
}

// Reverses the bytes of each element: the file is big-endian, the machine little-endian.
void swap_bytes(void* data, std::size_t bytes, std::size_t size) {
  auto* p = static_cast<unsigned char*>(data);
  for (std::size_t at = 0; size > 1 && at < bytes; at += size) {
    for (std::size_t i = 0; i < size / 2; ++i) std::swap(p[at + i], p[at + size - 1 - i]);
  }
}

DType dtype_of_code(const std::string& path, unsigned char code) {
  for (const TypeCode& c : kCodes) {
    if (c.code == code) return c.dtype;
  }
  fail(str("read_idx: ", path, " holds elements of type code ", static_cast<int>(code),
           "; known are 8 (u8), 12 (i32), 13 (f32) and 14 (f64)"));
}

}  // namespace

Tensor read_idx(const std::string& path, Loc loc) {
  const Call call(loc);
  const std::int64_t on_disk = file_size(path);
  GzFile file(path, "rb");
  unsigned char magic[4];
  TAPER_CHECK(file.read(magic, 4) == 4, "read_idx: ", path, " has fewer than 4 bytes");
  TAPER_CHECK(magic[0] == 0 && magic[1] == 0, "read_idx: ", path,
              " is no IDX file: it does not begin with two zero bytes");
  const DType dtype = dtype_of_code(path, magic[2]);
  TAPER_CHECK(magic[3] <= kMaxDims, "read_idx: ", path, " has ", static_cast<int>(magic[3]),
              " dims; at most ", kMaxDims, " are possible");
  Sizes sizes;
  for (int d = 0; d < magic[3]; ++d) {
    unsigned char bytes[4];
    TAPER_CHECK(file.read(bytes, 4) == 4, "read_idx: ", path, " ends inside its header");
    sizes.push_back(big_endian(bytes));
  }
  const std::int64_t count = checked_numel(sizes);
  TAPER_CHECK(count <= on_disk * kLargestRatio, "read_idx: ", path, " claims ", count,
              " elements of shape ", IntArrayRef(sizes), ", more than a file of ", on_disk,
              " bytes can hold");
  const Tensor out = empty(sizes, dtype);
  const std::size_t got = file.read(out.data_ptr(), out.nbytes());
  TAPER_CHECK(got == out.nbytes(), "read_idx: ", path, " is cut short: shape ", out.sizes(),
              " needs ", out.nbytes(), " bytes, there are ", got);
  char more = 0;
  TAPER_CHECK(file.read(&more, 1) == 0, "read_idx: ", path, " goes on after its ", out.nbytes(),
              " bytes of elements");
  swap_bytes(out.data_ptr(), out.nbytes(), static_cast<std::size_t>(out.element_size()));
  return out;
}

void write_idx(const Tensor& t, const std::string& path, Loc loc) {
  const Call call(loc);
  std::vector<unsigned char> bytes{0, 0, 0, static_cast<unsigned char>(t.dim())};
  for (const TypeCode& c : kCodes) {
    if (c.dtype == t.dtype()) bytes[2] = c.code;
  }
  TAPER_CHECK(bytes[2] != 0, "write_idx: IDX holds u8, i32, f32 and f64, not ", t.dtype());
  for (const std::int64_t s : t.sizes()) {
    TAPER_CHECK(s <= 0xFFFFFFFFLL, "write_idx: size ", s, " does not fit 32 bits");
    for (const int shift : {24, 16, 8, 0}) bytes.push_back(static_cast<unsigned char>(s >> shift));
  }
  const Tensor host = t.detach().cpu().clone(MemoryFormat::kContiguous);
  swap_bytes(host.data_ptr(), host.nbytes(), static_cast<std::size_t>(host.element_size()));
  GzFile file(path, path.ends_with(".gz") ? "wb6" : "wbT");
  file.write(bytes.data(), bytes.size());
  if (host.nbytes() > 0) file.write(host.data_ptr(), host.nbytes());
  file.close();
}

}  // namespace taper::data
