// How a snapshot's bytes get to the disk: buffered, and all of them or none.
#pragma once
#include <cstdio>
#include <string>
#include <string_view>

namespace taper {

// Writes beside the target; finish() gives it the name. Without, the target stays as it was and
// nothing lies beside it. Everything throws Error that names the file.
class SnapshotFile {
 public:
  explicit SnapshotFile(const std::string& target);
  ~SnapshotFile();
  SnapshotFile(const SnapshotFile&) = delete;
  SnapshotFile& operator=(const SnapshotFile&) = delete;

  void byte(unsigned char b) {
    if (buffer_.size() >= kBuffer) flush();
    buffer_ += static_cast<char>(b);
  }

  void put(std::string_view bytes) {
    if (buffer_.size() >= kBuffer) flush();
    buffer_ += bytes;
  }

  void finish();

 private:
  static constexpr std::size_t kBuffer = std::size_t{64} << 10;

  void flush();
  [[noreturn]] void refuse();

  std::string target_, path_, buffer_;
  std::FILE* file_;
  bool renamed_ = false;
};

}  // namespace taper
