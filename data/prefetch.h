// Runs numbered jobs ahead of their turn on worker threads, and hands out their results in order.
#pragma once
#include <cstddef>
#include <memory>

namespace taper::data {

class Prefetcher {
 public:
  using Result = std::shared_ptr<void>;

  // Makes the result of a job; called from several threads at once, and records nothing.
  class Source {
   public:
    virtual ~Source() = default;
    virtual Result make(std::size_t job) = 0;
  };

  // Jobs first to count - 1, at most `ahead` (and at least one) of them before their turn. Without
  // workers next() makes them itself. The source must outlive this.
  Prefetcher(
      std::size_t first, std::size_t count, std::size_t workers, std::size_t ahead, Source& source);
  ~Prefetcher();  // waits for jobs at hand, drops the others
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // The next result. An exception in a worker comes out here, at its own job's turn; who catches it
  // may go on with the job behind it.
  Result next();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace taper::data
