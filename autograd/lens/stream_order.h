// The order in which streams work, as far as it is certain: vector clocks over streams and the
// host.
#pragma once
#include <map>
#include <mutex>
#include <vector>

#include "taper/core/stream.h"

namespace taper::lens {

// Thread-safe. Streams get numbers; the host, all of its threads as one, is kHost. A clock holds,
// for each stream, how many of its launches are done before.
class StreamOrder final : public StreamObserver {
 public:
  using Tick = std::uint64_t;
  static constexpr std::size_t kHost = 0;

  // There is one, for as long as the process lives.
  static StreamOrder& get();

  void begin();  // knows nothing, and listens
  void end();

  std::size_t number_of(const Stream& stream);
  Tick launch(std::size_t stream);
  // Whether that launch of `stream` is done before what `by` does next. What is done before the
  // host goes on is done before all that it launches: ask for that first.
  bool is_before(std::size_t stream, Tick tick, std::size_t by) const;

  void recorded(const StreamPlace& place, const Stream& stream) override;
  void blocked(const Stream& waiter, const StreamPlace& place) override;
  void reached(const StreamPlace& place) override;
  void reached(const Stream& stream) override;
  void reached(Device device) override;
  void forgotten(const StreamPlace& place) noexcept override;

 protected:
  ~StreamOrder() = default;  // never called: see get()

 private:
  using Clock = std::vector<Tick>;

  StreamOrder() = default;
  std::size_t number_locked(const Stream& stream);
  const Clock* clock_at(const StreamPlace& place) const;  // null: before the first launch
  static void join(Clock& to, const Clock& from);

  mutable std::mutex mutex_;
  std::vector<Stream> streams_;
  std::vector<Clock> clocks_;  // by number
  std::map<const void*, std::map<std::uint64_t, Clock>> places_;
};

}  // namespace taper::lens
