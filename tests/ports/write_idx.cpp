// Writes drawn glyphs as the four IDX files that MNIST reads. write_idx FOLDER
#include <string>

#include <sys/stat.h>

#include "taper/data/idx.h"
#include "taper/taper.h"

namespace {

void write(const std::string& prefix, std::int64_t count, std::uint64_t seed) {
  const auto set = taper::data::datasets::glyphs(count, seed);
  taper::data::write_idx((set.data().squeeze(1) * 255).round().to(taper::kUInt8),
                         prefix + "-images-idx3-ubyte");
  taper::data::write_idx(set.targets().to(taper::kUInt8), prefix + "-labels-idx1-ubyte");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : ".";
  mkdir(folder.c_str(), 0777);  // there already is fine
  write(folder + "/train", 3000, 1);
  write(folder + "/t10k", 500, 2);
}
