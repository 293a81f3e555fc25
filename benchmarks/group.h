// What a group of benchmarks is: its rows, and how ours and the peers' are measured.
#pragma once
#include <string>
#include <vector>

#include "taper/benchmarks/bench.h"

namespace bench {

struct Setup {
  std::string self;  // the path of this program
  int threads = 1;
  bool tiny = false;  // sizes for a test of the benchmarks themselves
  bool peers = true;  // otherwise ours alone
};

// Seconds: ours, and the least that this machine could take at this moment; 0: not known.
struct Turn {
  double ours, limit = 0;
};

// A column of peers. Its value is the least of what its programs say.
struct Peer {
  std::string name;
  // Run by a shell. In groups that take turns they answer rows, see Process in peers.h; in others
  // they print all of the group's.
  std::vector<std::string> commands = {};
  std::vector<Result> (*here)() = nullptr;  // or this program can measure it
};

struct Group {
  const char *name, *about;
  std::vector<Row> (*rows)(const Setup&);
  std::vector<Peer> (*peers)(const Setup&);
  // One row in seconds, in turns with the peers, so that a disturbance meets both;
  Turn (*turn)(const Setup&, const std::string& row);
  // or all rows, in their units.
  std::vector<Result> (*whole)(const Setup&);
};

}  // namespace bench
