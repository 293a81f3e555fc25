// Datasets: random-access ranges of examples, and what is done to examples on their way.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/shape.h"

namespace taper::data {

template <class Data = Tensor, class Target = Tensor> struct Example {
  Data data;
  Target target;

  Example() = default;
  Example(Data d, Target t) : data(std::move(d)), target(std::move(t)) {}
};

namespace detail {

// For a catch block: throws an Error that names the example, what was caught nested in it.
[[noreturn]] void fail_example(std::size_t index);

template <class F> auto at_example(std::size_t index, const F& f) {
  try {
    return f();
  } catch (...) {
    fail_example(index);
  }
}

}  // namespace detail

namespace transforms {

// Makes one batch of many examples by stacking data and targets along a new first dim.
template <class E = Example<>> struct Stack {
  E apply_batch(std::vector<E> examples) const {
    std::vector<Tensor> data, targets;
    for (E& e : examples) {
      data.push_back(std::move(e.data));
      targets.push_back(std::move(e.target));
    }
    return {stack(data), stack(targets)};
  }
};

// (x - mean) / stddev; one number, or one per channel of x (C, ...). Integers become f32.
template <class Target = Tensor> class Normalize {
 public:
  Normalize(ArrayRef<double> mean, ArrayRef<double> stddev)
      : mean_(mean.vec()), stddev_(stddev.vec()) {
    TAPER_CHECK(mean_.size() == stddev_.size(), "Normalize: ", mean_.size(), " means but ",
                stddev_.size(), " deviations");
  }

  Example<Tensor, Target> operator()(Example<Tensor, Target> e) const {
    if (mean_.size() == 1) {
      e.data = (e.data - mean_[0]) / stddev_[0];
      return e;
    }
    Sizes shape;
    shape.push_back(static_cast<std::int64_t>(mean_.size()));
    for (std::int64_t d = 1; d < e.data.dim(); ++d) shape.push_back(1);
    const TensorOptions options =
        e.data.is_floating_point() ? e.data.options() : e.data.options().dtype(kFloat32);
    const Tensor mean = tensor(mean_, options), dev = tensor(stddev_, options);
    e.data = (e.data - mean.view(shape)) / dev.view(shape);
    return e;
  }

 private:
  std::vector<double> mean_, stddev_;
};

// Any function of one example; it may capture.
template <class In, class Out = In> class Lambda {
 public:
  template <class F> explicit Lambda(F f) : function_(std::make_shared<Held<F>>(std::move(f))) {}

  Out operator()(In e) const { return function_->call(std::move(e)); }

 private:
  struct Function {
    virtual ~Function() = default;
    virtual Out call(In e) = 0;
  };

  template <class F> struct Held final : Function {
    explicit Held(F held) : f(std::move(held)) {}
    Out call(In e) override { return f(std::move(e)); }
    F f;
  };

  std::shared_ptr<Function> function_;
};

}  // namespace transforms

template <class T, class E>
concept Collation = requires(const T& t, std::vector<E> examples) {
  t.apply_batch(examples);
};

// A dataset that can make a stacked batch by itself, better than example by example.
template <class Source>
concept Stacks = requires(Source& s) {
  s.stacked(ArrayRef<std::size_t>());
};

// A dataset seen through a transform: of each example, or (Stack) of a batch.
template <class Source, class Transform> class MapDataset;

// Base of datasets by LibTorch's pattern: derive, override get(index) and size().
template <class Self, class E = Example<>> class Dataset {
 public:
  using ExampleType = E;
  using BatchType = std::vector<E>;

  virtual ~Dataset() = default;
  virtual E get(std::size_t index) = 0;
  virtual std::optional<std::size_t> size() const = 0;

  std::vector<E> get_batch(ArrayRef<std::size_t> indices) {
    std::vector<E> out;
    out.reserve(indices.size());
    for (const std::size_t i : indices) {
      out.push_back(detail::at_example(i, [&] { return static_cast<Self&>(*this).get(i); }));
    }
    return out;
  }

  template <class Transform> MapDataset<Self, Transform> map(Transform t) && {
    return {std::move(static_cast<Self&>(*this)), std::move(t)};
  }

  template <class Transform> MapDataset<Self, Transform> map(Transform t) & {
    return {static_cast<Self&>(*this), std::move(t)};
  }
};

template <class Source, class Transform> class MapDataset {
 public:
  using In = typename Source::ExampleType;
  static constexpr bool kCollates = Collation<Transform, In>;

  MapDataset(Source source, Transform transform)
      : source_(std::move(source)), transform_(std::move(transform)) {}

  auto get_batch(ArrayRef<std::size_t> indices) {
    if constexpr (std::is_same_v<Transform, transforms::Stack<In>> && Stacks<Source>) {
      return source_.stacked(indices);
    } else {
      return transformed(source_.get_batch(indices), indices);
    }
  }

  auto get(std::size_t i) requires(!kCollates) { return transform_(source_.get(i)); }

  auto size() const { return source_.size(); }

  template <class T> MapDataset<MapDataset, T> map(T t) && {
    return {std::move(*this), std::move(t)};
  }

  template <class T> MapDataset<MapDataset, T> map(T t) & { return {*this, std::move(t)}; }

  Source& dataset() { return source_; }

 private:
  auto transformed(std::vector<In> in, [[maybe_unused]] ArrayRef<std::size_t> indices) {
    if constexpr (kCollates) {
      return transform_.apply_batch(std::move(in));
    } else {
      std::vector<decltype(transform_(std::declval<In>()))> out;
      out.reserve(in.size());
      for (std::size_t k = 0; k < in.size(); ++k) {
        out.push_back(detail::at_example(k < indices.size() ? indices[k] : k,
                                         [&] { return transform_(std::move(in[k])); }));
      }
      return out;
    }
  }

  static auto example_type() {
    if constexpr (kCollates) return std::type_identity<In>{};
    else return std::type_identity<decltype(std::declval<Transform>()(std::declval<In>()))>{};
  }

  Source source_;
  Transform transform_;

 public:
  using ExampleType = typename decltype(example_type())::type;
};

// Any random-access range (a vector of examples, say) as a dataset.
template <class Range> class RangeDataset {
 public:
  using ExampleType = std::decay_t<decltype(std::declval<Range&>()[0])>;

  explicit RangeDataset(Range range) : range_(std::move(range)) {}

  ExampleType get(std::size_t i) {
    TAPER_CHECK(i < size(), "index ", i, " lies beyond the ", size(), " examples");
    return range_[i];
  }

  std::vector<ExampleType> get_batch(ArrayRef<std::size_t> indices) {
    std::vector<ExampleType> out;
    out.reserve(indices.size());
    for (const std::size_t i : indices)
      out.push_back(detail::at_example(i, [&] { return get(i); }));
    return out;
  }

  std::size_t size() const { return range_.size(); }

 private:
  Range range_;
};

namespace datasets {

template <class Self, class E = Example<>> using Dataset = data::Dataset<Self, E>;

// Rows of two tensors whose first dims agree.
class TensorDataset : public data::Dataset<TensorDataset> {
 public:
  TensorDataset(Tensor data, Tensor targets);

  Example<> get(std::size_t index) override { return {row(data_, index), row(targets_, index)}; }

  // One index_select of each tensor.
  Example<> stacked(ArrayRef<std::size_t> indices) const;

  std::optional<std::size_t> size() const override {
    return static_cast<std::size_t>(data_.size(0));
  }

  const Tensor& data() const { return data_; }

  const Tensor& targets() const { return targets_; }

 private:
  static Tensor row(const Tensor& t, std::size_t i) {
    return t.select(0, static_cast<std::int64_t>(i));
  }

  Tensor data_, targets_;
};

// 28 x 28 images of ten classes, as data (1, 28, 28) in [0, 1] and a 0-dim i64 target, from the
// four IDX files (plain or .gz) in a folder. Files that do not fit together, and labels that are no
// digit, throw Error naming the file.
class MNIST : public data::Dataset<MNIST> {
 public:
  enum class Mode { kTrain, kTest };

  explicit MNIST(const std::string& root, Mode mode = Mode::kTrain, Loc loc = Loc::current());

  Example<> get(std::size_t index) override;
  Example<> stacked(ArrayRef<std::size_t> indices) const;

  std::optional<std::size_t> size() const override {
    return static_cast<std::size_t>(images_.size(0));
  }

  bool is_train() const { return mode_ == Mode::kTrain; }

  const Tensor& images() const { return images_; }  // (N, 1, 28, 28) f32

  const Tensor& targets() const { return targets_; }  // (N) i64

 private:
  Mode mode_;
  Tensor images_, targets_;
};

using FashionMNIST = MNIST;

// Where Fashion-MNIST lies: $TAPER_DATA, else Debian's package, else "".
std::string find_fashion_mnist();

// A stand-in for machines without the data: ten drawn shapes, shifted, scaled and noisy.
// data (1, 28, 28) in [0, 1]; example i of a seed is always the same.
TensorDataset glyphs(std::int64_t count, std::uint64_t seed);

}  // namespace datasets
}  // namespace taper::data
