// Writes a new file and lets it take the place of the old one.
#include "taper/allocator/snapshot_file.h"

#include <atomic>
#include <cerrno>
#include <cstring>

#include <unistd.h>

#include "taper/core/base/error.h"

namespace taper {
namespace {

// A name of its own for each writer: ranks and threads may write to one target.
std::string part_of(const std::string& target) {
  static std::atomic<unsigned> count{0};
  return str(target, ".", getpid(), ".", count++, ".part");
}

}  // namespace

SnapshotFile::SnapshotFile(const std::string& target)
    : target_(target), path_(part_of(target)), file_(std::fopen(path_.c_str(), "wbxe")) {
  if (file_ == nullptr) refuse();
}

SnapshotFile::~SnapshotFile() {
  if (file_ != nullptr) std::fclose(file_);
  if (!renamed_) std::remove(path_.c_str());
}

void SnapshotFile::refuse() {
  fail(str("cannot write ", target_, ": ", std::strerror(errno)));
}

void SnapshotFile::flush() {
  if (std::fwrite(buffer_.data(), 1, buffer_.size(), file_) != buffer_.size()) refuse();
  buffer_.clear();
}

// The bytes are on the disk before the name points to them.
void SnapshotFile::finish() {
  flush();
  if (std::fflush(file_) != 0 || fsync(fileno(file_)) != 0) refuse();
  renamed_ = std::rename(path_.c_str(), target_.c_str()) == 0;
  if (!renamed_) refuse();
}

}  // namespace taper
