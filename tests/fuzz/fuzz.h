// The function that a fuzzer calls with bytes of its choice. Each file of this folder defines it
// for one kind of file, and aborts where something else comes of the bytes than it should; tests
// call it with mutations of good files, and libFuzzer (TAPER_FUZZ) with what it finds.
#pragma once
#include <cstddef>
#include <cstdint>

// Returns 0.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes);
