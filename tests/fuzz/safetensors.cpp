// Fuzzes safetensors: tensors that fit into the file and can be read, or an Error that names it.
#include "taper/data/safetensors.h"

#include <cstdlib>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

#include "taper/tests/fuzz/fuzz.h"

namespace {

constexpr std::size_t kNames = 64 << 10;  // bytes that an error says beside the path

void read(const std::string& path, std::size_t bytes) {
  const taper::data::SafeTensors file = taper::data::read_safetensors(path);
  std::size_t sum = 0;
  unsigned seen = 0;
  for (const auto& item : file.tensors) {
    const taper::Tensor& t = item.value();
    const auto* p = static_cast<const unsigned char*>(t.data_ptr());
    for (std::size_t i = 0; i < t.nbytes(); ++i) seen += p[i];
    sum += t.nbytes();
  }
  asm volatile("" : : "r"(seen));
  if (sum > bytes) std::abort();
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const int file = memfd_create("fuzz", 0);
  if (file < 0 || write(file, data, bytes) != static_cast<ssize_t>(bytes)) std::abort();
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  try {
    read(path, bytes);
  } catch (const taper::Error& e) {
    const std::string text = e.what();
    if (text.find(path) == std::string::npos || text.size() > kNames) std::abort();
  } catch (...) {
    std::abort();
  }
  close(file);
  return 0;
}
