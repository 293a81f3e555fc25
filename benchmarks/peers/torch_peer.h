// What LibTorch's program measures row by row, for the groups that take turns.
#pragma once
#include <string>

// Seconds; NaN for a row that it does not know.
double train_seconds(const std::string& row);
double kernel_seconds(const std::string& row);
