// Counts the loads and stores that instrumented kernels report.
#include "taper/tests/cuda/traffic/traffic.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <set>
#include <utility>

#include <cuda_runtime.h>
#include <dlfcn.h>

#include "taper/cuda/emulated/machine.h"
#include "taper/cuda/emulated/runtime.h"

namespace taper::traffic {
namespace {

constexpr unsigned kWarp = 32, kWarps = 32;
constexpr std::uintptr_t kSector = 32;

struct Access {
  std::set<std::uintptr_t> sectors, units;  // units: addresses of what a lane took
  std::uint64_t unit_bytes = 0;
};

// One instruction, while a block runs.
struct Site {
  bool is_store = false;
  std::array<std::uint32_t, kWarp * kWarps> times{};  // by thread
  std::array<std::vector<Access>, kWarps> accesses;   // by warp, then by time
  std::uint64_t count = 0, sectors = 0, least = 0;    // of blocks that are done

  void end_block() {
    times.fill(0);
    for (std::vector<Access>& of_warp : accesses) {
      for (const Access& access : of_warp) {
        ++count;
        sectors += access.sectors.size();
        least += (access.units.size() * access.unit_bytes + kSector - 1) / kSector;
      }
      of_warp.clear();
    }
  }
};

std::map<const void*, Site> sites;  // by return address; this program has one thread
uint3 current_block;

void end_block() {
  for (auto& [place, site] : sites) site.end_block();
}

void note(std::uintptr_t address, std::size_t bytes, bool is_store, const void* place) {
  if (!emulated::Machine::mine().is_running()) return;
  int device = 0;
  const auto* pointer = reinterpret_cast<const void*>(address);
  if (emulated::kind_of_memory(pointer, &device) != emulated::MemoryKind::kLive) return;
  const uint3 block = blockIdx;
  if (block.x != current_block.x || block.y != current_block.y || block.z != current_block.z) {
    end_block();
    current_block = block;
  }
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  Site& site = sites[place];
  site.is_store = is_store;
  std::vector<Access>& of_warp = site.accesses[thread / kWarp];
  const std::uint32_t time = site.times[thread]++;
  if (of_warp.size() <= time) of_warp.resize(time + 1);
  Access& access = of_warp[time];
  access.unit_bytes = bytes;
  access.units.insert(address);
  for (std::uintptr_t s = address / kSector; s <= (address + bytes - 1) / kSector; ++s) {
    access.sectors.insert(s);
  }
}

std::string file_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// Functions and places of the frames that were inlined into one, from the inside.
std::vector<std::pair<std::string, std::string>> frames_at(const void* place) {
  Dl_info info{};
  dladdr(place, &info);
  const auto offset = static_cast<const char*>(place) - static_cast<const char*>(info.dli_fbase);
  char command[512];
  std::snprintf(command, sizeof(command), "addr2line -Cife '%s' 0x%lx", info.dli_fname,
                static_cast<unsigned long>(offset - 1));
  std::vector<std::pair<std::string, std::string>> frames;
  std::FILE* pipe = popen(command, "r");
  if (pipe == nullptr) return frames;
  std::array<char, 4096> function{}, where{};
  while (std::fgets(function.data(), function.size(), pipe) != nullptr &&
         std::fgets(where.data(), where.size(), pipe) != nullptr) {
    std::string name = function.data(), line = file_name(where.data());
    name.pop_back();
    frames.emplace_back(name, line.substr(0, line.find_first_of(" \n")));
  }
  pclose(pipe);
  return frames;
}

// Without the return type, the arguments and the namespace that has no name.
std::string name_of(std::string function) {
  const std::string unnamed = "(anonymous namespace)::";
  for (std::size_t at = 0; (at = function.find(unnamed)) != std::string::npos;) {
    function.erase(at, unnamed.size());
  }
  function.erase(std::min(function.find('('), function.size()));
  return function.substr(0, 5) == "void " ? function.substr(5) : function;
}

// The innermost line of a .cu or .cuh file: helpers of other headers do not say what is read.
std::string line_of(const std::vector<std::pair<std::string, std::string>>& frames) {
  for (const auto& [function, place] : frames) {
    if (place.find(".cu") != std::string::npos) return place;
  }
  return frames.empty() ? "?" : frames.front().second;
}

}  // namespace

void start() {
  sites.clear();
}

std::vector<Line> lines() {
  end_block();
  std::map<std::pair<std::string, std::string>, Line> found;
  for (const auto& [place, site] : sites) {
    const auto frames = frames_at(place);
    const std::string kernel = frames.empty() ? "?" : name_of(frames.back().first);
    const std::string where = line_of(frames) + (site.is_store ? " store" : " load");
    Line& line = found[{kernel, where}];
    line.kernel = kernel;
    line.place = where;
    line.accesses += site.count;
    line.sectors += site.sectors;
    line.least += site.least;
  }
  std::vector<Line> out;
  for (const auto& [key, line] : found) out.push_back(line);
  std::stable_sort(out.begin(), out.end(),
                   [](const Line& a, const Line& b) { return a.sectors > b.sectors; });
  return out;
}

std::string table(const std::vector<Line>& lines) {
  std::string out = "sectors/warp  least  of        line\n";
  for (const Line& line : lines) {
    char row[160];
    const auto n = static_cast<double>(line.accesses);
    std::snprintf(row, sizeof(row), "%12.2f %6.2f  %-9lu %-32s ",
                  static_cast<double>(line.sectors) / n, static_cast<double>(line.least) / n,
                  static_cast<unsigned long>(line.accesses), line.place.c_str());
    out += row + line.kernel + "\n";
  }
  return out;
}

}  // namespace taper::traffic

// What GCC calls before each access with -fsanitize=kernel-address.
extern "C" {

void __asan_load1_noabort(std::uintptr_t address) {
  taper::traffic::note(address, 1, false, __builtin_return_address(0));
}

void __asan_store1_noabort(std::uintptr_t address) {
  taper::traffic::note(address, 1, true, __builtin_return_address(0));
}

void __asan_load2_noabort(std::uintptr_t address) {
  taper::traffic::note(address, 2, false, __builtin_return_address(0));
}

void __asan_store2_noabort(std::uintptr_t address) {
  taper::traffic::note(address, 2, true, __builtin_return_address(0));
}

void __asan_load4_noabort(std::uintptr_t address) {
  taper::traffic::note(address, 4, false, __builtin_return_address(0));
}

void __asan_store4_noabort(std::uintptr_t address) {
  taper::traffic::note(address, 4, true, __builtin_return_address(0));
}

void __asan_load8_noabort(std::uintptr_t address) {
  taper::traffic::note(address, 8, false, __builtin_return_address(0));
}

void __asan_store8_noabort(std::uintptr_t address) {
  taper::traffic::note(address, 8, true, __builtin_return_address(0));
}

void __asan_load16_noabort(std::uintptr_t address) {
  taper::traffic::note(address, 16, false, __builtin_return_address(0));
}

void __asan_store16_noabort(std::uintptr_t address) {
  taper::traffic::note(address, 16, true, __builtin_return_address(0));
}

void __asan_loadN_noabort(std::uintptr_t address, std::size_t bytes) {
  taper::traffic::note(address, bytes, false, __builtin_return_address(0));
}

void __asan_storeN_noabort(std::uintptr_t address, std::size_t bytes) {
  taper::traffic::note(address, bytes, true, __builtin_return_address(0));
}

void __asan_handle_no_return() {}

void __asan_before_dynamic_init(const char*) {}

void __asan_after_dynamic_init() {}

}  // extern "C"
