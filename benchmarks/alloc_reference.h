// The usual structures of a caching allocator (a set by size, a map by address, a mutex each): a
// yardstick for the alloc group.
#pragma once
#include <cstddef>
#include <mutex>
#include <set>
#include <unordered_map>

namespace bench {

// Best fit with splitting and coalescing over made-up addresses. Never asks a device twice for what
// lies free.
class SetAllocator {
 public:
  ~SetAllocator() {
    for (Chunk* c = first_; c != nullptr;) {
      Chunk* next = c->next;
      delete c;
      c = next;
    }
  }

  std::size_t allocate(std::size_t bytes) {
    bytes = (bytes + 511) / 512 * 512;
    const std::lock_guard lock(mutex_);
    Chunk key;
    key.bytes = bytes;
    const auto it = free_.lower_bound(&key);
    Chunk* chunk = it == free_.end() ? grow(bytes) : *it;
    if (it != free_.end()) free_.erase(it);
    if (chunk->bytes > bytes) {
      auto* rest =
          new Chunk{chunk->address + bytes, chunk->bytes - bytes, chunk, chunk->next, false};
      if (rest->next != nullptr) rest->next->prev = rest;
      else last_ = rest;
      chunk->next = rest;
      chunk->bytes = bytes;
      free_.insert(rest);
    }
    chunk->live = true;
    const std::lock_guard addresses(address_mutex_);
    by_address_[chunk->address] = chunk;
    return chunk->address;
  }

  void free(std::size_t address) {
    Chunk* chunk = nullptr;
    {
      const std::lock_guard addresses(address_mutex_);
      const auto it = by_address_.find(address);
      chunk = it->second;
      by_address_.erase(it);
    }
    const std::lock_guard lock(mutex_);
    chunk->live = false;
    if (chunk->next != nullptr && !chunk->next->live) {
      free_.erase(chunk->next);
      join(chunk);
    }
    if (chunk->prev != nullptr && !chunk->prev->live) {
      chunk = chunk->prev;
      free_.erase(chunk);
      join(chunk);
    }
    free_.insert(chunk);
  }

 private:
  struct Chunk {
    std::size_t address = 0, bytes = 0;
    Chunk *prev = nullptr, *next = nullptr;
    bool live = false;
  };

  struct Smaller {
    bool operator()(const Chunk* a, const Chunk* b) const {
      return a->bytes != b->bytes ? a->bytes < b->bytes : a->address < b->address;
    }
  };

  Chunk* grow(std::size_t bytes) {
    const std::size_t at = last_ == nullptr ? 0 : last_->address + last_->bytes;
    auto* chunk = new Chunk{at, (bytes + (1 << 21) - 1) >> 21 << 21, last_, nullptr, false};
    (last_ == nullptr ? first_ : last_->next) = chunk;
    last_ = chunk;
    return chunk;
  }

  // With the next one, which is gone from the set.
  void join(Chunk* chunk) {
    Chunk* next = chunk->next;
    chunk->bytes += next->bytes;
    chunk->next = next->next;
    if (chunk->next != nullptr) chunk->next->prev = chunk;
    else last_ = chunk;
    delete next;
  }

  std::recursive_mutex mutex_;
  std::mutex address_mutex_;
  std::set<Chunk*, Smaller> free_;
  std::unordered_map<std::size_t, Chunk*> by_address_;
  Chunk *first_ = nullptr, *last_ = nullptr;
};

}  // namespace bench
