// DataLoader: batches of a dataset in a sampler's order, made ahead by worker threads.
#pragma once
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "taper/data/dataset.h"
#include "taper/data/prefetch.h"
#include "taper/data/sampler.h"
#include "taper/data/transfer.h"

namespace taper::data {

class DataLoaderOptions {
 public:
  DataLoaderOptions() = default;
  DataLoaderOptions(std::size_t batch_size) : batch_size_(batch_size) {}  // NOLINT

  std::size_t batch_size() const { return batch_size_; }
  DataLoaderOptions& batch_size(std::size_t n) { return batch_size_ = n, *this; }
  // Threads that make batches; 0: the caller makes them. The dataset's get must then be safe to
  // call from several threads at once.
  std::size_t workers() const { return workers_; }
  DataLoaderOptions& workers(std::size_t n) { return workers_ = n, *this; }
  // Batches made ahead at most, and at least one; twice the workers unless set.
  std::size_t max_jobs() const { return max_jobs_.value_or(2 * workers_); }
  DataLoaderOptions& max_jobs(std::optional<std::size_t> n) { return max_jobs_ = n, *this; }
  // Batches always come in the sampler's order, whatever the workers do.
  bool enforce_ordering() const { return true; }
  DataLoaderOptions& enforce_ordering(bool on) {
    TAPER_CHECK(on,
                "DataLoaderOptions: enforce_ordering(false) is not there; order is always kept");
    return *this;
  }
  bool drop_last() const { return drop_last_; }
  DataLoaderOptions& drop_last(bool on) { return drop_last_ = on, *this; }
  // Batches lie in pinned memory, from which x.to(kCUDA, /*non_blocking=*/true) returns at once.
  bool pin_memory() const { return pin_memory_; }
  DataLoaderOptions& pin_memory(bool on) { return pin_memory_ = on, *this; }
  // Where the tensors of batches lie. For a CUDA device they are copied there ahead of their turn,
  // through pinned memory and on a stream of their own, while the device works on the batch before;
  // the stream that is current when a batch is taken waits for it, and the host does not. By
  // default batches lie where the dataset makes them.
  std::optional<Device> device() const { return device_; }
  DataLoaderOptions& device(std::optional<Device> d) {
    TAPER_CHECK(!d || !d->is_meta(), "DataLoaderOptions: batches of the meta device have no data");
    return device_ = d, *this;
  }

 private:
  std::size_t batch_size_ = 1, workers_ = 0;
  std::optional<std::size_t> max_jobs_;
  std::optional<Device> device_;
  bool drop_last_ = false, pin_memory_ = false;
};

// A place in the stream of batches. Saved after batch k, a loader that loads it goes on with k + 1.
struct LoaderPosition {
  std::uint64_t epoch = 0;
  std::uint64_t batch = 0;  // within the epoch
};

template <class D> class DataLoader final : private Prefetcher::Source {
 public:
  using BatchType = decltype(std::declval<D&>().get_batch(ArrayRef<std::size_t>()));

  // Throws where there is no device for batches to lie on, or to be pinned for.
  DataLoader(D dataset,
             std::shared_ptr<samplers::Sampler> sampler,
             DataLoaderOptions options,
             SourceLoc loc = SourceLoc::current())
      : dataset_(std::move(dataset)), sampler_(std::move(sampler)), options_(options) {
    const Call call(loc, "DataLoader");
    TAPER_CHECK(options_.batch_size() > 0, "the batch size must be positive");
    if (moves_to_cuda()) static_cast<void>(Transfer(*options_.device()));
    else if (options_.pin_memory()) Transfer::check_can_pin();
  }

  ~DataLoader() override { current_.reset(); }  // workers end before the dataset that they read

  DataLoader(const DataLoader&) = delete;
  DataLoader& operator=(const DataLoader&) = delete;

  // Batches of one epoch.
  std::size_t size() const {
    const std::size_t n = sampler_->size(), b = options_.batch_size();
    return options_.drop_last() ? n / b : (n + b - 1) / b;
  }

  class Iterator {
   public:
    using value_type = BatchType;
    using reference = BatchType&;
    using pointer = BatchType*;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag;

    explicit Iterator(DataLoader* loader) : loader_(loader) { advance(); }

    reference operator*() { return *batch_; }

    pointer operator->() { return &*batch_; }

    Iterator& operator++() {
      advance();
      return *this;
    }

    friend bool operator==(const Iterator& a, const Iterator& b) {
      return a.batch_.has_value() == b.batch_.has_value();
    }

   private:
    void advance() {
      batch_.reset();
      if (loader_ != nullptr) batch_ = loader_->next();
    }

    DataLoader* loader_;
    std::optional<BatchType> batch_;
  };

  // Begins an epoch: the next one, or after set_position() that one, from there. What goes wrong on
  // a batch's way to its device names this line, the loop's; inside the dataset, the dataset's own.
  Iterator begin(SourceLoc loc = SourceLoc::current()) {
    start(loc);
    return Iterator(this);
  }

  Iterator end() { return Iterator(nullptr); }

  // The next batch to come. After the last of an epoch: the next epoch's first.
  LoaderPosition position() const {
    const bool at_end = position_.batch != 0 && position_.batch == size();
    return at_end ? LoaderPosition{position_.epoch + 1, 0} : position_;
  }

  void set_position(LoaderPosition position) {
    TAPER_CHECK(position.batch < size() || size() == 0, "DataLoader: position ", position.batch,
                " lies beyond the ", size(), " batches of an epoch");
    current_.reset();
    position_ = position;
    placed_ = true;
  }

  const DataLoaderOptions& options() const { return options_; }

 private:
  struct Made {
    BatchType batch;
    std::optional<Transfer> transfer;  // the way to a CUDA device
  };

  Prefetcher::Result make(std::size_t batch) override {
    const std::size_t begin = batch * options_.batch_size();
    const std::size_t left = order_.size() - begin;
    const std::size_t n = left < options_.batch_size() ? left : options_.batch_size();
    auto made = std::make_shared<Made>(
        Made{dataset_.get_batch(ArrayRef<std::size_t>(order_.data() + begin, n)), {}});
    const Call call(begun_at_, "DataLoader");
    if (moves_to_cuda()) {
      made->transfer.emplace(*options_.device()).send(made->batch);
      return made;
    }
    if (options_.device()) {
      each_tensor(made->batch, [this](Tensor& t) { t = t.to(*options_.device()); });
    }
    if (options_.pin_memory()) each_tensor(made->batch, [](Tensor& t) { t = Transfer::pinned(t); });
    return made;
  }

  bool moves_to_cuda() const { return options_.device() && options_.device()->is_cuda(); }

  void start(const SourceLoc& loc) {
    current_.reset();
    begun_at_ = loc;
    if (!placed_ && position_.batch != 0) position_ = {position_.epoch + 1, 0};
    placed_ = false;
    order_ = sampler_->order(position_.epoch);
    Prefetcher::Source& jobs = *this;
    current_ = std::make_unique<Prefetcher>(position_.batch, size(), options_.workers(),
                                            options_.max_jobs(), jobs);
  }

  std::optional<BatchType> next() {
    if (current_ == nullptr) return std::nullopt;
    if (position_.batch == size()) {
      current_.reset();
      position_ = {position_.epoch + 1, 0};
      return std::nullopt;
    }
    ++position_.batch;  // also past a batch that fails: it is not made again
    const Prefetcher::Result result = current_->next();
    Made& made = *static_cast<Made*>(result.get());
    const Call call(begun_at_, "DataLoader");
    if (made.transfer) made.transfer->receive(made.batch);
    return std::move(made.batch);
  }

  D dataset_;
  std::shared_ptr<samplers::Sampler> sampler_;
  DataLoaderOptions options_;
  LoaderPosition position_;
  bool placed_ = false;  // set_position() was called and no epoch begun since
  std::vector<std::size_t> order_;
  SourceLoc begun_at_;
  std::unique_ptr<Prefetcher> current_;
};

namespace detail {

inline std::size_t known_size(const std::optional<std::size_t>& size) {
  TAPER_CHECK(size.has_value(),
              "make_data_loader: the dataset does not know its size; give a "
              "sampler of a fixed size");
  return *size;
}

template <class T> auto as_dataset(T data) {
  if constexpr (requires { data.get_batch(ArrayRef<std::size_t>()); }) return data;
  else return RangeDataset<T>(std::move(data));
}

}  // namespace detail

// make_data_loader<RandomSampler>(dataset, DataLoaderOptions().batch_size(64)): the sampler is made
// for the dataset's size. The dataset is anything with get_batch, or a random-access range.
template <class S = samplers::RandomSampler, class D>
requires std::is_base_of_v<samplers::Sampler, S>
auto make_data_loader(D dataset,
                      DataLoaderOptions options = {},
                      SourceLoc loc = SourceLoc::current()) {
  auto source = detail::as_dataset(std::move(dataset));
  auto sampler = std::make_shared<S>(detail::known_size(source.size()));
  return std::make_unique<DataLoader<decltype(source)>>(std::move(source), std::move(sampler),
                                                        options, loc);
}

// The same with a sampler of the caller's.
template <class D, class S>
requires std::is_base_of_v<samplers::Sampler, S>
auto make_data_loader(D dataset,
                      S sampler,
                      DataLoaderOptions options = {},
                      SourceLoc loc = SourceLoc::current()) {
  auto source = detail::as_dataset(std::move(dataset));
  return std::make_unique<DataLoader<decltype(source)>>(
      std::move(source), std::make_shared<S>(std::move(sampler)), options, loc);
}

}  // namespace taper::data
