// IDX, the file format of MNIST and Fashion-MNIST, plain or gzipped.
#include "taper/data/idx.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include <zlib.h>

#include "taper/autograd/ops/create.h"
#include "taper/core/base/file.h"

namespace taper::data {
namespace {

struct TypeCode {
  unsigned char code;
  DType dtype;
};

constexpr TypeCode kCodes[] = {{0x08, kUInt8}, {0x0C, kInt32}, {0x0D, kFloat32}, {0x0E, kFloat64}};

// deflate cannot shrink further than this: what a small file may unpack to is bounded by it.
constexpr std::uint64_t kLargestRatio = 1032;

constexpr std::size_t kChunk = 1U << 30;  // zlib counts in 32 bits

// The bytes of a file, unpacked on their way when it is gzipped. zlib's own file functions take a
// stream that is cut off in its checksum, or followed by something else, for a good one.
class Source {
 public:
  explicit Source(const std::string& path) : path_(path) {
    const File file(path);
    bytes_.resize(file.size());
    file.read_at(0, bytes_.data(), bytes_.size());
    gzipped_ = is_gzip();
    if (gzipped_) TAPER_CHECK(inflateInit2(&z_, 15 + 16) == Z_OK, "no memory to unpack ", path);
  }

  ~Source() {
    if (gzipped_) inflateEnd(&z_);
  }

  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  // What may still come, at most.
  std::uint64_t most() const {
    return gzipped_ ? bytes_.size() * kLargestRatio : bytes_.size() - at_;
  }

  // Fills `out` as far as there are bytes, and says how far.
  std::size_t read(void* out, std::size_t bytes) {
    auto* to = static_cast<unsigned char*>(out);
    if (gzipped_) return unpack(to, bytes);
    const std::size_t n = std::min(bytes, bytes_.size() - at_);
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(at_), n, to);
    at_ += n;
    return n;
  }

  bool at_end() {
    char more = 0;
    return read(&more, 1) == 0 && at_ == bytes_.size();
  }

 private:
  bool is_gzip() const {
    return bytes_.size() - at_ >= 2 && bytes_[at_] == 0x1F && bytes_[at_ + 1] == 0x8B;
  }

  std::size_t unpack(unsigned char* out, std::size_t bytes) {
    std::size_t done = 0;
    while (done < bytes && !ended_) {
      z_.next_in = bytes_.data() + at_;
      z_.avail_in = static_cast<uInt>(std::min(bytes_.size() - at_, kChunk));
      z_.next_out = out + done;
      z_.avail_out = static_cast<uInt>(std::min(bytes - done, kChunk));
      const int status = inflate(&z_, Z_NO_FLUSH);
      TAPER_CHECK(status == Z_OK || status == Z_STREAM_END, "read_idx: ", path_,
                  status == Z_BUF_ERROR ? " is cut short inside its gzip stream"
                                        : " is damaged: its gzip stream does not unpack");
      at_ = static_cast<std::size_t>(z_.next_in - bytes_.data());
      done = static_cast<std::size_t>(z_.next_out - out);
      if (status == Z_STREAM_END) {
        ended_ = !is_gzip();  // streams may follow one another
        inflateReset(&z_);
      }
    }
    return done;
  }

  const std::string& path_;
  std::vector<unsigned char> bytes_;
  std::size_t at_ = 0;
  bool gzipped_ = false, ended_ = false;
  z_stream z_{};
};

// zlib writes plain files too.
class Target {
 public:
  explicit Target(const std::string& path)
      : path_(path), file_(gzopen(path.c_str(), path.ends_with(".gz") ? "wb6" : "wbT")) {
    TAPER_CHECK(file_ != nullptr, "cannot open ", path, ": ", std::strerror(errno));
  }

  ~Target() {
    if (file_ != nullptr) gzclose(file_);
  }

  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  void write(const void* in, std::size_t bytes) {
    for (std::size_t done = 0; done < bytes;) {
      const auto now = static_cast<unsigned>(std::min(bytes - done, kChunk));
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
  Source file(path);
  unsigned char magic[4];
  TAPER_CHECK(file.read(magic, 4) == 4, "read_idx: ", path, " has fewer than 4 bytes");
  TAPER_CHECK(magic[0] == 0 && magic[1] == 0, "read_idx: ", path,
              " is no IDX file: it does not begin with two zero bytes");
  const DType dtype = dtype_of_code(path, magic[2]);
  TAPER_CHECK(magic[3] <= kMaxDims, "read_idx: ", path, " has ", static_cast<int>(magic[3]),
              " dims; at most ", kMaxDims, " are possible");
  Sizes sizes;
  std::int64_t most = element_size(dtype);  // bytes, were no size 0
  bool empty_one = false;
  for (int d = 0; d < magic[3]; ++d) {
    unsigned char bytes[4];
    TAPER_CHECK(file.read(bytes, 4) == 4, "read_idx: ", path, " ends inside its header");
    const std::int64_t size = big_endian(bytes);
    sizes.push_back(size);
    empty_one = empty_one || size == 0;
    TAPER_CHECK(!__builtin_mul_overflow(most, std::max<std::int64_t>(size, 1), &most),
                "read_idx: the size of ", path, ", ", IntArrayRef(sizes), " ..., overflows");
  }
  const auto needed = static_cast<std::uint64_t>(empty_one ? 0 : most);
  TAPER_CHECK(needed <= file.most(), "read_idx: ", path, " is cut short: shape ",
              IntArrayRef(sizes), " needs ", needed, " bytes, there are at most ", file.most());
  const Tensor out = empty(sizes, dtype);
  const std::size_t got = file.read(out.data_ptr(), out.nbytes());
  TAPER_CHECK(got == needed, "read_idx: ", path, " is cut short: shape ", out.sizes(), " needs ",
              needed, " bytes, there are ", got);
  TAPER_CHECK(file.at_end(), "read_idx: ", path, " goes on after its ", needed,
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
  Target file(path);
  file.write(bytes.data(), bytes.size());
  if (host.nbytes() > 0) file.write(host.data_ptr(), host.nbytes());
  file.close();
}

}  // namespace taper::data
