// Ref<T>: a counted pointer to an object that carries its own count; thread-safe as shared_ptr is.
#pragma once
#include <atomic>
#include <cstdint>
#include <utility>

namespace taper {

// Base of everything a Ref can hold. The last Ref calls T::destroy(T*), or deletes.
struct RefCounted {
  std::atomic<std::uint32_t> refs{0};

  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;
};

template <class T> class Ref {
 public:
  Ref() = default;

  Ref(std::nullptr_t) {}  // NOLINT(google-explicit-constructor)

  explicit Ref(T* p) : p_(p) { add(); }

  Ref(const Ref& other) : p_(other.p_) { add(); }

  Ref(Ref&& other) noexcept : p_(std::exchange(other.p_, nullptr)) {}

  Ref& operator=(Ref other) noexcept {
    std::swap(p_, other.p_);
    return *this;
  }

  ~Ref() { drop(); }

  void reset() {
    T* p = std::exchange(p_, nullptr);
    Ref dying;
    dying.p_ = p;
  }

  T* get() const { return p_; }

  T* operator->() const { return p_; }

  T& operator*() const { return *p_; }

  explicit operator bool() const { return p_ != nullptr; }

  friend bool operator==(const Ref& a, const Ref& b) { return a.p_ == b.p_; }

  std::uint32_t use_count() const {
    return p_ == nullptr ? 0 : p_->refs.load(std::memory_order_acquire);
  }

 private:
  friend struct DebugLayout;  // tells debuggers where things lie

  void add() {
    if (p_ != nullptr) p_->refs.fetch_add(1, std::memory_order_relaxed);
  }

  void drop() {
    if (p_ == nullptr) return;
    // The last holder need not write: nobody else can see the count.
    if (p_->refs.load(std::memory_order_acquire) == 1 ||
        p_->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      T::destroy(p_);
    }
  }

  T* p_ = nullptr;
};

}  // namespace taper
