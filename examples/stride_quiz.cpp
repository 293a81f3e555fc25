// A quiz: ten tensors, predict the strides of each. --answers plays the right answers.
#include <cstdio>
#include <cstring>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "taper/taper.h"

using namespace taper;

struct Question {
  const char* code;
  Tensor x;
  std::vector<std::int64_t> strides;
  const char* why;
};

std::vector<Question> questions() {
  const Tensor x = arange(24).reshape({2, 3, 4});
  const Tensor square = arange(16).reshape({4, 4});
  return {
      {"x = arange(24).reshape({2, 3, 4})",
       x,
       {12, 4, 1},
       "row-major: each stride is the product of the sizes to its right"},
      {"x.transpose(1, 2)",
       x.transpose(1, 2),
       {12, 1, 4},
       "the strides trade places, no byte moves"},
      {"x.permute({2, 0, 1})", x.permute({2, 0, 1}), {1, 12, 4}, "the same, for three dims"},
      {"x.slice(2, 0, 4, 2)", x.slice(2, 0, 4, 2), {12, 4, 2}, "a step of 2 doubles the stride"},
      {"x.select(1, 2)", x.select(1, 2), {12, 1}, "the dim goes; the offset says where it was"},
      {"ones({3, 1}).expand({3, 5})",
       ones({3, 1}).expand({3, 5}),
       {1, 0},
       "stride 0: five columns are one column seen five times"},
      {"x.unsqueeze(1)",
       x.unsqueeze(1),
       {12, 12, 4, 1},
       "any number would do for size 1; the rule takes size * stride of the dim at that place"},
      {"arange(16).reshape({4, 4}).diagonal()",
       square.diagonal(),
       {5},
       "one down and one right: 4 + 1"},
      {"x.transpose(0, 1).view({3, 2, 2, 2})",
       x.transpose(0, 1).view({3, 2, 2, 2}),
       {4, 12, 2, 1},
       "a view of a view: the last dim, whole in memory, may still be cut in two"},
      {"x.transpose(1, 2).contiguous()",
       x.transpose(1, 2).contiguous(),
       {12, 3, 1},
       "contiguous() copies: sizes (2, 4, 3) in row-major order"},
  };
}

std::string text(IntArrayRef list) {
  std::string out;
  for (const std::int64_t n : list) out += (out.empty() ? "" : " ") + std::to_string(n);
  return out;
}

int main(int argc, char** argv) {
  const bool play = argc > 1 && std::strcmp(argv[1], "--answers") == 0;
  std::printf("Ten tensors. For each, type its strides (in elements), as in: 12 4 1\n");
  int right = 0, number = 0;
  for (const Question& q : questions()) {
    std::printf("\n%2d.  %s\n     sizes (%s)   strides? ", ++number, q.code,
                text(q.x.sizes()).c_str());
    std::fflush(stdout);
    std::vector<std::int64_t> answer;
    if (play) {
      answer = q.strides;
      std::printf("%s\n", text(answer).c_str());
    } else {
      std::string line;
      if (!std::getline(std::cin, line)) break;
      for (char& c : line)
        c = c == '-' || (c >= '0' && c <= '9') ? c : ' ';  // commas and brackets do no harm
      std::istringstream in(line);
      for (std::int64_t n; in >> n;) answer.push_back(n);
    }
    const bool good = q.x.strides() == IntArrayRef(answer);
    right += good ? 1 : 0;
    if (good) std::printf("     Right: %s.\n", q.why);
    else std::printf("     No, (%s): %s.\n", text(q.x.strides()).c_str(), q.why);
  }
  const char* verdict = right == 10 ? "You can read a matmul kernel now."
                        : right >= 7
                            ? "One more round and they are yours."
                            : "Stride = how far the memory address moves for one step along a dim.";
  std::printf("\n%d of 10. %s\n", right, verdict);
  return play && right != 10 ? 1 : 0;
}
