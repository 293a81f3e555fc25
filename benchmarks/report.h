// What was measured, as lines of a table: medians, ratios of pairs, and which goals were met.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "taper/benchmarks/bench.h"

namespace bench {

struct Cell {
  std::string column;
  double value;        // NaN: this column does not have the row
  double ratio;        // ours / value: the median of pairs from the same turn
  double at_most = 0;  // asked of the ratio; 0: nothing
};

struct Line {
  Row row;
  int threads;
  double ours;
  std::vector<Cell> cells;
  std::optional<bool> met;  // all that is asked and could be judged
};

// The samples of one group on so many threads. Values are in the units of the rows.
class Report {
 public:
  Report(std::vector<Row> rows, std::vector<std::string> columns, int threads)
      : rows_(std::move(rows)), columns_(std::move(columns)), threads_(threads) {}

  const std::vector<Row>& rows() const { return rows_; }

  // `column` is "ours" or one of the columns. A round adds each at most once.
  void add(const std::string& row, const std::string& column, double value);
  void end_round();  // makes the rows that are made of others

  std::vector<Line> lines() const;

 private:
  using Samples = std::map<std::string, std::vector<double>>;  // by column

  double last(const std::string& row, const std::string& column) const;

  std::vector<Row> rows_;
  std::vector<std::string> columns_;
  int threads_;
  std::map<std::string, Samples> samples_;
};

inline constexpr const char* kOurs = "ours";

double units_in_a_second(const std::string& unit);

void print_table(const std::vector<Line>& lines);
// One object for each line and column beside it: name, threads, ours, peer, peer_name, limit, unit,
// ratio, goal, met.
void write_json(const std::string& path, const std::vector<Line>& lines);
// Bars of ratios, with goals marked.
void write_svg(const std::string& path, const std::string& title, const std::vector<Line>& lines);

}  // namespace bench
