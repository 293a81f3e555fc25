// How a snapshot's bytes get to the disk: gathered, since they come one by one.
#pragma once
#include <string>
#include <string_view>

#include "taper/core/base/file.h"

namespace taper {

// As Replacement: all of the file, at finish(), or none of it.
class SnapshotFile {
 public:
  explicit SnapshotFile(const std::string& target) : file_(target) {}

  void byte(unsigned char b) {
    if (buffer_.size() >= kBuffer) flush();
    buffer_ += static_cast<char>(b);
  }

  void put(std::string_view bytes) {
    if (buffer_.size() >= kBuffer) flush();
    buffer_ += bytes;
  }

  void finish() {
    flush();
    file_.finish();
  }

 private:
  static constexpr std::size_t kBuffer = std::size_t{64} << 10;

  void flush() {
    file_.write(buffer_.data(), buffer_.size());
    buffer_.clear();
  }

  Replacement file_;
  std::string buffer_;
};

}  // namespace taper
