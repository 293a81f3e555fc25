// Reads, maps and replaces whole files.
#include "taper/core/base/file.h"

#include <atomic>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "taper/core/base/error.h"

namespace taper {

// Without O_NONBLOCK a FIFO would wait for its writer.
File::File(const std::string& path)
    : path_(path), fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  TAPER_CHECK(fd_ >= 0, "cannot open ", path, ": ", std::strerror(errno));
  struct stat s {};
  const bool plain = fstat(fd_, &s) == 0 && S_ISREG(s.st_mode);
  if (!plain) close(fd_);
  TAPER_CHECK(plain, path, " is not a plain file");
  size_ = static_cast<std::uint64_t>(s.st_size);
}

File::~File() {
  close(fd_);
}

void File::read_at(std::uint64_t offset, void* out, std::size_t bytes) const {
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t n =
        pread(fd_, static_cast<char*>(out) + done, bytes - done, static_cast<off_t>(offset + done));
    TAPER_CHECK(n > 0, "cannot read ", path_, ": ",
                n == 0 ? "it became shorter" : std::strerror(errno));
    done += static_cast<std::size_t>(n);
  }
}

void* File::map() const {
  void* p = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd_, 0);
  TAPER_CHECK(p != MAP_FAILED, "cannot map ", path_, ": ", std::strerror(errno));
  return p;
}

namespace {

// A name of its own for each writer: ranks and threads may save to one target.
std::string part_of(const std::string& target) {
  static std::atomic<unsigned> count{0};
  return str(target, ".", getpid(), ".", count++, ".part");
}

}  // namespace

Replacement::Replacement(const std::string& target)
    : target_(target), path_(part_of(target)), file_(std::fopen(path_.c_str(), "wbxe")) {
  TAPER_CHECK(file_ != nullptr, "cannot write ", target_, ": ", std::strerror(errno));
}

Replacement::~Replacement() {
  if (file_ != nullptr) std::fclose(file_);
  if (!renamed_) std::remove(path_.c_str());
}

void Replacement::write(const void* data, std::size_t bytes) {
  TAPER_CHECK(bytes == 0 || std::fwrite(data, 1, bytes, file_) == bytes, "cannot write ", target_,
              ": ", std::strerror(errno));
}

// The bytes are on the disk before the name points to them.
void Replacement::finish() {
  TAPER_CHECK(std::fflush(file_) == 0 && fsync(fileno(file_)) == 0, "cannot write ", target_, ": ",
              std::strerror(errno));
  renamed_ = std::rename(path_.c_str(), target_.c_str()) == 0;
  TAPER_CHECK(renamed_, "cannot rename ", path_, " to ", target_, ": ", std::strerror(errno));
}

}  // namespace taper
