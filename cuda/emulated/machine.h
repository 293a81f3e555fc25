// Runs one kernel at a time on the calling OS thread: blocks in order, a block's threads as fibers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <cuda_runtime.h>

#include "taper/cuda/emulated/fiber.h"

namespace taper::emulated {

constexpr unsigned kWarp = 32;
constexpr unsigned kMaxThreads = 1024;
constexpr size_t kMaxShared = 227 << 10;  // what an sm_90 block may opt into

// Note [Who runs when]
// A fiber takes a thread of the block that has not started, runs it, takes the next, and so on to
// the next block: a kernel without barriers runs on one fiber and never switches. A thread that
// must wait keeps its fiber; another fiber goes on, first with threads whose wait is over, then
// with threads that have not started. The last thread to arrive at a barrier passes through
// without a switch. When nobody can go on and somebody waits, that is a deadlock: every waiting
// thread is unwound by an exception and the launch fails.
//
// Note [Who must come]
// As the CUDA programming guide has it for compute capability 7.0 and later, a barrier opens when
// all threads of the block that have not exited have reached it, and a warp's function returns when
// all lanes of its mask that have not exited have called it with this mask. So a thread may return
// before a barrier, and one that goes round it and returns looks the same. What the guide calls
// undefined is an error here: threads of a block that wait at two barriers, lanes that read from
// one which does not take part. Lanes that meet at two calls are one too, though a device may pair
// them. Two calls are told apart by their lines, so not by who called the function they stand in.
class Machine {
 public:
  static Machine& mine();  // the calling OS thread's

  Machine();
  ~Machine();

  // cudaSuccess, or how the kernel died; fault() then says where and why.
  cudaError_t run(dim3 grid, dim3 block, size_t shared_bytes, const KernelLaunch& call);

  const std::string& fault() const { return fault_; }

  // For the running CUDA thread.
  void sync_threads(Site site);
  uint64_t warp_collective(WarpOp op, unsigned mask, uint64_t value, unsigned source, Site site);
  [[noreturn]] void trap(const std::string& why);

  unsigned lane() const { return current_ % kWarp; }

  void* shared() const { return shared_.get(); }

  bool is_running() const { return running_ != &native_; }

 private:
  enum class State : uint8_t { kFresh, kAtBarrier, kInWarp, kGoing, kDone };

  struct Thread {
    Fiber* fiber;
    uint64_t value, result;
    unsigned mask, source;
    WarpOp op;
    Site site;
  };

  struct Warp {
    unsigned lanes, done, waiting;  // bit sets
  };

  // The scheduler
  void serve();  // the life of a fiber
  bool start_next_block();
  void run_thread(unsigned thread);
  void wait(State why);
  void go_on_elsewhere();  // from the running fiber, which waits or has nothing to do
  Fiber& idle_fiber();

  // Who waits for whom
  void open_barrier();
  bool settle(unsigned warp, unsigned mask, WarpOp op);
  void resolve(unsigned warp, unsigned participants, WarpOp op);
  void refuse(unsigned thread, const std::string& why);
  void thread_ended(unsigned thread);
  void fail(cudaError_t error, const std::string& why);
  std::string who_waits() const;

  void lay_out(dim3 block);
  void fill_shared();

  Fiber native_;
  Fiber* running_ = &native_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  bool quitting_ = false;

  // The launch
  const KernelLaunch* call_ = nullptr;
  dim3 grid_, block_{0, 0, 0};
  uint64_t blocks_left_ = 0;
  std::vector<uint3> index_of_;  // threadIdx of each linear index in a block of shape block_
  size_t shared_bytes_ = 0;
  std::unique_ptr<char[]> shared_store_;
  struct NoDelete {
    void operator()(char*) const {}
  };
  std::unique_ptr<char, NoDelete> shared_;  // shared_store_, aligned
  bool reverse_ = false;
  cudaError_t error_ = cudaSuccess;
  std::string fault_;

  // The block
  unsigned threads_count_ = 0;
  unsigned started_ = 0;
  unsigned live_ = 0;  // not ended, started or not
  unsigned current_ = 0;
  unsigned in_warps_ = 0;  // threads that wait in a warp collective
  std::vector<State> state_;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<uint16_t> at_barrier_;  // in order of arrival
  Site barrier_{};                    // that they wait at
  std::vector<uint16_t> ready_;       // waits that are over, first at ready_front_
  size_t ready_front_ = 0;
};

}  // namespace taper::emulated
