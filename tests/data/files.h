// What the tests of file formats share: a folder that goes away, whole files, and what is left
// open.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "taper/core/tensor.h"

namespace taper::testing {

// A fresh folder, removed with all in it.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "taper-data-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }

  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

  std::size_t files() const {
    std::size_t n = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(path_)) ++n;
    return n;
  }

 private:
  std::string path_;
};

// A new file: some file systems wait for the disk when an old one is cut.
inline void write_file(const std::string& path, const std::string& bytes) {
  std::filesystem::remove(path);
  std::ofstream out(path, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  ASSERT_TRUE(out.good()) << path;
}

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

// The bytes of t's elements, in row-major order.
inline std::string bytes_of(const Tensor& t) {
  const Tensor host = t.detach().cpu().contiguous();
  return std::string(static_cast<const char*>(host.data_ptr()), host.nbytes());
}

inline std::size_t open_files() {
  std::size_t n = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++n;
  return n;
}

inline bool is_mapped(const std::string& path) {
  return read_file("/proc/self/maps").find(path) != std::string::npos;
}

}  // namespace taper::testing
