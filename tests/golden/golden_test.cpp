// Every golden sample of every op that has an adapter passes, and no op loses its adapter.
#include <gtest/gtest.h>

#include "taper/tests/golden/runner.h"

namespace taper::golden {
namespace {

struct File {
  const char* name;
  int passed;  // may only rise
};

void expect_all(const Report& report, int passed) {
  report.print();
  for (const std::string& failure : report.failures) ADD_FAILURE() << failure;
  EXPECT_GE(report.total().pass, passed) << "samples got lost: did an op lose its adapter?";
}

class Golden : public testing::TestWithParam<File> {};

TEST_P(Golden, SamplesPass) {
  expect_all(run_all(read_archive(GetParam().name)), GetParam().passed);
}

INSTANTIATE_TEST_SUITE_P(Files,
                         Golden,
                         testing::Values(File{"ops_elementwise", 2012},
                                         File{"ops_reductions", 671},
                                         File{"ops_matmul", 115},
                                         File{"ops_shapes", 1665},
                                         File{"ops_nn", 1103},
                                         File{"ops_own", 238}),
                         [](const auto& file) { return std::string(file.param.name); });

TEST(GoldenErrors, AreRefused) {
  expect_all(run_all(read_archive("errors")), 109);
}

TEST(GoldenEdges, HaveTheRightValues) {
  expect_all(run_all(read_table("edge.json")), 113);
}

}  // namespace
}  // namespace taper::golden
