// Pushes and pops the ranges of NVTX; the only file that sees it.
#include "taper/core/nvtx.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <nvtx3/nvToolsExt.h>

#include "taper/core/base/error.h"
#include "taper/core/base/op_name.h"

namespace taper::lens {
namespace {

std::atomic<bool> there_is_one{false};

nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t made = nvtxDomainCreateA("taper");
  return made;
}

void push(const std::string& name) {
  nvtxEventAttributes_t range{};
  range.version = NVTX_VERSION;
  range.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  range.messageType = NVTX_MESSAGE_TYPE_ASCII;
  range.message.ascii = name.c_str();
  nvtxDomainRangePushEx(domain(), &range);
}

void pop() {
  nvtxDomainRangePop(domain());
}

// The calling thread's open ranges: scopes from the outermost, then the kernel that runs.
struct Open {
  std::uint32_t scope = 0;
  std::vector<std::string> scopes;  // "encoder", "encoder.3"
  bool kernel = false;

  void leave_kernel() {
    if (kernel) pop();
    kernel = false;
  }

  void go_to(std::uint32_t next) {
    if (next == scope) return;
    scope = next;
    const std::string& path = scope_name(next);
    while (!scopes.empty() && !is_inside(path, scopes.back())) {
      pop();
      scopes.pop_back();
    }
    std::size_t end = scopes.empty() ? 0 : scopes.back().size();
    while (end < path.size()) {
      end = std::min(path.find('.', end + 1), path.size());
      scopes.push_back(path.substr(0, end));
      push(scopes.back());
    }
  }

  static bool is_inside(const std::string& path, const std::string& scope) {
    return path.compare(0, scope.size(), scope) == 0 &&
           (path.size() == scope.size() || path[scope.size()] == '.');
  }
};

thread_local Open open_ranges;

std::string name_of(const KernelCall& call) {
  const std::string slot = slot_name(call.slot), op = op_name(call_site);
  std::string name = op.empty() ? slot : op;
  if (name != slot && name.find(": " + slot) == std::string::npos) name += " (" + slot + ")";
  if (call_site.loc().known()) name += " at " + to_string(call_site.loc());
  return name;
}

// Lives as long as the process.
[[maybe_unused]] const NvtxRanges* const for_the_process = [] {
  const char* setting = std::getenv("TAPER_NVTX");
  return setting != nullptr && std::string_view(setting) == "1" ? new NvtxRanges : nullptr;
}();

}  // namespace

NvtxRanges::NvtxRanges() : installed_(!there_is_one.exchange(true)) {
  if (installed_) install(*this);
}

// Ranges of other threads, whose calls are over, stay open: only a thread itself can close them.
NvtxRanges::~NvtxRanges() {
  if (!installed_) return;
  remove(*this);
  open_ranges.leave_kernel();
  open_ranges.go_to(0);
  there_is_one = false;
}

// The kernel before may have thrown, and not come to after().
void NvtxRanges::before(const KernelCall& call) {
  open_ranges.leave_kernel();
  open_ranges.go_to(call_site.scope);
  push(name_of(call));
  open_ranges.kernel = true;
}

void NvtxRanges::after(const KernelCall&) {
  open_ranges.leave_kernel();
}

}  // namespace taper::lens
