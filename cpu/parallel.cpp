// The pool behind parallel_for: who runs which chunk, and how threads wait for work.
#include "taper/cpu/parallel.h"

#include <atomic>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include <pthread.h>

#include "taper/core/base/error.h"
#include "taper/core/base/log.h"

#if defined(__linux__)
#include <sched.h>
#endif

// Note [Nobody waits for a sleeper]
// A chunk is claimed by one compare-and-swap on `claim` = (generation, next chunk). The caller
// claims like any worker, so a worker that has not woken yet costs nothing: its chunks are taken by
// others. Only a chunk that someone is at work on is waited for.
// The fields of a job are written while `claim` is closed: of the new generation, with no chunk
// left. A worker reads them before it claims. If the claim succeeds, the generation was the same
// all the while, so what it read was whole; if not, it throws what it read away. Fields are stored
// with release and read with acquire, so that whoever reads a new one also sees the closed claim.
namespace taper {
namespace cpu {
namespace {

constexpr std::int64_t kMostChunks = std::int64_t{1} << 30;
constexpr int kMostThreads = 1024;
constexpr int kSpins = 1000;  // of 20 to 60 ns each, before a thread sleeps
constexpr std::uint32_t kNoChunk = ~std::uint32_t{0};

using Body = void (*)(const void* arg, std::int64_t begin, std::int64_t end);

thread_local bool inside = false;  // this thread is in a chunk

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

struct Pool {
  std::atomic_flag taken = ATOMIC_FLAG_INIT;  // some caller has a job here
  std::atomic<int> threads{0};                // the caller included
  std::atomic<bool> alone{false};             // child of a fork: the workers are not here

  std::atomic<std::uint64_t> claim{0};       // generation << 32 | next chunk
  std::atomic<std::uint32_t> generation{0};  // what sleepers wait on
  std::atomic<std::uint32_t> done{0};        // chunks; what the caller waits on

  // The job. Atomic, since a late worker may read what it will not use.
  std::atomic<Body> body{nullptr};
  std::atomic<const void*> arg{nullptr};
  std::atomic<std::int64_t> n{0}, chunk{1};
  std::atomic<std::uint32_t> chunks{0};

  std::atomic<bool> failed{false};
  std::exception_ptr error;  // written by the one that set `failed`

  std::atomic<int> workers{0};  // started
  std::mutex grow;
};

// Never destroyed: workers may outlive main's statics.
Pool& pool() {
  static Pool* const kPool = [] {
    auto* p = new Pool;
    pthread_atfork(nullptr, nullptr, [] { pool().alone = true; });
    return p;
  }();
  return *kPool;
}

int processors() {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
#endif
  const unsigned n = std::thread::hardware_concurrency();
  return n > 0 ? static_cast<int>(n) : 1;
}

int initial_threads() {
  const char* text = std::getenv("TAPER_NUM_THREADS");
  if (text == nullptr || *text == 0) return processors();
  char* end = nullptr;
  const long n = std::strtol(text, &end, 10);
  TAPER_CHECK(*end == 0 && n >= 1 && n <= kMostThreads, "TAPER_NUM_THREADS=", text,
              " is not a number from 1 to ", kMostThreads);
  return static_cast<int>(n);
}

int threads_of(Pool& p) {
  int n = p.threads.load(std::memory_order_relaxed);
  if (n > 0) return n;
  int unset = 0;
  p.threads.compare_exchange_strong(unset, initial_threads());
  return p.threads.load(std::memory_order_relaxed);
}

void run_chunk(Pool& p, Body body, const void* arg, std::int64_t begin, std::int64_t end) {
  if (p.failed.load(std::memory_order_relaxed)) return;  // the result is lost already
  try {
    body(arg, begin, end);
  } catch (...) {
    if (!p.failed.exchange(true)) p.error = std::current_exception();
  }
}

// Takes chunks of generation `mine` until none is left.
void take_chunks(Pool& p, std::uint32_t mine) {
  std::uint64_t seen = p.claim.load(std::memory_order_acquire);
  while (static_cast<std::uint32_t>(seen >> 32) == mine) {
    const auto index = static_cast<std::uint32_t>(seen);
    const std::uint32_t chunks = p.chunks.load(std::memory_order_acquire);
    const Body body = p.body.load(std::memory_order_acquire);
    const void* arg = p.arg.load(std::memory_order_acquire);
    const std::int64_t n = p.n.load(std::memory_order_acquire);
    const std::int64_t chunk = p.chunk.load(std::memory_order_acquire);
    if (index >= chunks) return;
    if (!p.claim.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel)) continue;
    const std::int64_t begin = index * chunk;
    run_chunk(p, body, arg, begin, begin + chunk < n ? begin + chunk : n);
    if (p.done.fetch_add(1, std::memory_order_acq_rel) + 1 == chunks) p.done.notify_one();
    seen = p.claim.load(std::memory_order_acquire);
  }
}

void work(int id) {
  inside = true;
  Pool& p = pool();
  std::uint32_t seen = 0;
  while (true) {
    std::uint32_t now = p.generation.load(std::memory_order_acquire);
    for (int i = 0; i < kSpins && now == seen; ++i) {
      pause();
      now = p.generation.load(std::memory_order_acquire);
    }
    if (now == seen) {
      p.generation.wait(seen);
      continue;
    }
    seen = now;
    if (id < p.threads.load(std::memory_order_relaxed)) take_chunks(p, now);
  }
}

void start_workers(Pool& p, int threads) {
  if (p.workers.load(std::memory_order_acquire) + 1 >= threads) return;
  const std::scoped_lock lock(p.grow);
  try {
    for (; p.workers + 1 < threads; ++p.workers) std::thread(work, p.workers + 1).detach();
  } catch (const std::system_error&) {
    p.threads = p.workers + 1;  // no more to be had: go on with those we have
    log(LogLevel::kWarning, "only ", p.workers + 1, " of ", threads, " threads could be started");
  }
}

// Waits for the chunks that others are at work on.
void wait_done(Pool& p, std::uint32_t chunks) {
  std::uint32_t done = p.done.load(std::memory_order_acquire);
  TAPER_CHECK(done == chunks || !p.alone, "fork() was called from inside a parallel loop");
  for (int i = 0; i < kSpins && done != chunks; ++i) {
    pause();
    done = p.done.load(std::memory_order_acquire);
  }
  while (done != chunks) {
    p.done.wait(done);
    done = p.done.load(std::memory_order_acquire);
  }
}

void run_alone(std::int64_t n, std::int64_t chunk, Body body, const void* arg) {
  for (std::int64_t begin = 0; begin < n; begin += chunk) {
    body(arg, begin, n - begin > chunk ? begin + chunk : n);
  }
}

}  // namespace

void parallel_run(std::int64_t n, std::int64_t chunk, Body body, const void* arg) {
  while ((n - 1) / chunk >= kMostChunks) chunk *= 2;
  Pool& p = pool();
  const int threads = threads_of(p);
  if (inside || threads == 1 || p.alone || p.taken.test_and_set(std::memory_order_acquire)) {
    return run_alone(n, chunk, body, arg);
  }
  start_workers(p, threads);
  const auto chunks = static_cast<std::uint32_t>((n - 1) / chunk + 1);
  const std::uint32_t mine = p.generation.load(std::memory_order_relaxed) + 1;
  p.claim.store(std::uint64_t{mine} << 32 | kNoChunk);
  p.body.store(body, std::memory_order_release);
  p.arg.store(arg, std::memory_order_release);
  p.n.store(n, std::memory_order_release);
  p.chunk.store(chunk, std::memory_order_release);
  p.chunks.store(chunks, std::memory_order_release);
  p.done.store(0, std::memory_order_relaxed);
  p.failed.store(false, std::memory_order_relaxed);
  p.claim.store(std::uint64_t{mine} << 32, std::memory_order_release);
  p.generation.store(mine, std::memory_order_release);
  p.generation.notify_all();

  inside = true;
  take_chunks(p, mine);
  inside = false;
  wait_done(p, chunks);
  std::exception_ptr error = std::exchange(p.error, nullptr);
  p.taken.clear(std::memory_order_release);
  if (error) std::rethrow_exception(error);
}

}  // namespace cpu

int get_num_threads() {
  return cpu::threads_of(cpu::pool());
}

void set_num_threads(int n) {
  TAPER_CHECK(n >= 1 && n <= cpu::kMostThreads, "set_num_threads: expected 1 to ",
              cpu::kMostThreads, ", got ", n);
  cpu::pool().threads = n;
}

}  // namespace taper
