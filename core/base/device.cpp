// Reads and writes device names.
#include "taper/core/base/device.h"

#include "taper/core/base/error.h"

namespace taper {

Device::Device(const std::string& name) : Device(kCPU) {
  const auto colon = name.find(':');
  const std::string kind = name.substr(0, colon);
  TAPER_CHECK(kind == "cpu" || kind == "cuda" || kind == "meta", "no device is called '", name,
              "'; expected cpu, cuda, cuda:N or meta");
  type_ = kind == "cpu" ? kCPU : kind == "cuda" ? kCUDA : kMeta;
  if (colon == std::string::npos) return;
  const std::string digits = name.substr(colon + 1);
  const bool number = !digits.empty() && digits.size() <= 2 &&
                      digits.find_first_not_of("0123456789") == std::string::npos;
  TAPER_CHECK(number, "device '", name, "': the index must be a number from 0 to 99");
  index_ = static_cast<std::uint8_t>(std::stoi(digits));
}

std::string Device::str() const {
  if (type_ == kCPU) return "cpu";
  if (type_ == kMeta) return "meta";
  return "cuda:" + std::to_string(index_);
}

void Device::fail_index(int index) {
  fail(taper::str("Device: the index must be a number from 0 to 99, got ", index));
}

void append(std::string& out, Device device) {
  out += device.str();
}

}  // namespace taper
