// The functions as ordinary files are compiled: the bits that every machine must give.
#include "taper/tests/core/math_bits.h"

#include <string>

#include <gtest/gtest.h>

namespace taper::math_bits {
namespace {

TEST(MathBits, AreThoseOfEveryMachine) {
  size_t count = 0;
  for_each_digest([&](const Digest& digest) {
    const Digest expected = count < std::size(kExpected) ? kExpected[count] : Digest{"", 0};
    EXPECT_EQ(std::string(digest.name), expected.name);
    EXPECT_EQ(digest.bits, expected.bits)
        << "    {\"" << digest.name << "\", 0x" << std::hex << digest.bits << "},";
    ++count;
  });
  EXPECT_EQ(count, std::size(kExpected));
}

}  // namespace
}  // namespace taper::math_bits
