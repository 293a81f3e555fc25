// Loops that reach the machine's limits: twelve chains of multiply-adds, and a copy.
#include "taper/benchmarks/machine.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "taper/benchmarks/bench.h"
#include "taper/taper.h"

namespace bench {
namespace {

// Seconds from the common start of f(thread) on n threads to the end of the last.
template <class F> double together(int n, F f) {
  if (n == 1) {
    const double start = now();
    f(0);
    return now() - start;
  }
  std::atomic<int> ready{0};
  std::atomic<bool> go{false};
  std::vector<double> ends(static_cast<std::size_t>(n));
  std::vector<std::thread> threads;
  for (int t = 0; t < n; ++t) {
    threads.emplace_back([&, t] {
      ++ready;
      while (!go) std::this_thread::yield();
      f(t);
      ends[static_cast<std::size_t>(t)] = now();
    });
  }
  while (ready < n) std::this_thread::yield();
  const double start = now();
  go = true;
  for (std::thread& t : threads) t.join();
  return *std::max_element(ends.begin(), ends.end()) - start;
}

template <class F> double best_together(int n, int samples, F f) {
  double best = 1e300;
  for (int i = 0; i < samples; ++i) best = std::min(best, together(n, f));
  return best;
}

// Registers are named in assembly: compilers keep an array of them in memory.
struct Loop {
  const char* isa;
  double flops;  // of one turn
  void (*run)(long turns);
};

#if defined(__x86_64__)
void baseline(long n) {
  asm volatile(
      ".irp r,0,1,2,3,4,5,6,7,8,9,10,11,14,15\n xorps %%xmm\\r, %%xmm\\r\n .endr\n"
      "1:\n"
      ".irp r,0,2,4,6,8,10\n mulps %%xmm14, %%xmm\\r\n .endr\n"
      ".irp r,1,3,5,7,9,11\n addps %%xmm15, %%xmm\\r\n .endr\n"
      "dec %0\n jnz 1b\n"
      : "+r"(n)
      :
      : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
        "xmm10", "xmm11", "xmm14", "xmm15");
}

void avx2(long n) {
  asm volatile(
      ".irp r,0,1,2,3,4,5,6,7,8,9,10,11,14,15\n vxorps %%ymm\\r, %%ymm\\r, %%ymm\\r\n .endr\n"
      "1:\n"
      ".irp r,0,1,2,3,4,5,6,7,8,9,10,11\n vfmadd231ps %%ymm14, %%ymm15, %%ymm\\r\n .endr\n"
      "dec %0\n jnz 1b\n vzeroupper\n"
      : "+r"(n)
      :
      : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
        "xmm10", "xmm11", "xmm14", "xmm15");
}

void avx512(long n) {
  asm volatile(
      ".irp r,0,1,2,3,4,5,6,7,8,9,10,11,14,15\n vpxorq %%zmm\\r, %%zmm\\r, %%zmm\\r\n .endr\n"
      "1:\n"
      ".irp r,0,1,2,3,4,5,6,7,8,9,10,11\n vfmadd231ps %%zmm14, %%zmm15, %%zmm\\r\n .endr\n"
      "dec %0\n jnz 1b\n vzeroupper\n"
      : "+r"(n)
      :
      : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
        "xmm10", "xmm11", "xmm14", "xmm15");
}

std::vector<Loop> loops() {
  std::vector<Loop> out = {{"baseline", 12 * 4, baseline}};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    out.push_back({"avx2", 12 * 2 * 8, avx2});
  if (__builtin_cpu_supports("avx512f")) out.push_back({"avx512", 12 * 2 * 16, avx512});
  return out;
}
#elif defined(__aarch64__)
void neon(long n) {
  asm volatile(
      ".irp r,0,1,2,3,4,5,6,7,16,17,18,19,20,21,22,23,30,31\n movi v\\r.4s, #0\n .endr\n"
      "1:\n"
      ".irp r,0,1,2,3,4,5,6,7,16,17,18,19,20,21,22,23\n fmla v\\r.4s, v30.4s, v31.4s\n .endr\n"
      "subs %0, %0, #1\n b.ne 1b\n"
      : "+r"(n)
      :
      : "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17", "v18", "v19", "v20",
        "v21", "v22", "v23", "v30", "v31");
}

std::vector<Loop> loops() {
  return {{"neon", 16 * 2 * 4, neon}};
}
#else
std::vector<Loop> loops() {
  return {};
}
#endif

// GCC would make it a call of memcpy, which is measured beside it.
[[gnu::optimize("no-tree-loop-distribute-patterns")]] void copy_loop(float* to,
                                                                     const float* from,
                                                                     std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) to[i] = from[i];
}

}  // namespace

std::vector<std::string> machine_isas() {
  std::vector<std::string> out;
  for (const Loop& loop : loops()) out.emplace_back(loop.isa);
  return out;
}

double peak_flops(const std::string& isa, int threads) {
  for (const Loop& loop : loops()) {
    if (loop.isa != isa) continue;
    const long turns = 200'000;  // some 0.4 ms, in which few threads are interrupted
    const double seconds = best_together(threads, 8, [&](int) { loop.run(turns); });
    return loop.flops * static_cast<double>(turns) * threads / seconds;
  }
  return 0;
}

double peak_flops(int threads) {
  return peak_flops(taper::cpu_isa(), threads);
}

double stream_bytes(int threads) {
  constexpr std::size_t kFloats = std::size_t{16} << 20;
  // From the library's allocator, which keeps them, in huge pages.
  static const taper::Tensor from = taper::ones({kFloats}), to = taper::zeros({kFloats});
  const auto* source = from.data_ptr<float>();
  auto* target = to.data_ptr<float>();
  const std::size_t part = kFloats / static_cast<std::size_t>(threads);
  const double memcpy_seconds = best_together(threads, 3, [&](int t) {
    const std::size_t at = part * static_cast<std::size_t>(t);
    std::memcpy(target + at, source + at, part * sizeof(float));
  });
  const double loop_seconds = best_together(threads, 3, [&](int t) {
    const std::size_t at = part * static_cast<std::size_t>(t);
    copy_loop(target + at, source + at, part);
  });
  return 2 * sizeof(float) * static_cast<double>(part) * threads /
         std::min(memcpy_seconds, loop_seconds);
}

}  // namespace bench
