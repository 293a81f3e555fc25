// The datasets that Taper knows: rows of tensors, MNIST's kin, and drawn glyphs.
#include <cmath>
#include <cstdlib>
#include <exception>

#include <sys/stat.h>

#include "taper/autograd/ops/create.h"
#include "taper/autograd/ops/index.h"
#include "taper/autograd/ops/random.h"
#include "taper/data/dataset.h"
#include "taper/data/idx.h"

namespace taper::data::detail {

void fail_example(std::size_t index) {
  const std::string at = str("example ", index, ": ");
  try {
    throw;
  } catch (const Error& e) {
    const std::string op = e.op().empty() ? "" : e.op() + ": ";
    std::throw_with_nested(Error(at + op + e.message(), "", e.loc(), e.scope()));
  } catch (const std::exception& e) {
    std::throw_with_nested(Error(at + e.what(), "", {}, ""));
  } catch (...) {
    std::throw_with_nested(Error(at + "an unknown exception", "", {}, ""));
  }
}

}  // namespace taper::data::detail

namespace taper::data::datasets {
namespace {

bool exists(const std::string& path) {
  struct stat s {};
  return stat(path.c_str(), &s) == 0;
}

Tensor index_tensor(ArrayRef<std::size_t> indices) {
  const Tensor t = empty({static_cast<std::int64_t>(indices.size())}, kInt64);
  auto* p = static_cast<std::int64_t*>(t.data_ptr());
  for (const std::size_t i : indices) *p++ = static_cast<std::int64_t>(i);
  return t;
}

Example<> rows(const Tensor& data, const Tensor& targets, ArrayRef<std::size_t> indices) {
  const Tensor index = index_tensor(indices);
  return {data.index_select(0, index.to(data.device())),
          targets.index_select(0, index.to(targets.device()))};
}

std::string plain_or_gzipped(const std::string& path) {
  return exists(path) || !exists(path + ".gz") ? path : path + ".gz";
}

}  // namespace

TensorDataset::TensorDataset(Tensor data, Tensor targets)
    : data_(std::move(data)), targets_(std::move(targets)) {
  TAPER_CHECK(data_.dim() > 0 && targets_.dim() > 0 && data_.size(0) == targets_.size(0),
              "TensorDataset: data ", data_.sizes(), " and targets ", targets_.sizes(),
              " must have as many rows");
}

Example<> TensorDataset::stacked(ArrayRef<std::size_t> indices) const {
  return rows(data_, targets_, indices);
}

MNIST::MNIST(const std::string& root, Mode mode, Loc loc) : mode_(mode) {
  const Call call(loc);
  const std::string prefix = root + (mode == Mode::kTrain ? "/train-" : "/t10k-");
  const std::string images_file = plain_or_gzipped(prefix + "images-idx3-ubyte");
  const std::string labels_file = plain_or_gzipped(prefix + "labels-idx1-ubyte");
  const Tensor images = read_idx(images_file), labels = read_idx(labels_file);
  TAPER_CHECK(images.dtype() == kUInt8 && images.dim() == 3, "MNIST: ", images_file, " holds ",
              images.dtype(), " ", images.sizes(), "; expected u8 (N, H, W)");
  TAPER_CHECK(labels.dtype() == kUInt8 && labels.dim() == 1 && labels.size(0) == images.size(0),
              "MNIST: ", labels_file, " holds ", labels.dtype(), " ", labels.sizes(), " for ",
              images.size(0), " images");
  const auto* label = labels.data_ptr<std::uint8_t>();
  for (std::int64_t i = 0; i < labels.size(0); ++i) {
    TAPER_CHECK(label[i] < 10, "MNIST: ", labels_file, " holds the label ", label[i], " at ", i,
                "; there are ten classes, 0 to 9");
  }
  images_ = images.to(kFloat32).div_(255).unsqueeze(1);
  targets_ = labels.to(kInt64);
}

Example<> MNIST::get(std::size_t index) {
  const auto i = static_cast<std::int64_t>(index);
  return {images_.select(0, i), targets_.select(0, i)};
}

Example<> MNIST::stacked(ArrayRef<std::size_t> indices) const {
  return rows(images_, targets_, indices);
}

std::string find_fashion_mnist() {
  const char* chosen = std::getenv("TAPER_DATA");
  const std::string package = "/usr/share/datasets/fashion-mnist";
  if (chosen != nullptr) return chosen;
  return exists(package + "/train-images-idx3-ubyte.gz") ? package : "";
}

namespace {

// How dark class `c` is at (x, y) of the square [-1, 1]^2: the distance to a drawn shape.
double distance_to_glyph(int c, double x, double y) {
  const double ring = std::abs(std::hypot(x, y) - 0.7);
  const auto bar = [](double d, double along) { return std::abs(along) > 0.8 ? 1 : std::abs(d); };
  const double across = bar(y, x), down = bar(x, y);
  const double rising = bar((x - y) * 0.7, (x + y) * 0.7),
               falling = bar((x + y) * 0.7, (x - y) * 0.7);
  const double box = std::abs(std::max(std::abs(x), std::abs(y)) - 0.7);
  switch (c) {
    case 0: return ring;
    case 1: return down;
    case 2: return across;
    case 3: return rising;
    case 4: return falling;
    case 5: return std::min(across, down);
    case 6: return std::min(rising, falling);
    case 7: return box;
    case 8: return std::min(ring, across);
    default: return std::min(box, down);
  }
}

}  // namespace

TensorDataset glyphs(std::int64_t count, std::uint64_t seed) {
  constexpr std::int64_t kSide = 28;
  const Generator generator(seed);
  const Tensor targets = randint(0, 10, {count}, generator, kInt64);
  const Tensor places = rand({count, 4}, generator, kFloat64);
  const Tensor noise = rand({count, 1, kSide, kSide}, generator, kFloat32);
  const Tensor data = empty({count, 1, kSide, kSide}, kFloat32);
  const auto* label = targets.data_ptr<std::int64_t>();
  const auto* place = places.data_ptr<double>();
  const auto* grain = noise.data_ptr<float>();
  auto* pixel = data.data_ptr<float>();
  for (std::int64_t i = 0; i < count; ++i, place += 4) {
    const double scale = 0.7 + 0.5 * place[0], turn = (place[3] - 0.5) * 0.5;
    const double dx = (place[1] - 0.5) * 0.5, dy = (place[2] - 0.5) * 0.5;
    for (std::int64_t p = 0; p < kSide * kSide; ++p, ++pixel, ++grain) {
      const double u = static_cast<double>(p % kSide) / 13.5 - 1 - dx;
      const double v = static_cast<double>(p / kSide) / 13.5 - 1 - dy;
      const double x = (std::cos(turn) * u + std::sin(turn) * v) * scale;
      const double y = (std::cos(turn) * v - std::sin(turn) * u) * scale;
      const double d = distance_to_glyph(static_cast<int>(label[i]), x, y);
      const double ink = d < 0.1 ? 1 : d < 0.2 ? (0.2 - d) * 10 : 0;
      *pixel = static_cast<float>(0.75 * ink) + 0.25F * *grain;
    }
  }
  return {data, targets};
}

}  // namespace taper::data::datasets
