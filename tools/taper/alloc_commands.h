// The subcommands of `taper alloc`: what each is asked for.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace taper::tools {

// How a trace is run on the simulated device.
struct AllocMachine {
  std::string policies = "taper,torch_native,torch_expandable";
  std::string options;   // as TAPER_ALLOC spells them, without policy and trace
  std::string capacity;  // "80G"; empty: as much as it takes
  int threads = 1;
  std::uint64_t timing_seed = 0;
};

struct ReplayRequest {
  std::vector<std::string> inputs;
  AllocMachine machine;
  int time = 0;        // measure the time, in so many runs
  bool brief = false;  // ratios alone
  bool json = false;
};

struct GenerateRequest {
  std::vector<std::string> names;
  std::string out, format;
  bool list = false, json = false;
};

struct ConvertRequest {
  std::string input, out, format;
  bool json = false;
};

struct ReportRequest {
  std::string input, device, out;
  AllocMachine machine;
  bool json = false;
};

struct MapRequest {
  std::string input, device;
  std::int64_t at = -1;  // -1: where most is reserved
  std::string page = "2M";
  AllocMachine machine;
  bool json = false;
};

struct PlanRequest {
  std::string input, device, out;
  std::string alignment = "512";
  double search = 0;  // seconds
  bool whole = false, json = false;
};

struct RecordRequest {
  std::vector<std::string> program;
  std::string out = "taper.trace";
  bool json = false;
};

// Each gives the exit code. What stands in the way is thrown as taper::Error.
int replay_traces(const ReplayRequest& request);
int find_min_capacity(const ReplayRequest& request);
int generate_traces(const GenerateRequest& request);
int convert_trace(const ConvertRequest& request);
int write_report(const ReportRequest& request);
int show_map(const MapRequest& request);
int plan_trace(const PlanRequest& request);
int record_program(const RecordRequest& request);

}  // namespace taper::tools
