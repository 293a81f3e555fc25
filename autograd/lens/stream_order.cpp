// Moves knowledge between clocks, where streams and the host wait for one another.
#include "taper/autograd/lens/stream_order.h"

#include <algorithm>

namespace taper::lens {
namespace {

constexpr std::size_t kMostMarks = 1024;  // of one stream

}  // namespace

StreamOrder& StreamOrder::get() {
  static auto* the = new StreamOrder;
  return *the;
}

void StreamOrder::begin() {
  const std::lock_guard lock(mutex_);
  streams_ = {Stream(kCPU)};
  clocks_ = {Clock()};
  places_.clear();
  stream_observer.store(this, std::memory_order_release);
}

void StreamOrder::end() {
  stream_observer.store(nullptr, std::memory_order_release);
}

std::size_t StreamOrder::number_locked(const Stream& stream) {
  if (!stream.device().is_cuda()) return kHost;
  const auto at = std::find(streams_.begin(), streams_.end(), stream);
  if (at != streams_.end()) return static_cast<std::size_t>(at - streams_.begin());
  streams_.push_back(stream);
  clocks_.emplace_back();
  return streams_.size() - 1;
}

std::size_t StreamOrder::number_of(const Stream& stream) {
  const std::lock_guard lock(mutex_);
  return number_locked(stream);
}

void StreamOrder::join(Clock& to, const Clock& from) {
  if (to.size() < from.size()) to.resize(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = std::max(to[i], from[i]);
}

StreamOrder::Tick StreamOrder::launch(std::size_t stream) {
  const std::lock_guard lock(mutex_);
  Clock& clock = clocks_[stream];
  if (clock.size() <= stream) clock.resize(stream + 1);
  return ++clock[stream];
}

bool StreamOrder::is_before(std::size_t stream, Tick tick, std::size_t by) const {
  const std::lock_guard lock(mutex_);
  const Clock& clock = clocks_[by];
  return stream < clock.size() && clock[stream] >= tick;
}

// Of marks that were dropped the next one stands in, which is later.
const StreamOrder::Clock* StreamOrder::clock_at(const StreamPlace& place) const {
  const auto of = places_.find(place.of);
  if (of == places_.end()) return nullptr;
  const auto at = of->second.lower_bound(place.number);
  return at == of->second.end() ? nullptr : &at->second;
}

void StreamOrder::recorded(const StreamPlace& place, const Stream& stream) {
  const std::lock_guard lock(mutex_);
  auto& marks = places_[place.of];
  marks[place.number] = clocks_[number_locked(stream)];
  if (marks.size() <= kMostMarks) return;
  for (auto at = marks.begin(); at != marks.end() && std::next(at) != marks.end(); ++at)
    at = marks.erase(at);
}

void StreamOrder::blocked(const Stream& waiter, const StreamPlace& place) {
  const std::lock_guard lock(mutex_);
  const std::size_t number = number_locked(waiter);
  if (const Clock* clock = clock_at(place)) join(clocks_[number], *clock);
}

void StreamOrder::reached(const StreamPlace& place) {
  const std::lock_guard lock(mutex_);
  if (const Clock* clock = clock_at(place)) join(clocks_[kHost], *clock);
}

void StreamOrder::reached(const Stream& stream) {
  const std::lock_guard lock(mutex_);
  const std::size_t number = number_locked(stream);
  join(clocks_[kHost], clocks_[number]);
}

void StreamOrder::reached(Device device) {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 1; i < streams_.size(); ++i) {
    if (streams_[i].device() == device) join(clocks_[kHost], clocks_[i]);
  }
}

void StreamOrder::forgotten(const StreamPlace& place) noexcept {
  const std::lock_guard lock(mutex_);
  places_.erase(place.of);
}

}  // namespace taper::lens
