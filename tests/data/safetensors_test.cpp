// safetensors: what is read and written, byte for byte.
#include "taper/data/safetensors.h"

#include <csignal>
#include <random>
#include <thread>

#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "taper/autograd/ops/create.h"
#include "taper/autograd/ops/shape.h"
#include "taper/tests/data/files.h"
#include "taper/tests/data/safetensors_bytes.h"
#include "taper/tests/fuzz/fuzz.h"
#include "taper/tests/message_of.h"

namespace taper::testing {
namespace {

using data::read_safetensors;
using data::write_safetensors;
using Named = OrderedDict<std::string, Tensor>;

constexpr DType kAll[] = {kFloat64, kFloat32, kFloat16, kBFloat16, kInt64, kInt32, kUInt8, kBool};

data::SafeTensors read_bytes(const std::string& bytes) {
  const Folder folder;
  write_file(folder / "x.safetensors", bytes);
  return read_safetensors(folder / "x.safetensors");
}

// A tensor whose elements are these bits.
Tensor of_bits(IntArrayRef sizes, DType dtype, unsigned seed) {
  Tensor t = empty(sizes, dtype);
  std::minstd_rand random(seed);
  auto* p = static_cast<unsigned char*>(t.data_ptr());
  for (std::size_t i = 0; i < t.nbytes(); ++i) {
    p[i] = static_cast<unsigned char>(dtype == kBool ? random() % 2 : random() % 256);
  }
  return t;
}

Named one_of_each() {
  Named all;
  unsigned seed = 1;
  for (const DType dtype : kAll) {
    all.insert(str("scalar.", dtype), of_bits({}, dtype, seed++));
    all.insert(str("weight.", dtype), of_bits({3, 5}, dtype, seed++));
    all.insert(str("empty.", dtype), of_bits({0, 4}, dtype, seed++));
  }
  return all;
}

void expect_same(const Named& got, const Named& want) {
  EXPECT_EQ(got.size(), want.size());
  for (const auto& item : want) {
    const Tensor* t = got.find(item.key());
    ASSERT_NE(t, nullptr) << item.key();
    EXPECT_EQ(t->dtype(), item.value().dtype()) << item.key();
    EXPECT_TRUE(t->sizes() == item.value().sizes()) << item.key() << str(t->sizes());
    EXPECT_EQ(bytes_of(*t), bytes_of(item.value())) << item.key();
  }
}

nlohmann::json header_of(const std::string& bytes) {
  std::uint64_t n = 0;
  for (int i = 7; i >= 0; --i)
    n = n << 8 | static_cast<unsigned char>(bytes.at(static_cast<std::size_t>(i)));
  return nlohmann::json::parse(bytes.substr(8, n));
}

TEST(SafeTensors, EmptyFileOfTwoBraces) {
  const auto read = read_bytes(file_of("{}"));
  EXPECT_EQ(read.tensors.size(), 0U);
  EXPECT_TRUE(read.metadata.empty());
}

TEST(SafeTensors, SpacesAroundTheHeader) {
  const std::string header = object(member("a", "U8", "[ 3 ]", "[ 0,\t3 ]"));
  for (const std::string& text : {header + "      ", "   " + header, " \t\r\n" + header + "\n"}) {
    EXPECT_EQ(bytes_of(read_bytes(file_of(text, 3)).tensors["a"]), std::string("\0\1\2", 3));
  }
}

TEST(SafeTensors, Scalar) {
  const Tensor t = read_bytes(file_of(object(member("a", "U8", "[]", "[0,1]")), 1)).tensors["a"];
  EXPECT_EQ(t.dim(), 0);
  EXPECT_EQ(t.numel(), 1);
}

TEST(SafeTensors, EmptyTensors) {
  const auto read = read_bytes(file_of(
      object(member("a", "F32", "[0]", "[0,0]") + "," + member("b", "I64", "[2,0,3]", "[0,0]") +
             "," + member("c", "U8", "[2]", "[0,2]") + "," + member("d", "F32", "[4,0]", "[2,2]")),
      2));
  EXPECT_EQ(read.tensors.size(), 4U);
  EXPECT_TRUE(read.tensors["b"].sizes() == IntArrayRef({2, 0, 3}));
  EXPECT_EQ(read.tensors["d"].dtype(), kFloat32);
  EXPECT_EQ(bytes_of(read.tensors["c"]), std::string("\0\1", 2));
}

// Members of the header may stand in any order, and their fields too; the bytes decide.
TEST(SafeTensors, AnyOrder) {
  const auto read =
      read_bytes(file_of("{\"b\":{\"data_offsets\":[2,4],\"shape\":[2],\"dtype\":\"U8\"}," +
                             member("a", "U8", "[2]", "[0,2]") + ",\"__metadata__\":{\"k\":\"v\"}}",
                         4));
  EXPECT_EQ(read.tensors.keys(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(bytes_of(read.tensors["b"]), std::string("\2\3"));
  EXPECT_EQ(read.metadata, (data::Metadata{{"k", "v"}}));
}

TEST(SafeTensors, EscapedNames) {
  const auto read =
      read_bytes(file_of(object(member("\\u00e9\\ud83d\\ude00/\\\"", "U8", "[1]", "[0,1]")), 1));
  EXPECT_EQ(read.tensors.keys()[0], "\xc3\xa9\xf0\x9f\x98\x80/\"");
}

// Elements that do not lie at a multiple of their size are copied to where they do.
TEST(SafeTensors, Unaligned) {
  for (std::size_t pad = 0; pad < 8; ++pad) {
    const std::string header = object(member("a", "F64", "[3]", "[0,24]")) + std::string(pad, ' ');
    const std::string bytes = file_of(header, 24);
    const Tensor t = read_bytes(bytes).tensors["a"];
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(t.data_ptr()) % 8, 0U);
    EXPECT_EQ(bytes_of(t), bytes.substr(8 + header.size()));
  }
}

TEST(SafeTensors, EveryDtypeBitForBit) {
  const Folder folder;
  Named all = one_of_each();
  const Tensor nan = empty({2}, kFloat32);
  nan.data_ptr<float>()[0] = std::bit_cast<float>(0x7FA12345U);
  nan.data_ptr<float>()[1] = std::bit_cast<float>(0xFFC00001U);
  all.insert("nan", nan);
  write_safetensors(all, folder / "x.safetensors", {{"k", "v\n\"\\\xc3\xa9"}, {"", ""}});
  const auto read = read_safetensors(folder / "x.safetensors");
  expect_same(read.tensors, all);
  EXPECT_EQ(read.metadata, (data::Metadata{{"", ""}, {"k", "v\n\"\\\xc3\xa9"}}));
  write_safetensors(read.tensors, folder / "again.safetensors", read.metadata);
  EXPECT_EQ(read_file(folder / "again.safetensors"), read_file(folder / "x.safetensors"));
}

TEST(SafeTensors, WriterSortsAndAligns) {
  const Folder folder;
  Named all;
  all.insert("b", of_bits({3}, kUInt8, 1));
  all.insert("z", of_bits({3}, kFloat64, 2));
  all.insert("c", of_bits({3}, kBFloat16, 3));
  all.insert("a", of_bits({5}, kBool, 4));
  all.insert("d", of_bits({1}, kInt64, 5));
  all.insert("e", of_bits({7}, kFloat32, 6));
  write_safetensors(all, folder / "x.safetensors");
  const std::string bytes = read_file(folder / "x.safetensors");
  const nlohmann::json header = header_of(bytes);
  EXPECT_EQ(bytes[8], '{');
  EXPECT_FALSE(header.contains("__metadata__"));
  const std::size_t start = bytes.size() - (8 + 24 + 28 + 6 + 5 + 3);
  EXPECT_EQ(start % 8, 0U);
  std::size_t at = 0;
  for (const char* name : {"d", "z", "e", "c", "a", "b"}) {
    EXPECT_EQ(header[name]["data_offsets"][0], at) << name;
    EXPECT_EQ((start + at) % static_cast<std::size_t>(all[name].element_size()), 0U) << name;
    EXPECT_EQ(bytes.substr(start + at, all[name].nbytes()), bytes_of(all[name])) << name;
    at = header[name]["data_offsets"][1];
  }
  EXPECT_EQ(start + at, bytes.size());
}

TEST(SafeTensors, ViewsAreWrittenAsTheyLook) {
  const Folder folder;
  const Tensor base = of_bits({4, 6}, kFloat32, 1);
  Named views;
  views.insert("t", base.t());
  views.insert("slice", base.slice(1, 1, 6, 2));
  views.insert("expanded", base.select(0, 0).unsqueeze(0).expand({3, 6}));
  views.insert("leaf", base.clone().requires_grad_());
  write_safetensors(views, folder / "x.safetensors");
  const auto read = read_safetensors(folder / "x.safetensors");
  expect_same(read.tensors, views);
  EXPECT_FALSE(read.tensors["leaf"].requires_grad());
}

// Tensors outlive what read them and the name of their file; writing to them stays in this process.
TEST(SafeTensors, TensorsKeepTheMapping) {
  const Folder folder;
  const std::string path = folder / "x.safetensors";
  Named all = one_of_each();
  write_safetensors(all, path);
  const std::string before = read_file(path);
  Tensor t = read_safetensors(path).tensors["weight.f32"];
  EXPECT_TRUE(is_mapped(path));
  t.fill_(7);
  EXPECT_EQ(read_file(path), before);
  std::filesystem::remove(path);
  EXPECT_EQ(t.sum().item().to_double(), 7 * 15);
  t = Tensor();
  EXPECT_FALSE(is_mapped(path));
}

TEST(SafeTensors, OverwritingLeavesReadersTheOldFile) {
  const Folder folder;
  const std::string path = folder / "x.safetensors";
  const Named old = one_of_each();
  write_safetensors(old, path);
  const auto read = read_safetensors(path);
  Named fresh;
  fresh.insert("only", of_bits({2}, kInt32, 9));
  write_safetensors(fresh, path);
  expect_same(read.tensors, old);
  expect_same(read_safetensors(path).tensors, fresh);
  write_safetensors(read.tensors, path);  // and from the mapping of the same name
  expect_same(read_safetensors(path).tensors, old);
  EXPECT_EQ(folder.files(), 1U);
}

// Ranks that all save to one name: the last one's file stays, whole.
TEST(SafeTensors, TwoWritersOfOneFile) {
  const Folder folder;
  const std::string path = folder / "x.safetensors";
  std::vector<std::thread> writers;
  for (int w = 1; w <= 2; ++w) {
    writers.emplace_back([&path, w] {
      Named mine;
      mine.insert("a", full({1000 * w}, w, kInt32));
      for (int i = 0; i < 50; ++i) EXPECT_NO_THROW(write_safetensors(mine, path));
    });
  }
  for (std::thread& t : writers) t.join();
  const Tensor a = read_safetensors(path).tensors["a"];
  EXPECT_EQ(a.select(0, 0).item().to_int() * 1000, a.numel());
  EXPECT_EQ(folder.files(), 1U);
}

// Whatever stops a write, the old file stays and nothing lies beside it.
TEST(SafeTensors, FailedWriteChangesNothing) {
  const Folder folder;
  const std::string path = folder / "x.safetensors";
  write_safetensors(one_of_each(), path);
  const std::string before = read_file(path);
  const auto refused = [&](const std::string& key, const Tensor& t, const std::string& target,
                           const char* says) {
    Named bad;
    bad.insert("a", of_bits({2}, kInt32, 1));
    bad.insert(key, t);
    try {
      write_safetensors(bad, target);
      FAIL() << says;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(says), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find("safetensors_test.cpp:"), std::string::npos) << e.what();
    }
    EXPECT_EQ(read_file(path), before);
  };
  const Tensor t = of_bits({2}, kInt32, 1);
  std::filesystem::create_directory(folder / "folder");
  refused("b", Tensor(), path, "undefined");
  refused("__metadata__", t, path, "reserved");
  refused("\xff", t, path, "UTF-8");
  refused("", t, path, "a tensor has no name");
  refused("a/../b", t, path, "'a/../b'");
  refused("b\n", t, path, "control character");
  refused(std::string(1 << 20, 'n'), t, path, "is longer than");
  refused("b", t, folder / "folder", "cannot rename");
  refused("b", t, folder / "missing/x", "cannot write");
  EXPECT_EQ(folder.files(), 2U);
}

// A disk that is full: here, a limit on the size of files.
TEST(SafeTensors, FullDiskChangesNothing) {
  const Folder folder;
  const std::string path = folder / "x.safetensors";
  write_safetensors(one_of_each(), path);
  const std::string before = read_file(path);
  Named big;
  big.insert("a", of_bits({100'000}, kInt32, 1));
  rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const rlimit small{20'000, old.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_THROW(write_safetensors(big, path), Error);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(read_file(path), before);
  EXPECT_EQ(folder.files(), 1U);
}

TEST(SafeTensors, LongestName) {
  const Folder folder;
  Named one;
  one.insert(std::string(1024, 'n'), of_bits({2}, kInt32, 1));
  const std::string text(60'000, 't');
  write_safetensors(one, folder / "x.safetensors", {{"k", text}});
  const auto read = read_safetensors(folder / "x.safetensors");
  expect_same(read.tensors, one);
  EXPECT_EQ(read.metadata, (data::Metadata{{"k", text}}));
  EXPECT_NE(message_of([&] {
              write_safetensors(one, folder / "x.safetensors", {{"k", "a"}, {"k", "b"}});
            }).find("there twice"),
            std::string::npos);
}

// As many as are allowed, in bearable time.
TEST(SafeTensors, MostTensors) {
  std::string text;
  for (int i = 0; i < 16'384; ++i) {
    text += (i > 0 ? "," : "") + member("layers." + std::to_string(i), "U8", "[0]", "[0,0]");
  }
  EXPECT_EQ(read_bytes(file_of(object(text))).tensors.size(), 16'384U);
}

TEST(SafeTensors, ManyTensors) {
  const Folder folder;
  Named many;
  for (int i = 0; i < 4000; ++i) many.insert(str("layers.", i), scalar_tensor(i, kInt32));
  write_safetensors(many, folder / "x.safetensors");
  expect_same(read_safetensors(folder / "x.safetensors").tensors, many);
}

// A few bytes of a good file, turned into others.
std::string mutated(std::string bytes, std::minstd_rand& random) {
  const std::string pieces[] = {"[",
                                "]",
                                "{",
                                "}",
                                "\"",
                                ",",
                                ":",
                                "-",
                                "0",
                                "9",
                                ".",
                                "e9",
                                "\\u0000",
                                "\xff",
                                "F64",
                                "BOOL",
                                "\"__metadata__\"",
                                "18446744073709551615",
                                "9223372036854775807",
                                std::string(1, '\0')};
  for (auto n = 1 + random() % 3; n > 0; --n) {
    const std::size_t at = random() % bytes.size();
    switch (random() % 6) {
      case 0: bytes[at] = static_cast<char>(bytes[at] ^ 1 << random() % 8); break;
      case 1: bytes[at] = static_cast<char>(random()); break;
      case 2: bytes.erase(at, 1 + random() % 8); break;
      case 3: bytes.insert(at, pieces[random() % std::size(pieces)]); break;
      case 4: bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 60)); break;
      default: bytes[random() % 8] = static_cast<char>(random()); break;
    }
    if (bytes.empty()) return bytes;
  }
  // Half the time the length fits again, so that what lies behind it is reached.
  if (random() % 2 == 0 && bytes.size() >= 8) {
    const std::size_t end = bytes.rfind('}');
    if (end != std::string::npos && end >= 8) bytes.replace(0, 8, length_bytes(end - 7));
  }
  return bytes;
}

TEST(SafeTensors, MutationsLoadOrThrow) {
  const Folder folder;
  const std::string path = folder / "x.safetensors";
  Named good;
  good.insert("w", of_bits({8, 8}, kFloat32, 1));
  good.insert("e", of_bits({0, 3}, kFloat64, 2));
  good.insert("n", of_bits({}, kInt64, 3));
  good.insert("flags", of_bits({5}, kBool, 4));
  write_safetensors(good, path, {{"format", "pt"}});
  const std::string bytes = read_file(path);
  const std::size_t files = open_files();
  std::minstd_rand random(1);
  int loaded = 0, refused = 0;
  for (int i = 0; i < 5000; ++i) {
    const std::string other = mutated(bytes, random);
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(other.data()), other.size());
    if (i % 16 != 0) continue;
    try {
      read_bytes(other);
      ++loaded;
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(loaded, 5);  // deep enough to be worth it
  EXPECT_GT(refused, 60);
  EXPECT_EQ(open_files(), files);
}

}  // namespace
}  // namespace taper::testing
