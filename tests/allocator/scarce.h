// A heap that says no, for what has to do without.
#pragma once
#include <cstddef>

namespace taper::testing {

// While one lives, operator new has nothing above `largest` bytes for this thread.
class Scarce {
 public:
  explicit Scarce(std::size_t largest);
  ~Scarce();
  Scarce(const Scarce&) = delete;
  Scarce& operator=(const Scarce&) = delete;
};

}  // namespace taper::testing
