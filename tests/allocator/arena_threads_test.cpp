// Taper's arena under many threads: nothing is lost, bytes stay what they were, and a forked child
// can allocate.
#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "taper/allocator/cpu_device.h"
#include "taper/tests/allocator/arena_checks.h"

namespace taper::testing {
namespace {

struct Held {
  Block block;
  std::size_t bytes = 0;
  StreamId stream = 0;
  unsigned char mark = 0;
};

// One thread's random work. With `data`, blocks are filled, and looked at before they are freed;
// with a board, threads free what others allocated.
class Worker {
 public:
  Worker(Allocator& allocator, unsigned seed, StreamId stream, bool data)
      : allocator_(allocator), random_(seed), stream_(stream), data_(data) {}

  void run(int operations, std::atomic<Held*>* board, std::size_t slots) {
    for (int i = 0; i < operations; ++i) {
      if (held_.size() < 24 && random_() % 2 == 0) allocate();
      else if (!held_.empty()) release(board, slots);
      if (i % 512 == 0) allocator_.empty_cache();
    }
    for (const Held& h : held_) free(h);
  }

  int spoiled = 0, refused = 0;

 private:
  void allocate() {
    Held h;
    h.bytes = 1 + random_() % (std::size_t{1} << (8 + random_() % 13));
    h.stream = stream_;
    h.mark = static_cast<unsigned char>(random_());
    try {
      h.block = allocator_.allocate(h.bytes, stream_);
    } catch (const OutOfMemory&) {
      ++refused;
      return;
    }
    if (data_) std::memset(h.block.data, h.mark, h.bytes);
    held_.push_back(h);
  }

  void release(std::atomic<Held*>* board, std::size_t slots) {
    std::swap(held_[random_() % held_.size()], held_.back());
    Held h = held_.back();
    held_.pop_back();
    if (board != nullptr && random_() % 2 == 0) {  // whoever comes next frees it
      Held* other = board[random_() % slots].exchange(new Held(h));
      if (other == nullptr) return;
      h = *other;
      delete other;
    }
    free(h);
  }

  void free(const Held& h) {
    if (data_) {
      const auto* bytes = static_cast<const unsigned char*>(h.block.data);
      for (std::size_t i = 0; i < h.bytes; i += 61) spoiled += bytes[i] == h.mark ? 0 : 1;
    } else if (h.bytes % 8 == 0) {
      allocator_.record_stream(h.block, (h.stream + 1) % 8);
    }
    allocator_.free(h.block, h.bytes, h.stream);
  }

  Allocator& allocator_;
  std::mt19937 random_;
  StreamId stream_;
  bool data_;
  std::vector<Held> held_;
};

// Returns how many requests were refused.
int work(Allocator& allocator, unsigned threads, bool own_streams, bool data, int operations) {
  constexpr std::size_t kSlots = 16;
  std::atomic<Held*> board[kSlots] = {};
  std::vector<Worker> workers;
  for (unsigned t = 0; t < threads; ++t)
    workers.emplace_back(allocator, t + 1, own_streams ? t : 0, data);
  std::vector<std::thread> running;
  for (Worker& w : workers) running.emplace_back([&] { w.run(operations, board, kSlots); });
  for (std::thread& t : running) t.join();
  for (std::atomic<Held*>& slot : board) {
    if (Held* h = slot.load()) allocator.free(h->block, h->bytes, h->stream);
    delete slot.load();
  }
  int refused = 0;
  for (const Worker& w : workers) {
    EXPECT_EQ(w.spoiled, 0);
    refused += w.refused;
  }
  return refused;
}

void expect_all_back(const Allocator& allocator) {
  const AllocatorStats s = allocator.stats();
  EXPECT_EQ(s.allocated + s.requested + s.pending + s.blocks + s.reserved, 0u);
  EXPECT_EQ(s.releasable + s.inactive_split, 0u);
  EXPECT_EQ(s.allocations, s.frees);
  EXPECT_GT(s.allocations, 1'000u);
  EXPECT_EQ(s.pages_mapped, s.pages_unmapped);
}

TEST(ArenaThreads, TotalsReturnToZero) {
  for (const unsigned threads : {2u, 8u}) {
    for (const bool own_streams : {false, true}) {
      OnSim sim(AllocatorPolicy::kTaper, 80 * kGiB);
      EXPECT_EQ(work(*sim.allocator, threads, own_streams, false, 10'000), 0);
      EXPECT_EQ(first_left_over(sim), "");
      expect_all_back(*sim.allocator);
    }
  }
}

// The host's memory, so little of it that pages go from stream to stream all the time.
TEST(ArenaThreads, BytesStayWhatTheyWere) {
  for (const unsigned threads : {2u, 8u}) {
    for (const bool own_streams : {false, true}) {
      AllocatorOptions options;
      options.limit = threads * 4 * kMiB;
      options.trace_events = 64;
      const auto allocator = make_allocator(options, std::make_unique<CpuDevice>(false));
      const int refused = work(*allocator, threads, own_streams, true, 4'000);
      EXPECT_LT(refused, static_cast<int>(threads) * 500);
      allocator->empty_cache();
      expect_all_back(*allocator);
      EXPECT_LE(allocator->stats().reserved_peak, options.limit);
    }
  }
}

// Figures and maps are read while other threads work.
TEST(ArenaThreads, FiguresAreReadMeanwhile) {
  OnSim sim(AllocatorPolicy::kTaper, 80 * kGiB);
  std::atomic<bool> done{false};
  std::thread reader([&] {
    while (!done) {
      std::uint64_t end = 0;
      for (const SegmentInfo& segment : sim.allocator->memory_map()) {
        EXPECT_GE(segment.offset, end);
        end = segment.offset + segment.bytes;
      }
      EXPECT_EQ(first_fault(sim.allocator->recent_events()), "");
      const AllocatorStats s = sim.allocator->stats();
      EXPECT_LE(s.allocated, s.allocated_peak);
      sim.allocator->reset_peaks();
    }
  });
  work(*sim.allocator, 4, true, false, 5'000);
  done = true;
  reader.join();
  EXPECT_EQ(first_left_over(sim), "");
}

// In the child: no thread but this one, and locks that others may have held.
int allocate_in_child() {
  Allocator& allocator = cpu_allocator();
  for (StreamId stream = 0; stream < 12; ++stream) {
    for (const std::size_t bytes : {100u, 70'000u, 9'000'000u}) {
      const Block block = allocator.allocate(bytes, stream);
      std::memset(block.data, 1, bytes);
      allocator.free(block, bytes, stream);
    }
  }
  allocator.note_step();
  allocator.empty_cache();
  const AllocatorStats s = allocator.stats();
  return s.allocations > 0 && !allocator.memory_map().empty() ? 0 : 1;
}

TEST(ArenaThreads, AForkedChildAllocates) {
  const Block kept = cpu_allocator().allocate(1'000, 0);
  std::memset(kept.data, 7, 1'000);
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      while (!done) Worker(cpu_allocator(), t, t % 2, true).run(200, nullptr, 0);
    });
  }
  threads.emplace_back([&] {
    while (!done) cpu_allocator().note_step();
  });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(30);  // a lock that stays taken ends the child, and the test fails
      _exit(static_cast<unsigned char*>(kept.data)[999] == 7 ? allocate_in_child() : 2);
    }
    ASSERT_GT(child, 0);
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "fork " << i << ": " << status;
  }
  done = true;
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(static_cast<unsigned char*>(kept.data)[0], 7);
  cpu_allocator().free(kept, 1'000, 0);
}

}  // namespace
}  // namespace taper::testing
