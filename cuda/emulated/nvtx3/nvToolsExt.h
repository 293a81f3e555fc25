// The face of NVTX in the emulated build: ranges are written down, for tests to read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

constexpr std::uint16_t NVTX_VERSION = 3;
constexpr std::int32_t NVTX_MESSAGE_TYPE_ASCII = 1;

union nvtxMessageValue_t {
  const char* ascii;
  const wchar_t* unicode;
};

struct nvtxEventAttributes_t {
  std::uint16_t version;
  std::uint16_t size;
  std::int32_t messageType;
  nvtxMessageValue_t message;
};

constexpr std::uint16_t NVTX_EVENT_ATTRIB_STRUCT_SIZE = sizeof(nvtxEventAttributes_t);

using nvtxDomainHandle_t = struct nvtxDomain_st*;

nvtxDomainHandle_t nvtxDomainCreateA(const char* name);
int nvtxDomainRangePushEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* range);
int nvtxDomainRangePop(nvtxDomainHandle_t domain);

namespace taper::emulated {

// What the calling thread has pushed so far in the domain "taper", each behind two spaces for each
// range around it. `depth` becomes how many are open.
std::vector<std::string> nvtx_ranges(int* depth);
void forget_nvtx_ranges();  // of the calling thread; the open ones stay open

}  // namespace taper::emulated
