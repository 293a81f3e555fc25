// The scheduler of CUDA threads: which fiber runs next, who waits for whom, when nobody can go on.
#include "taper/cuda/emulated/machine.h"

#include <cstring>
#include <mutex>

#include "taper/cuda/emulated/sanitizer.h"
#include "taper/cuda/emulated/settings.h"

namespace taper::emulated {

constinit thread_local Builtins builtins{{0, 0, 0}, {0, 0, 0}, dim3(), dim3()};

namespace {

// Unwinds a thread of a kernel that has failed.
struct KernelFailed {};

unsigned count(dim3 shape) {
  return shape.x * shape.y * shape.z;
}

std::string text(uint3 index) {
  return "(" + std::to_string(index.x) + ", " + std::to_string(index.y) + ", " +
         std::to_string(index.z) + ")";
}

std::string text(Site site) {
  const char* slash = std::strrchr(site.file, '/');
  return std::string(slash == nullptr ? site.file : slash + 1) + ":" + std::to_string(site.line);
}

bool same(Site a, Site b) {
  return a.line == b.line && (a.file == b.file || std::strcmp(a.file, b.file) == 0);
}

}  // namespace

Machine& Machine::mine() {
  thread_local Machine machine;
  return machine;
}

Machine::Machine()
    : index_of_(kMaxThreads),
      shared_store_(new char[kMaxShared + 1024]),
      reverse_(settings().reverse),
      state_(kMaxThreads),
      threads_(kMaxThreads),
      warps_(kMaxThreads / kWarp) {
  void* aligned = shared_store_.get();
  size_t space = kMaxShared + 1024;
  shared_.reset(static_cast<char*>(std::align(1024, kMaxShared, aligned, space)));
  at_barrier_.reserve(kMaxThreads);
  ready_.reserve(kMaxThreads);
}

Machine::~Machine() {
  unpoison(shared_.get(), kMaxShared);
  quitting_ = true;
  for (Fiber* fiber : idle_) {
    running_ = fiber;
    native_.jump_to(*fiber);
  }
}

// One kernel at a time in the process: __shared__ arrays are static, since as thread_local ones
// they would lie on the stack of every thread that the program makes.
cudaError_t Machine::run(dim3 grid, dim3 block, size_t shared_bytes, const KernelLaunch& call) {
  static std::mutex one;
  const std::lock_guard lock(one);
  const Builtins outside = builtins;
  if (block.x != block_.x || block.y != block_.y || block.z != block_.z) lay_out(block);
  call_ = &call;
  grid_ = grid;
  blocks_left_ = uint64_t{grid.x} * grid.y * grid.z;
  shared_bytes_ = shared_bytes;
  error_ = cudaSuccess;
  builtins.block_dim = block;
  builtins.grid_dim = grid;
  started_ = threads_count_;
  live_ = 0;
  running_ = &idle_fiber();
  native_.jump_to(*running_);
  call_ = nullptr;
  builtins = outside;
  return error_;
}

void Machine::lay_out(dim3 block) {
  block_ = block;
  threads_count_ = count(block);
  for (unsigned i = 0; i < threads_count_; ++i) {
    index_of_[i] = {i % block.x, i / block.x % block.y, i / (block.x * block.y)};
  }
}

void Machine::fill_shared() {
  poison(shared_.get(), kMaxShared);
  unpoison(shared_.get(), shared_bytes_);
  std::memset(shared_.get(), 0xff, shared_bytes_);
}

// --- the scheduler ---

Fiber& Machine::idle_fiber() {
  if (idle_.empty()) {
    const auto body = [](void* machine) { static_cast<Machine*>(machine)->serve(); };
    fibers_.push_back(std::make_unique<Fiber>(body, this, static_cast<unsigned>(fibers_.size())));
    return *fibers_.back();
  }
  Fiber* fiber = idle_.back();
  idle_.pop_back();
  return *fiber;
}

void Machine::serve() {
  while (!quitting_) {
    if (started_ < threads_count_) {
      const unsigned turn = started_++;
      run_thread(reverse_ ? threads_count_ - 1 - turn : turn);
    } else if (live_ != 0) {
      idle_.push_back(running_);
      go_on_elsewhere();
    } else if (!start_next_block()) {
      Fiber& self = *running_;
      idle_.push_back(&self);
      running_ = &native_;
      self.jump_to(native_);
    }
  }
  Fiber& self = *running_;
  running_ = &native_;
  self.end_in(native_);
}

bool Machine::start_next_block() {
  if (blocks_left_ == 0) return false;
  const uint64_t total = uint64_t{grid_.x} * grid_.y * grid_.z;
  --blocks_left_;
  const uint64_t block = reverse_ ? blocks_left_ : total - 1 - blocks_left_;
  builtins.block_index = {static_cast<unsigned>(block % grid_.x),
                          static_cast<unsigned>(block / grid_.x % grid_.y),
                          static_cast<unsigned>(block / grid_.x / grid_.y)};
  std::memset(state_.data(), 0, threads_count_);
  for (unsigned first = 0; first < threads_count_; first += kWarp) {
    const unsigned lanes = threads_count_ - first;
    warps_[first / kWarp] = {lanes < kWarp ? (1u << lanes) - 1 : ~0u, 0, 0};
  }
  started_ = 0;
  live_ = threads_count_;
  if (shared_bytes_ != 0) fill_shared();
  return true;
}

void Machine::run_thread(unsigned thread) {
  current_ = thread;
  builtins.thread_index = index_of_[thread];
  try {
    call_->run_thread();
  } catch (const KernelFailed&) {
    // Already told.
  } catch (...) {
    if (error_ == cudaSuccess) fail(cudaErrorLaunchFailure, "an exception left the kernel");
  }
  thread_ended(current_);
}

[[gnu::always_inline]] inline void Machine::wait(State why) {
  const unsigned self = current_;
  state_[self] = why;
  threads_[self].fiber = running_;
  go_on_elsewhere();
  current_ = self;
  builtins.thread_index = index_of_[self];
  if (error_ != cudaSuccess) throw KernelFailed();
}

[[gnu::always_inline]] inline void Machine::go_on_elsewhere() {
  if (ready_front_ == ready_.size() && started_ == threads_count_) {
    fail(cudaErrorLaunchTimeout, "deadlock, " + who_waits());
  }
  Fiber* next = nullptr;
  if (ready_front_ < ready_.size()) {
    next = threads_[ready_[ready_front_++]].fiber;
    if (ready_front_ == ready_.size()) {
      ready_.clear();
      ready_front_ = 0;
    }
  } else {
    next = &idle_fiber();
  }
  Fiber& self = *running_;
  if (next == &self) return;
  running_ = next;
  self.jump_to(*next);
}

// --- who waits for whom ---

[[gnu::always_inline]] inline void Machine::sync_threads(Site site) {
  if (at_barrier_.empty()) barrier_ = site;
  else if (!same(site, barrier_)) {
    trap("waits at __syncthreads in " + text(site) + ", and thread " +
         text(index_of_[at_barrier_.front()]) + " at that in " + text(barrier_));
  }
  at_barrier_.push_back(static_cast<uint16_t>(current_));
  if (at_barrier_.size() < live_) {
    wait(State::kAtBarrier);
    return;
  }
  at_barrier_.pop_back();  // the last to come need not wait
  open_barrier();
}

void Machine::open_barrier() {
  for (const uint16_t thread : at_barrier_) state_[thread] = State::kGoing;
  ready_.insert(ready_.end(), at_barrier_.begin(), at_barrier_.end());
  at_barrier_.clear();
}

[[gnu::always_inline]] inline uint64_t Machine::warp_collective(
    WarpOp op, unsigned mask, uint64_t value, unsigned source, Site site) {
  const unsigned warp = current_ / kWarp;
  const unsigned bit = 1u << lane();
  if ((mask & bit) == 0) trap("a warp collective whose mask leaves out the caller");
  threads_[current_] = {nullptr, value, 0, mask, source, op, site};
  warps_[warp].waiting |= bit;
  ++in_warps_;
  if (!settle(warp, mask, op)) wait(State::kInWarp);
  else if (error_ != cudaSuccess) throw KernelFailed();
  return threads_[current_].result;
}

// Ends the collective that the lanes of `mask` wait in, if all that are alive have come.
bool Machine::settle(unsigned warp, unsigned mask, WarpOp op) {
  Warp& lanes = warps_[warp];
  const unsigned participants = mask & lanes.waiting;
  if ((mask & lanes.lanes & ~lanes.done) != participants) return false;
  for (unsigned rest = participants; rest != 0; rest &= rest - 1) {
    const Thread& thread = threads_[warp * kWarp + static_cast<unsigned>(std::countr_zero(rest))];
    if (thread.mask != mask || thread.op != op) return false;
  }
  resolve(warp, participants, op);
  if (error_ != cudaSuccess) return true;
  lanes.waiting &= ~participants;
  in_warps_ -= static_cast<unsigned>(std::popcount(participants));
  for (unsigned rest = participants; rest != 0; rest &= rest - 1) {
    const unsigned thread = warp * kWarp + static_cast<unsigned>(std::countr_zero(rest));
    if (thread == current_) continue;
    state_[thread] = State::kGoing;
    ready_.push_back(static_cast<uint16_t>(thread));
  }
  return true;
}

void Machine::resolve(unsigned warp, unsigned participants, WarpOp op) {
  Thread* threads = &threads_[warp * kWarp];
  const unsigned first =
      participants == 0 ? 0 : static_cast<unsigned>(std::countr_zero(participants));
  uint64_t ballot = 0;
  if (op == WarpOp::kBallot) {
    for (unsigned rest = participants; rest != 0; rest &= rest - 1) {
      const int from = std::countr_zero(rest);
      ballot |= uint64_t{threads[from].value != 0} << from;
    }
  }
  for (unsigned rest = participants; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    Thread& thread = threads[lane];
    if (!same(thread.site, threads[first].site)) {
      return refuse(warp * kWarp + lane, "is at the warp's function in " + text(thread.site) +
                                             ", and lane " + std::to_string(first) +
                                             " at that in " + text(threads[first].site));
    }
    if (op == WarpOp::kShuffle) {
      if (((participants >> thread.source) & 1u) == 0) {
        return refuse(warp * kWarp + lane, "reads from lane " + std::to_string(thread.source) +
                                               " in " + text(thread.site) +
                                               ", which does not take part: it has ended, is not " +
                                               "in the mask, or not in the block");
      }
      thread.result = threads[thread.source].value;
    } else {
      thread.result = ballot;
    }
  }
}

// A thread that has ended counts in no barrier and no collective any more.
void Machine::thread_ended(unsigned thread) {
  state_[thread] = State::kDone;
  --live_;
  const unsigned warp = thread / kWarp;
  warps_[warp].done |= 1u << (thread % kWarp);
  if (!at_barrier_.empty() && at_barrier_.size() == live_) open_barrier();
  if (in_warps_ == 0) return;
  for (unsigned first = 0; first < kWarp; ++first) {
    if (((warps_[warp].waiting >> first) & 1u) == 0) continue;
    const Thread& waiter = threads_[warp * kWarp + first];
    settle(warp, waiter.mask, waiter.op);
  }
}

// Makes every waiting thread of the block go on, and throw; nothing more is started.
void Machine::fail(cudaError_t error, const std::string& why) {
  fault_ = "block " + text(builtins.block_index) + ": " + why;
  error_ = error;
  blocks_left_ = 0;
  live_ -= threads_count_ - started_;
  started_ = threads_count_;
  at_barrier_.clear();
  in_warps_ = 0;
  for (Warp& warp : warps_) warp.waiting = 0;
  for (unsigned thread = 0; thread < threads_count_; ++thread) {
    if (state_[thread] == State::kAtBarrier || state_[thread] == State::kInWarp) {
      state_[thread] = State::kGoing;
      ready_.push_back(static_cast<uint16_t>(thread));
    }
  }
}

void Machine::refuse(unsigned thread, const std::string& why) {
  if (error_ != cudaSuccess) return;
  fail(cudaErrorLaunchFailure, "thread " + text(index_of_[thread]) + ": " + why);
}

void Machine::trap(const std::string& why) {
  refuse(current_, why);
  throw KernelFailed();
}

std::string Machine::who_waits() const {
  unsigned done = 0, barrier = 0, warp = 0, first = threads_count_;
  for (unsigned thread = 0; thread < threads_count_; ++thread) {
    done += state_[thread] == State::kDone;
    barrier += state_[thread] == State::kAtBarrier;
    warp += state_[thread] == State::kInWarp;
    if (state_[thread] == State::kInWarp && first == threads_count_) first = thread;
  }
  std::string out = "of " + std::to_string(threads_count_) + " threads " + std::to_string(barrier) +
                    " wait at __syncthreads, " + std::to_string(warp) + " in a warp collective, " +
                    std::to_string(done) + " have ended";
  if (first < threads_count_) {
    out += "; thread " + text(index_of_[first]) + " waits for lanes that never come";
  }
  return out;
}

// --- what intrinsics.h and kernel_launch.h declare ---

void sync_threads(Site site) {
  Machine::mine().sync_threads(site);
}

uint64_t warp_collective(WarpOp op, unsigned mask, uint64_t value, unsigned source, Site site) {
  return Machine::mine().warp_collective(op, mask, value, source, site);
}

unsigned lane() {
  return Machine::mine().lane();
}

void trap() {
  Machine::mine().trap("__trap");
}

void* dynamic_shared() {
  return Machine::mine().shared();
}

}  // namespace taper::emulated
