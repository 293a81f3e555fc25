// Marks over emulated events: what a stream that does not exist costs.
#include "taper/cuda/marks.h"

#include <gtest/gtest.h>

#include "taper/core/base/error.h"
#include "taper/cuda/emulated/runtime.h"

namespace taper::cuda {
namespace {

// Freeing a block that was recorded on such a stream asks for a mark each time.
TEST(Marks, AStreamThatIsNotThereTakesNoEvent) {
  Marks marks(0);
  const StreamMark first = marks.add(0);
  marks.synchronize(0, first);
  const auto made = [] { return emulated::Runtime::get().events.size(); };
  const std::size_t before = made();
  for (int i = 0; i < 10; ++i) EXPECT_THROW(marks.add(999), Error);
  marks.add(0);
  EXPECT_EQ(made(), before);  // the first one's, again
}

}  // namespace
}  // namespace taper::cuda
