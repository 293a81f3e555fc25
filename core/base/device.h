// Where memory lies and work runs: the CPU, a CUDA device, or "meta", which has shapes but no
// bytes.
#pragma once
#include <cstdint>
#include <iosfwd>
#include <string>

namespace taper {

// LibTorch's names stand beside ours.
enum class DeviceType : std::uint8_t {
  kCPU,
  kCUDA,
  kMeta,
  CPU = kCPU,    // NOLINT(readability-identifier-naming)
  CUDA = kCUDA,  // NOLINT(readability-identifier-naming)
  Meta = kMeta,  // NOLINT(readability-identifier-naming)
};

inline constexpr DeviceType kCPU = DeviceType::kCPU;
inline constexpr DeviceType kCUDA = DeviceType::kCUDA;
inline constexpr DeviceType kMeta = DeviceType::kMeta;

class Device {
 public:
  // Implicit, as in LibTorch: x.to(kCUDA). Throws unless the index is from 0 to 99.
  constexpr Device(DeviceType type = kCPU, int index = 0)  // NOLINT(google-explicit-constructor)
      : type_(type), index_(static_cast<std::uint8_t>(index)) {
    if (index < 0 || index > 99) fail_index(index);
  }

  // "cpu", "cuda", "cuda:1", "meta", the same indices; anything else throws.
  Device(const std::string& name);  // NOLINT(google-explicit-constructor)

  Device(const char* name) : Device(std::string(name)) {}  // NOLINT(google-explicit-constructor)

  constexpr DeviceType type() const { return type_; }

  constexpr int index() const { return index_; }

  constexpr bool is_cpu() const { return type_ == kCPU; }

  constexpr bool is_cuda() const { return type_ == kCUDA; }

  constexpr bool is_meta() const { return type_ == kMeta; }

  std::string str() const;

  friend constexpr bool operator==(Device a, Device b) {
    return a.type_ == b.type_ && a.index_ == b.index_;
  }

 private:
  friend struct DebugLayout;  // tells debuggers where things lie

  [[noreturn]] static void fail_index(int index);

  DeviceType type_;
  std::uint8_t index_;
};

void append(std::string& out, Device device);

// "cpu", "cuda:0"; a type without an index "cuda", as LibTorch prints them.
std::ostream& operator<<(std::ostream& out, Device device);
std::ostream& operator<<(std::ostream& out, DeviceType type);

}  // namespace taper
