// Reads a file piece by piece.
#include "taper/tools/alloc/trace_input.h"

#include <algorithm>
#include <cstring>

#include "taper/core/base/file.h"

namespace taper::tools {
namespace {

constexpr std::size_t kWindow = std::size_t{256} << 10;
constexpr std::size_t kLongestLine = 4096;
constexpr std::uint64_t kMostDescribed = std::uint64_t{64} << 20;

}  // namespace

TraceInput::TraceInput(const std::string& path)
    : name_(path),
      file_(std::make_unique<File>(path)),
      window_(std::make_unique<unsigned char[]>(kWindow)) {
  size_ = file_->size();
}

TraceInput::TraceInput(const void* data, std::size_t bytes, std::string name)
    : name_(std::move(name)),
      size_(bytes),
      window_end_(bytes),
      at_(static_cast<const unsigned char*>(data)),
      end_(at_ + bytes) {}

TraceInput::~TraceInput() = default;

void TraceInput::refill(std::size_t least) {
  if (remaining() < least)
    refuse_at(size_, str("the file ends where ", least, " more bytes are expected"));
  const auto kept = static_cast<std::size_t>(end_ - at_);
  if (kept > 0) std::memmove(window_.get(), at_, kept);
  const std::size_t n =
      static_cast<std::size_t>(std::min<std::uint64_t>(kWindow - kept, size_ - window_end_));
  file_->read_at(window_end_, window_.get() + kept, n);
  window_end_ += n;
  at_ = window_.get();
  end_ = at_ + kept + n;
}

std::string_view TraceInput::peek(std::size_t bytes) {
  const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, size_));
  const unsigned char* p = take(n);
  at_ -= n;
  return {reinterpret_cast<const char*>(p), n};
}

std::string TraceInput::text(std::uint64_t bytes) {
  if (bytes > remaining())
    refuse(str("a text of ", bytes, " bytes where ", remaining(), " remain"));
  std::string out;
  out.reserve(bytes);
  while (out.size() < bytes) {
    const std::size_t n =
        static_cast<std::size_t>(std::min<std::uint64_t>(bytes - out.size(), kLongestLine));
    out.append(reinterpret_cast<const char*>(take(n)), n);
  }
  return out;
}

void TraceInput::skip(std::uint64_t bytes) {
  if (bytes > remaining()) refuse(str(bytes, " bytes of data where ", remaining(), " remain"));
  while (bytes > 0) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, kLongestLine));
    take(n);
    bytes -= n;
  }
}

bool TraceInput::line(std::string_view& out) {
  if (remaining() == 0) return false;
  ++line_;
  if (end_ == at_) refill(1);
  const auto* found = static_cast<const unsigned char*>(
      std::memchr(at_, '\n', static_cast<std::size_t>(end_ - at_)));
  if (found == nullptr && window_end_ < size_) {
    refill(std::min<std::uint64_t>(remaining(), kLongestLine + 1));
    found = static_cast<const unsigned char*>(
        std::memchr(at_, '\n', static_cast<std::size_t>(end_ - at_)));
  }
  std::size_t n = static_cast<std::size_t>((found != nullptr ? found : end_) - at_);
  if (n > kLongestLine) refuse(str("a line is longer than ", kLongestLine, " bytes"));
  out = {reinterpret_cast<const char*>(at_), n};
  at_ += n + (found != nullptr ? 1 : 0);
  if (!out.empty() && out.back() == '\r') out.remove_suffix(1);
  return true;
}

void TraceInput::charge(std::uint64_t bytes) {
  charged_ += bytes;
  if (charged_ > kMostDescribed + size_)
    refuse(str("its sites and texts take more than ", kMostDescribed + size_, " bytes"));
}

void TraceInput::refuse(const std::string& problem) const {
  if (line_ > 0) throw TraceFileError(name_, "line", line_, problem);
  refuse_at(offset(), problem);
}

void TraceInput::refuse_at(std::uint64_t byte, const std::string& problem) const {
  throw TraceFileError(name_, "byte", byte, problem);
}

std::string shown(std::string_view text) {
  std::string out = "'" + std::string(text.substr(0, 80)) + (text.size() > 80 ? "...'" : "'");
  for (char& c : out) c = c < ' ' || c > '~' ? '?' : c;
  return out;
}

}  // namespace taper::tools
