// Whole files: reading plain ones that may change meanwhile, and replacing them all or not at all.
#pragma once
#include <cstdint>
#include <cstdio>
#include <string>

namespace taper {

// An open plain file. Everything throws Error that names the file.
class File {
 public:
  explicit File(const std::string& path);
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  std::uint64_t size() const { return size_; }  // when it was opened

  // Fills `out`, or throws if the file has become shorter.
  void read_at(std::uint64_t offset, void* out, std::size_t bytes) const;

  // A private mapping of all of it, for munmap(data, size()): writes stay in this process.
  void* map() const;

 private:
  std::string path_;
  int fd_;
  std::uint64_t size_ = 0;
};

// Writes beside the target; finish() gives it the name. Without, the target stays as it was, and
// nothing lies beside it.
class Replacement {
 public:
  explicit Replacement(const std::string& target);
  ~Replacement();
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  void write(const void* data, std::size_t bytes);
  void finish();

 private:
  std::string target_, path_;
  std::FILE* file_;
  bool renamed_ = false;
};

}  // namespace taper
