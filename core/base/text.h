// How messages and reports write amounts and tables.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace taper {

std::string size_text(std::uint64_t bytes);                 // "1.46 GiB"
std::string percent(double share);                          // "12.3 %"
std::string fixed(double x, int digits);                    // "1.003"
std::string count_text(std::uint64_t n, const char* what);  // "1 step", "2 steps"

// Columns as wide as they must be; the first `left` are set left, the others right.
class Table {
 public:
  Table(std::vector<std::string> head, std::size_t left) : rows_{std::move(head)}, left_(left) {}

  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
  std::size_t left_;
};

}  // namespace taper
