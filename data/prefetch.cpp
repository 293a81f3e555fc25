// The worker threads of a data loader.
#include "taper/data/prefetch.h"

#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "taper/autograd/grad_mode.h"
#include "taper/core/base/log.h"

namespace taper::data {

struct Prefetcher::State {
  struct Done {
    Result result;
    std::exception_ptr error;
  };

  void work();
  void start(std::size_t workers);
  void stop();

  Source& source;
  const std::size_t count, ahead;
  std::size_t next_job, next_out;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::size_t, Done> done;
  bool stopped = false;
  std::vector<std::thread> threads;
};

void Prefetcher::State::work() {
  const NoGradGuard no_history;
  std::unique_lock lock(mutex);
  while (true) {
    changed.wait(lock,
                 [this] { return stopped || next_job >= count || next_job < next_out + ahead; });
    if (stopped || next_job >= count) return;
    const std::size_t job = next_job++;
    lock.unlock();
    Done made;
    try {
      made.result = source.make(job);
    } catch (...) {
      made.error = std::current_exception();
    }
    lock.lock();
    done.emplace(job, std::move(made));
    changed.notify_all();
  }
}

void Prefetcher::State::start(std::size_t workers) {
  threads.reserve(workers);
  try {
    while (threads.size() < workers) threads.emplace_back([this] { work(); });
  } catch (const std::system_error&) {  // no more to be had: go on with those we have
    log(LogLevel::kWarning, "DataLoader: only ", threads.size(), " of ", workers,
        " workers could be started");
  }
}

void Prefetcher::State::stop() {
  {
    const std::lock_guard lock(mutex);
    stopped = true;
  }
  changed.notify_all();
  for (std::thread& t : threads) t.join();
}

Prefetcher::Prefetcher(
    std::size_t first, std::size_t count, std::size_t workers, std::size_t ahead, Source& source)
    : state_(new State{source, count, ahead > 0 ? ahead : 1, first, first, {}, {}, {}, false, {}}) {
  state_->start(workers);
}

Prefetcher::~Prefetcher() {
  state_->stop();
}

Prefetcher::Result Prefetcher::next() {
  State& s = *state_;
  if (s.threads.empty()) {
    const NoGradGuard no_history;
    return s.source.make(s.next_out++);
  }
  std::unique_lock lock(s.mutex);
  s.changed.wait(lock, [&s] { return s.done.count(s.next_out) != 0; });
  auto node = s.done.extract(s.next_out++);
  lock.unlock();
  s.changed.notify_all();
  if (node.mapped().error) std::rethrow_exception(node.mapped().error);
  return std::move(node.mapped().result);
}

}  // namespace taper::data
