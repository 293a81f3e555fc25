// IDX and gzipped IDX: what is read and written, and every way in which a file can be wrong.
#include "taper/data/idx.h"

#include <zlib.h>

#include "taper/allocator/allocator.h"
#include "taper/autograd/ops/create.h"
#include "taper/data/dataset.h"
#include "taper/tests/autograd/ops_testing.h"
#include "taper/tests/data/files.h"

namespace taper::testing {
namespace {

using data::read_idx;
using data::write_idx;
using Shape = std::vector<std::int64_t>;

std::string big_endian(std::uint32_t n) {
  std::string out;
  for (const int shift : {24, 16, 8, 0}) out += static_cast<char>(n >> shift & 0xFF);
  return out;
}

std::string idx(unsigned char type, const std::vector<std::uint32_t>& sizes, std::size_t bytes) {
  std::string out{0, 0, static_cast<char>(type), static_cast<char>(sizes.size())};
  for (const std::uint32_t s : sizes) out += big_endian(s);
  for (std::size_t i = 0; i < bytes; ++i) out += static_cast<char>(i);
  return out;
}

std::string gzip(const std::string& bytes) {
  z_stream z{};
  EXPECT_EQ(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string in = bytes, out(bytes.size() + 100, '\0');
  z.next_in = reinterpret_cast<Bytef*>(in.data());
  z.avail_in = static_cast<uInt>(in.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

// Refused by an Error that names the file, says why and where; nothing stays open.
void expect_refused(const std::string& bytes, const std::string& says) {
  const Folder folder;
  const std::string path = folder / "hostile.idx";
  write_file(path, bytes);
  const std::size_t files = open_files();
  const std::uint64_t before = cpu_allocator().stats().allocated;
  expect_error([&] { read_idx(path); }, {path, says, "idx_test.cpp:"});
  EXPECT_EQ(open_files(), files);
  EXPECT_EQ(cpu_allocator().stats().allocated, before);
}

void expect_refused_both_ways(const std::string& bytes, const std::string& says) {
  expect_refused(bytes, says);
  expect_refused(gzip(bytes), says);
}

TEST(Idx, ReadsBigEndian) {
  const Folder folder;
  const std::string bytes = idx(0x0C, {2}, 0) + big_endian(0x01020304) + big_endian(0xFFFFFFFE);
  const std::string parts = gzip(bytes.substr(0, 6)) + gzip("") + gzip(bytes.substr(6));
  for (const std::string& file : {bytes, gzip(bytes), parts}) {
    write_file(folder / "x", file);
    const Tensor t = read_idx(folder / "x");
    EXPECT_EQ(t.dtype(), kInt32);
    EXPECT_EQ(values(t), (Numbers{0x01020304, -2}));
  }
}

TEST(Idx, RoundTrip) {
  const Folder folder;
  for (const DType dtype : {kUInt8, kInt32, kFloat32, kFloat64}) {
    for (const Shape& sizes :
         {Shape{}, Shape{0}, Shape{7}, Shape{2, 3, 4}, Shape{1, 2, 1, 2, 1, 2, 1, 2}}) {
      const Tensor t = sample(sizes, 3, 0, 200).to(dtype);
      for (const char* name : {"x.idx", "x.idx.gz"}) {
        write_idx(t, folder / name);
        const Tensor back = read_idx(folder / name);
        EXPECT_EQ(back.dtype(), dtype);
        EXPECT_TRUE(back.sizes() == IntArrayRef(sizes)) << str(back.sizes());
        EXPECT_EQ(bytes_of(back), bytes_of(t));
      }
    }
  }
  write_idx(sample({3, 4}).t(), folder / "t");
  expect_close(read_idx(folder / "t"), sample({3, 4}).t());
  EXPECT_EQ(read_file(folder / "x.idx.gz").substr(0, 2), "\x1f\x8b");
}

TEST(Idx, WritesWhatItCanName) {
  const Folder folder;
  expect_error([&] { write_idx(zeros({2}, kInt64), folder / "x"); }, {"i64", "idx_test.cpp:"});
  expect_error([&] { write_idx(zeros({2}, kUInt8), folder / "missing/x"); },
               {"missing/x", "idx_test.cpp:"});
}

TEST(Idx, CutAtEveryByte) {
  const std::string bytes = idx(0x08, {3, 4}, 12), packed = gzip(bytes);
  for (std::size_t n = 0; n < bytes.size(); ++n) expect_refused(bytes.substr(0, n), "");
  for (std::size_t n = 0; n < packed.size(); ++n) expect_refused(packed.substr(0, n), "");
  for (std::size_t n = 0; n < bytes.size(); ++n) expect_refused(gzip(bytes.substr(0, n)), "");
}

TEST(Idx, BytesAfterTheLast) {
  const std::string bytes = idx(0x08, {3, 4}, 12);
  expect_refused_both_ways(bytes + 'x', "goes on after");
  expect_refused_both_ways(bytes + bytes, "goes on after");
  expect_refused(gzip(bytes) + 'x', "goes on after");
  expect_refused(gzip(bytes) + std::string(8, '\0'), "goes on after");
  expect_refused(gzip(bytes) + gzip("x"), "goes on after");
}

TEST(Idx, WrongMagic) {
  expect_refused_both_ways("P6 640 480 255\n", "does not begin with two zero bytes");
  expect_refused_both_ways(std::string("\0\1\x08\1\0\0\0\0", 8),
                           "does not begin with two zero bytes");
  for (const int type : {0x00, 0x07, 0x09, 0x0B, 0x0F, 0xFF}) {
    expect_refused_both_ways(idx(static_cast<unsigned char>(type), {2}, 2),
                             "type code " + std::to_string(type));
  }
  expect_refused_both_ways(idx(0x08, std::vector<std::uint32_t>(9, 1), 1), "has 9 dims");
  expect_refused_both_ways(idx(0x08, std::vector<std::uint32_t>(255, 1), 1), "has 255 dims");
}

// Sizes that multiply beyond 64 bits, or beyond what the file can hold, are never allocated.
TEST(Idx, SizesBeyondTheFile) {
  const std::uint32_t most = 0xFFFFFFFF;
  const std::uint64_t peak = cpu_allocator().stats().allocated_peak;
  expect_refused_both_ways(idx(0x08, {most, most, most}, 0), "");
  expect_refused_both_ways(idx(0x0E, {most, 0x40000000}, 0), "");
  expect_refused_both_ways(idx(0x08, {0x10000, 0x10000, 0x10000, 0x10000}, 0), "");
  expect_refused_both_ways(idx(0x08, {0, most, most, most}, 0), "");
  expect_refused_both_ways(idx(0x0E, {most}, 100), "");
  expect_refused(idx(0x0E, {100'000}, 100), "is cut short");
  EXPECT_LE(cpu_allocator().stats().allocated_peak, peak + 4096);
}

TEST(Idx, DamagedGzip) {
  const std::string packed = gzip(idx(0x08, {3, 40}, 120));
  const Folder folder;
  for (std::size_t at = 2; at < packed.size(); ++at) {
    std::string bytes = packed;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    write_file(folder / "x", bytes);
    try {
      const Tensor t = read_idx(folder / "x");  // name, time and system are not checked by anyone
      EXPECT_TRUE(at < 10) << at;
      EXPECT_EQ(t.numel(), 120);
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(folder / "x"), std::string::npos) << e.what();
    }
  }
  std::string crc = packed;
  crc[crc.size() - 8] = static_cast<char>(crc[crc.size() - 8] ^ 1);
  expect_refused(crc, "is damaged");
}

TEST(Idx, NotAPlainFile) {
  const Folder folder;
  expect_error([&] { read_idx(folder / "missing"); },
               {folder / "missing", "No such file", "idx_test.cpp:"});
  expect_error([&] { read_idx(folder / "."); }, {"not a plain file", "idx_test.cpp:"});
}

// --- MNIST: four such files
// -----------------------------------------------------------------------

void write_mnist(const Folder& folder,
                 const Tensor& images,
                 const Tensor& labels,
                 const char* end = "") {
  write_idx(images, folder / (str("train-images-idx3-ubyte", end)));
  write_idx(labels, folder / (str("train-labels-idx1-ubyte", end)));
}

TEST(Mnist, ReadsPlainAndGzipped) {
  for (const char* end : {"", ".gz"}) {
    const Folder folder;
    const Tensor images = sample({5, 28, 28}, 1, 0, 256).to(kUInt8);
    write_mnist(folder, images, tensor({3, 0, 9, 1, 1}, kUInt8), end);
    data::datasets::MNIST set(folder / ".");
    EXPECT_TRUE(set.is_train());
    EXPECT_EQ(set.size(), 5U);
    EXPECT_TRUE(set.get(2).data.sizes() == IntArrayRef({1, 28, 28}));
    EXPECT_EQ(set.get(2).target.item().to_int(), 9);
    EXPECT_EQ(set.get(2).target.dim(), 0);
    EXPECT_EQ(set.targets().dtype(), kInt64);
    expect_close(set.images().squeeze(1).to(kFloat64), images.to(kFloat64) / 255, 1e-6);
    expect_error([&] { data::datasets::MNIST(folder / ".", data::datasets::MNIST::Mode::kTest); },
                 {"t10k-images-idx3-ubyte", "idx_test.cpp:"});
  }
}

TEST(Mnist, FilesThatDoNotFit) {
  const Folder folder;
  const Tensor images = zeros({3, 28, 28}, kUInt8);
  const auto refused = [&](const Tensor& i, const Tensor& l, const std::vector<std::string>& says) {
    write_mnist(folder, i, l);
    expect_error([&] { data::datasets::MNIST(folder / "."); }, says);
  };
  const std::string labels_file = folder / "./train-labels-idx1-ubyte",
                    images_file = folder / "./train-images-idx3-ubyte";
  refused(images, zeros({2}, kUInt8), {labels_file, "(2)", "3 images", "idx_test.cpp:"});
  refused(images, zeros({4}, kUInt8), {labels_file, "(4)", "3 images"});
  refused(images, zeros({3, 1}, kUInt8), {labels_file, "(3, 1)"});
  refused(images, zeros({3}, kInt32), {labels_file, "i32"});
  refused(images, tensor({0, 10, 9}, kUInt8), {labels_file, "10", "label"});
  refused(images, tensor({0, 255, 9}, kUInt8), {labels_file, "255", "label"});
  refused(zeros({3, 28}, kUInt8), zeros({3}, kUInt8), {images_file, "(3, 28)"});
  refused(zeros({3, 28, 28}), zeros({3}, kUInt8), {images_file, "f32"});
}

}  // namespace
}  // namespace taper::testing
