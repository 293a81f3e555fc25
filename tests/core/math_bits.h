// A digest of the bits of every function over fixed inputs, for the instruction set of whoever
// includes it.
#pragma once

#include "taper/core/philox.h"

namespace taper::math_bits {

struct Digest {
  const char* name;
  uint64_t bits;
};

inline namespace TAPER_ISA {

// FNV-1a over the bits, all NaNs counted as one.
class Hasher {
 public:
  void see(float value) { mix(value != value ? 0x7fc00000u : bit_cast<uint32_t>(value)); }
  void see(double value) { mix(value != value ? 0x7ff8000000000000u : bit_cast<uint64_t>(value)); }
  uint64_t hash() const { return hash_; }

 private:
  void mix(uint64_t bits) { hash_ = (hash_ ^ bits) * 0x100000001b3u ^ (hash_ >> 29); }

  uint64_t hash_ = 0xcbf29ce484222325u;
};

constexpr uint64_t kSamples = 30000;

// Every third input is any pattern, the others lie where the functions are not trivial.
inline void inputs(uint64_t i, double& x, double& y) {
  const philox::Words words = philox::block(1, i, 0);
  const uint64_t a = (uint64_t{words.lane[0]} << 32) | words.lane[1];
  const uint64_t b = (uint64_t{words.lane[2]} << 32) | words.lane[3];
  const double scale = i % 3 == 1 ? 0x1p-62 : 0x1p-58;  // [-2, 2) or [-32, 32)
  x = i % 3 == 0 ? bit_cast<double>(a) : static_cast<double>(static_cast<int64_t>(a)) * scale;
  y = i % 3 == 0 ? bit_cast<double>(b) : static_cast<double>(static_cast<int64_t>(b)) * scale;
}

template <class Function> uint64_t digest(const Function& function) {
  Hasher hasher;
  for (uint64_t i = 0; i < kSamples; ++i) {
    double x = 0, y = 0;
    inputs(i, x, y);
    hasher.see(function(x, y));
    const uint32_t low = static_cast<uint32_t>(bit_cast<uint64_t>(x));
    const bool any = i % 3 == 0;
    hasher.see(function(any ? bit_cast<float>(low) : static_cast<float>(x), static_cast<float>(y)));
  }
  return hasher.hash();
}

template <class See> void for_each_digest(const See& see) {
#define TAPER_DIGEST(name) see(Digest{#name, digest([](auto x, auto) { return math::name(x); })})
  TAPER_DIGEST(exp);
  TAPER_DIGEST(exp2);
  TAPER_DIGEST(expm1);
  TAPER_DIGEST(log);
  TAPER_DIGEST(log1p);
  TAPER_DIGEST(log2);
  TAPER_DIGEST(log10);
  TAPER_DIGEST(softplus);
  TAPER_DIGEST(log_sigmoid);
  TAPER_DIGEST(sigmoid);
  TAPER_DIGEST(sinh);
  TAPER_DIGEST(cosh);
  TAPER_DIGEST(tanh);
  TAPER_DIGEST(sin);
  TAPER_DIGEST(cos);
  TAPER_DIGEST(tan);
  TAPER_DIGEST(asin);
  TAPER_DIGEST(acos);
  TAPER_DIGEST(atan);
  TAPER_DIGEST(erf);
  TAPER_DIGEST(erfc);
  TAPER_DIGEST(erfinv);
  TAPER_DIGEST(rsqrt);
  TAPER_DIGEST(floor);
  TAPER_DIGEST(ceil);
  TAPER_DIGEST(trunc);
  TAPER_DIGEST(round);
#undef TAPER_DIGEST
  see(Digest{"pow", digest([](auto x, auto y) { return math::pow(x, y); })});
  see(Digest{"atan2", digest([](auto x, auto y) { return math::atan2(x, y); })});
  see(Digest{"remainder", digest([](auto x, auto y) { return math::remainder(x, y); })});
  see(Digest{"fma", digest([](auto x, auto y) { return math::fma(x, y, x); })});
  uint32_t words[philox::kLanes][64];
  uint32_t* const lanes[philox::kLanes] = {words[0], words[1], words[2], words[3]};
  philox::blocks_by_lane(7, 0xfffffff0u, 1, 64, lanes);
  Hasher blocks;
  for (const auto& lane : words) {
    for (const uint32_t word : lane) blocks.see(static_cast<double>(word));
  }
  see(Digest{"blocks_by_lane", blocks.hash()});
  Hasher normal;
  for (uint64_t i = 0; i < kSamples; ++i) {
    const philox::Four<float> floats = philox::normal_block<float>(1, i);
    const philox::Four<double> doubles = philox::normal_block<double>(1, i);
    for (uint64_t lane = 0; lane < philox::kLanes; ++lane) {
      normal.see(floats.lane[lane]);
      normal.see(doubles.lane[lane]);
    }
  }
  see(Digest{"normal", normal.hash()});
}

}  // namespace TAPER_ISA

// What every machine must give; a changed coefficient changes its line, and the goldens built on
// it.
inline constexpr Digest kExpected[] = {
    {"exp", 0x48f7d25c2337b7f6},         {"exp2", 0xece49de41ec69f9b},
    {"expm1", 0xc988c9c9cb2d2a29},       {"log", 0xd906f71375a39061},
    {"log1p", 0x7fb6b9bfa747a2b7},       {"log2", 0xa19ae9805f9fb3ee},
    {"log10", 0xa0478872d3bfef0d},       {"softplus", 0x4163a7e80ac09ac5},
    {"log_sigmoid", 0x24d0f85de15d47bc}, {"sigmoid", 0xaae82eccf7aa74a7},
    {"sinh", 0xf129caca696f46a4},        {"cosh", 0xced7455d608eab75},
    {"tanh", 0x438d16ee3a3abc73},        {"sin", 0xa58a9d7c9ee48cc9},
    {"cos", 0x76bb562a6fcbc69},          {"tan", 0x45e8b337ba66c57c},
    {"asin", 0xbcf48a194852d795},        {"acos", 0xc68ee578e95ffbae},
    {"atan", 0xad88350975a2b3ea},        {"erf", 0x5cce8d431a742c60},
    {"erfc", 0xc7742fb5bc71dfa4},        {"erfinv", 0x62659c3f8e643059},
    {"rsqrt", 0x215cb924927ba002},       {"floor", 0xb5cb3688338c4842},
    {"ceil", 0x3c0f2589253f8a15},        {"trunc", 0x3095bc4823de4897},
    {"round", 0x47a3b73edcac5827},       {"pow", 0x5544a3354c30cec1},
    {"atan2", 0xccf6dc028ca9137c},       {"remainder", 0x839ef693d8e3c01f},
    {"fma", 0x456e4af5bd30f250},         {"blocks_by_lane", 0xaa2374ef35bf7f2d},
    {"normal", 0xf3a99ea9ea5b0015},
};

}  // namespace taper::math_bits
