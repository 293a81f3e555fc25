// Short lists: a borrowed run of elements, and an owned one that needs no heap while it is short.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace taper {

// A borrowed, read-only run of elements. Valid while its owner is.
template <class T> class ArrayRef {
 public:
  constexpr ArrayRef() = default;

  constexpr ArrayRef(const T* data, std::size_t size) : data_(data), size_(size) {}

  // The implicit conversions are the point: sizes are written {2, 3}, as in LibTorch. The list
  // lives to the end of the full expression, which is as long as an argument is looked at.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winit-list-lifetime"
#endif
  constexpr ArrayRef(std::initializer_list<T> list) : data_(list.begin()), size_(list.size()) {}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

  ArrayRef(const std::vector<T>& v) : data_(v.data()), size_(v.size()) {}  // NOLINT

  constexpr ArrayRef(const T& one) : data_(&one), size_(1) {}  // NOLINT

  template <class C>
  requires requires(const C& c) {
    { c.data() } -> std::convertible_to<const T*>;
    { c.size() } -> std::convertible_to<std::size_t>;
  }
  constexpr ArrayRef(const C& c) : data_(c.data()), size_(c.size()) {}  // NOLINT

  constexpr const T* data() const {
    return data_;
  }

  constexpr std::size_t size() const {
    return size_;
  }

  constexpr bool empty() const {
    return size_ == 0;
  }

  constexpr const T* begin() const {
    return data_;
  }

  constexpr const T* end() const {
    return data_ + size_;
  }

  constexpr const T& operator[](std::size_t i) const {
    return data_[i];
  }

  constexpr const T& front() const {
    return data_[0];
  }

  constexpr const T& back() const {
    return data_[size_ - 1];
  }

  std::vector<T> vec() const {
    return std::vector<T>(begin(), end());
  }

  friend bool operator==(ArrayRef a, ArrayRef b) {
    if (a.size_ != b.size_) return false;
    for (std::size_t i = 0; i < a.size_; ++i) {
      if (!(a.data_[i] == b.data_[i])) return false;
    }
    return true;
  }

 private:
  const T* data_ = nullptr;
  std::size_t size_ = 0;
};

using IntArrayRef = ArrayRef<std::int64_t>;

// "[2, 3]", as LibTorch prints sizes.
std::ostream& operator<<(std::ostream& out, IntArrayRef list);

// An owned list; the first N elements live inside it, so short lists cost no allocation.
template <class T, std::size_t N> class SmallVector {
 public:
  SmallVector() = default;

  SmallVector(std::initializer_list<T> list) {
    reserve(list.size());
    for (const T& x : list) push_back(x);
  }

  explicit SmallVector(std::size_t n) {
    reserve(n);
    for (std::size_t i = 0; i < n; ++i) emplace_back();
  }

  SmallVector(const SmallVector& other) { append(other); }

  SmallVector(SmallVector&& other) noexcept { take(other); }

  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) {
      clear();
      append(other);
    }
    return *this;
  }

  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) {
      release();
      take(other);
    }
    return *this;
  }

  ~SmallVector() { release(); }

  T* data() { return data_; }

  const T* data() const { return data_; }

  std::size_t size() const { return size_; }

  bool empty() const { return size_ == 0; }

  T* begin() { return data_; }

  T* end() { return data_ + size_; }

  const T* begin() const { return data_; }

  const T* end() const { return data_ + size_; }

  T& operator[](std::size_t i) { return data_[i]; }

  const T& operator[](std::size_t i) const { return data_[i]; }

  T& back() { return data_[size_ - 1]; }

  void push_back(T x) { emplace_back(std::move(x)); }

  template <class... Args> T& emplace_back(Args&&... args) {
    if (size_ == capacity_) reserve(2 * capacity_);
    T* slot = new (data_ + size_) T(std::forward<Args>(args)...);
    ++size_;
    return *slot;
  }

  void reserve(std::size_t n) {
    if (n <= capacity_) return;
    T* bigger = static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t(alignof(T))));
    for (std::size_t i = 0; i < size_; ++i) {
      new (bigger + i) T(std::move(data_[i]));
      data_[i].~T();
    }
    free_heap();
    data_ = bigger;
    capacity_ = n;
  }

  void clear() {
    for (std::size_t i = 0; i < size_; ++i) data_[i].~T();
    size_ = 0;
  }

 private:
  friend struct DebugLayout;  // tells debuggers where things lie

  T* inside() { return reinterpret_cast<T*>(inline_); }

  void append(const SmallVector& other) {
    reserve(other.size_);
    for (const T& x : other) push_back(x);
  }

  void free_heap() {
    if (data_ != inside()) ::operator delete(data_, std::align_val_t(alignof(T)));
  }

  void release() {
    clear();
    free_heap();
    data_ = inside();
    capacity_ = N;
  }

  // Expects an empty *this without a heap block.
  void take(SmallVector& other) {
    if (other.data_ != other.inside()) {
      data_ = std::exchange(other.data_, other.inside());
      capacity_ = std::exchange(other.capacity_, N);
      size_ = std::exchange(other.size_, 0);
      return;
    }
    for (T& x : other) emplace_back(std::move(x));
    other.clear();
  }

  alignas(T) std::byte inline_[N * sizeof(T)];
  T* data_ = inside();
  std::size_t size_ = 0;
  std::size_t capacity_ = N;
};

using Sizes = SmallVector<std::int64_t, 8>;

}  // namespace taper
