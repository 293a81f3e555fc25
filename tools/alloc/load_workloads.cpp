// The traces of loads that vary: lengths, batches, experts, requests.
#include "taper/tools/alloc/workload_writer.h"
#include "taper/tools/alloc/workloads.h"

namespace taper {
namespace {

using Blocks = std::vector<std::uint32_t>;

// A batch through `layers` layers that each keep `bytes` for their backward.
void train_step(WorkloadWriter& t, int layers, std::uint64_t bytes) {
  Blocks kept;
  for (int i = 0; i < layers; ++i) {
    const std::string scope = "layer." + std::to_string(i);
    kept.push_back(t.alloc(bytes, "linear", scope));
    kept.push_back(t.alloc(bytes, "relu", scope));
  }
  std::uint32_t dx = t.alloc(bytes, "mse_loss backward");
  for (int i = layers; i-- > 0;) {
    const std::string scope = "layer." + std::to_string(i);
    const std::uint32_t next = t.alloc(bytes, "linear backward", scope);
    t.free({dx, kept.back()});
    kept.pop_back();
    t.free(kept.back());
    kept.pop_back();
    dx = next;
  }
  t.free(dx);
  t.step();
}

void eval_step(WorkloadWriter& t, int layers, std::uint64_t bytes) {
  std::uint32_t x = t.alloc(bytes, "batch");
  for (int i = 0; i < layers; ++i) {
    const std::uint32_t next = t.alloc(bytes, "linear", "layer." + std::to_string(i));
    t.free(x);
    x = next;
  }
  t.free(x);
  t.step();
}

// 2^(x / 256), by a straight line between powers of two: the same on every machine.
std::uint64_t power(std::uint64_t x) {
  return ((256 + x % 256) << (x / 256)) / 256;
}

}  // namespace

// pytorch#122781, with 400 lengths by chance.
Trace embedding_workload() {
  WorkloadWriter t("embedding");
  Chance chance(7);
  t.alloc(1000 * 256 * 4, "weight", "embedding");
  Blocks last;
  for (int step = 0; step < 400; ++step) {
    const std::uint64_t length = chance.between(1, 1023);
    const std::uint32_t ids = t.alloc(1024 * length * 8, "batch");
    const std::uint32_t out = t.alloc(1024 * length * 256 * 4, "embedding", "embedding");
    t.free(last);
    last = {out, ids};
    t.step();
  }
  t.free(last);
  return t.finish();
}

// 32 layers, 8 sequences, 8 heads of 128 numbers in f16: 512 tokens, and 200 more one by one.
Trace kv_cat_workload() {
  WorkloadWriter t("kv_cat");
  constexpr std::uint64_t kToken = 8 * 8 * 128 * 2;
  Blocks cache;
  for (int i = 0; i < 64; ++i)
    cache.push_back(t.alloc(512 * kToken, "cat", "layer." + std::to_string(i / 2)));
  for (std::uint64_t tokens = 513; tokens <= 712; ++tokens) {
    for (std::size_t i = 0; i < cache.size(); ++i) {
      const std::uint32_t next = t.alloc(tokens * kToken, "cat", "layer." + std::to_string(i / 2));
      t.free(cache[i]);
      cache[i] = next;
    }
    t.step();
  }
  t.free(cache);
  return t.finish();
}

// 300 batches of 24 tensors of about n / 2 MiB; a tensor of 1 to 4 MiB of each stays.
Trace pins_workload() {
  WorkloadWriter t("pins");
  Chance chance(8);
  Blocks pins;
  for (int step = 0; step < 300; ++step) {
    const std::uint64_t n = chance.between(8, 64);
    Blocks batch;
    for (int i = 0; i < 24; ++i) {
      batch.push_back(
          t.alloc(n * kMi / 2 + chance.between(0, kMi), "linear", "layer." + std::to_string(i)));
      if (i == 12) pins.push_back(t.alloc(chance.between(1100 * kKi, 4 * kMi), "metric"));
    }
    t.free_backwards(batch);
    t.step();
  }
  t.free(pins);
  return t.finish();
}

Trace growing_batch_workload() {
  WorkloadWriter t("growing_batch");
  for (std::uint64_t batch = 1; batch <= 64; ++batch) train_step(t, 16, batch * 768 * kKi);
  return t.finish();
}

// 8 layers of 8 experts; 8192 tokens of 1024 numbers in f16 are dealt out unevenly.
Trace experts_workload() {
  WorkloadWriter t("experts");
  Chance chance(3);
  constexpr std::uint64_t kTokens = 8192, kRow = 2048;
  for (int step = 0; step < 40; ++step) {
    Blocks kept;
    for (int layer = 0; layer < 8; ++layer) {
      const std::string scope = "layer." + std::to_string(layer);
      kept.push_back(t.alloc(kTokens * kRow, "router", scope));
      std::uint64_t left = kTokens;
      for (int expert = 0; expert < 8; ++expert) {
        const std::uint64_t most = left / static_cast<std::uint64_t>(8 - expert) * 2;
        const std::uint64_t tokens =
            expert == 7 ? left : chance.between(0, most < left ? most : left);
        left -= tokens;
        if (tokens == 0) continue;
        const std::string name = scope + ".expert." + std::to_string(expert);
        kept.push_back(t.alloc(tokens * kRow, "index_select", name));
        kept.push_back(t.alloc(4 * tokens * kRow, "linear", name));
        const std::uint32_t hidden = t.alloc(4 * tokens * kRow, "gelu", name);
        kept.push_back(t.alloc(tokens * kRow, "linear", name));
        t.free(hidden);
      }
    }
    t.free_backwards(kept);
    t.step();
  }
  return t.finish();
}

// 32 layers, 8 heads of 128 numbers in f16, keys and values: 128 KiB a token, 2 MiB a block. One
// decoding step after the other; a request arrives in every third.
Trace paged_kv_workload() {
  WorkloadWriter t("paged_kv");
  Chance chance(5);
  struct Request {
    std::uint64_t tokens, until;
    Blocks blocks;
  };
  std::vector<Request> running;
  for (int step = 0; step < 3000; ++step) {
    std::uint64_t computed = running.size();  // tokens of this step
    if (chance.between(0, 2) == 0) {
      // A sum of four numbers is nearly normal; its power nearly lognormal: 16 to 2048 tokens.
      const auto length = [&] {
        std::uint64_t sum = 0;
        for (int i = 0; i < 4; ++i) sum += chance.between(0, 7 * 64);
        return 16 * power(sum);
      };
      Request request;
      request.tokens = length();
      request.until = request.tokens + length();
      computed += request.tokens;
      running.push_back(request);
    }
    for (Request& r : running) {
      ++r.tokens;
      while (r.blocks.size() * 16 < r.tokens)
        r.blocks.push_back(t.alloc(16 * 128 * kKi, "kv block"));
    }
    if (computed != 0) {
      const std::uint32_t x = t.alloc(computed * 8192, "linear");
      const std::uint32_t logits = t.alloc((running.size() + 1) * 128'256 * 4, "linear", "head");
      t.free({x, logits});
    }
    std::vector<Request> next;
    for (Request& r : running) {
      if (r.tokens < r.until) next.push_back(std::move(r));
      else t.free(r.blocks);
    }
    running = std::move(next);
    t.step();
  }
  for (const Request& r : running) t.free(r.blocks);
  return t.finish();
}

Trace eval_between_workload() {
  WorkloadWriter t("eval_between");
  for (int round = 0; round < 8; ++round) {
    for (int step = 0; step < 10; ++step) train_step(t, 24, 24 * kMi);
    for (int step = 0; step < 3; ++step) eval_step(t, 24, 150 * kMi);
  }
  return t.finish();
}

// RMM's random_allocations: 10,000 of them, up to 64 MiB, while less than 16,000 MiB is out; 73 of
// 100 events allocate.
Trace rmm_random_workload() {
  WorkloadWriter t("rmm_random");
  Chance chance(11);
  struct Out {
    std::uint32_t block;
    std::uint64_t bytes;
  };
  std::vector<Out> out;
  std::uint64_t total = 0;
  int made = 0;
  while (made < 10'000 || !out.empty()) {
    const std::uint64_t bytes = chance.between(1, 64 * kMi);
    const bool wants = chance.between(0, 99) < 73 && made < 10'000 && total + bytes < 16'000 * kMi;
    if (out.empty() || wants) {
      out.push_back({t.alloc(bytes, "random"), bytes});
      total += bytes;
      if (++made % 1000 == 0) t.step();
      continue;
    }
    const std::size_t which = chance.between(0, out.size() - 1);
    t.free(out[which].block);
    total -= out[which].bytes;
    out[which] = out.back();
    out.pop_back();
  }
  return t.finish();
}

}  // namespace taper
