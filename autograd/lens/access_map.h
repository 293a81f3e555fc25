// What kernels have done to which bytes, found by address.
#pragma once
#include <bit>
#include <map>

#include "taper/autograd/lens/footprint.h"
#include "taper/core/base/source_loc.h"

namespace taper::lens {

// One operand of one kernel: which bytes, when, and who.
struct Access {
  Footprint bytes;
  bool writes = false;
  std::size_t stream = 0;  // number and tick of StreamOrder
  std::uint64_t tick = 0;
  std::uint64_t serial = 0;  // the younger, the higher
  Stream where{kCPU};
  const char* op = "";
  const char* rule = nullptr;  // the op whose derivative ran; null in forward
  SourceLoc loc;
  std::uint32_t scope = 0;
  DType dtype = DType::kFloat32;
  Sizes sizes;
};

class AccessMap {
 public:
  // Calls visit(access) for each that may meet the range, and forgets those for which it says true.
  template <class Visit> void visit(std::uintptr_t begin, std::uintptr_t end, const Visit& visit) {
    for (std::size_t k = 0; k < kClasses; ++k) {
      auto& those = by_size_[k];
      if (those.empty()) continue;
      const std::uintptr_t longest = std::uintptr_t{2} << k;
      auto at = those.lower_bound(begin > longest ? begin - longest : 0);
      while (at != those.end() && at->first < end) {
        const bool forget = at->second.bytes.end > begin && visit(at->second);
        at = forget ? erase(k, at) : std::next(at);
      }
    }
  }

  template <class Forget> void forget_if(const Forget& forget) {
    for (std::size_t k = 0; k < kClasses; ++k) {
      for (auto at = by_size_[k].begin(); at != by_size_[k].end();)
        at = forget(at->second) ? erase(k, at) : std::next(at);
    }
  }

  void add(const Access& access) {
    const std::uintptr_t span = access.bytes.end - access.bytes.begin;
    by_size_[static_cast<std::size_t>(std::bit_width(span)) - 1].emplace(access.bytes.begin,
                                                                         access);
    ++size_;
  }

  std::size_t size() const { return size_; }

 private:
  using Those = std::multimap<std::uintptr_t, Access>;
  static constexpr std::size_t kClasses = 63;

  Those::iterator erase(std::size_t k, Those::iterator at) {
    --size_;
    return by_size_[k].erase(at);
  }

  // Those that span [2^k, 2^(k + 1)) bytes, by where they begin: what meets a range begins less
  // than 2^(k + 1) before it.
  Those by_size_[kClasses];
  std::size_t size_ = 0;
};

}  // namespace taper::lens
