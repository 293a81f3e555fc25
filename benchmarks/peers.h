// Who stands beside us: programs that measure others' libraries, and the settings they run in.
//
// LibTorch        the environment as it is, but for the number of threads
// LibTorch best   no OPENBLAS_ variables, a heap that glibc does not give back, waiting threads
// that
//                 soon sleep, and one pool of threads where an OpenBLAS on OpenMP is installed
// PyTorch X       the same best settings, from the Python that $TAPER_PYTHON names, or python3
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "taper/benchmarks/group.h"

namespace bench {

// A peer that answers: each line it reads is a row's name, each line it writes a row's name, a tab
// and seconds, "nan" when it does not know the row.
class Process {
 public:
  explicit Process(const std::string& command);
  ~Process();
  Process(Process&& other) noexcept;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  Process& operator=(Process&&) = delete;

  double ask(const std::string& row);  // NaN when it does not know, or is gone

 private:
  int pid_ = -1;
  std::FILE *to_ = nullptr, *from_ = nullptr;
};

// A column's programs, running.
class Column {
 public:
  explicit Column(const Peer& peer);

  const std::string& name() const { return name_; }

  double ask(const std::string& row);  // the least of the answers; NaN without any

 private:
  std::string name_;
  std::vector<Process> processes_;
};

// `'/path/beside/self/program' arguments`, or "" where it was not built.
std::string program_beside(const Setup& setup, const std::string& program);

std::vector<Peer> torch_peers(const Setup& setup, const std::string& group);
std::vector<Peer> gemm_peers(const Setup& setup);

}  // namespace bench
