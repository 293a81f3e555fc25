// What reductions, scans, sorts and softmax refuse.
#include "taper/tests/errors/refusal.h"

namespace taper::errors {
namespace {

using Reductions = Refusal;

TEST_F(Reductions, DimsMustExist) {
  const std::vector<std::string> texts{"dim 2", "[-2, 1]"};
  refuses("sum", texts, [&] { here(), sum(f23, 2); });
  refuses("sum", texts, [&] { here(), f23.sum(2); });
  refuses("sum", {"dim -3"}, [&] { here(), sum(f23, {0, -3}); });
  refuses("mean", texts, [&] { here(), mean(f23, 2); });
  refuses("mean", texts, [&] { here(), f23.mean(2); });
  refuses("prod", texts, [&] { here(), prod(f23, 2); });
  refuses("prod", texts, [&] { here(), f23.prod(2); });
  refuses("var", texts, [&] { here(), var(f23, IntArrayRef(2)); });
  refuses("var", texts, [&] { here(), f23.var(IntArrayRef(2)); });
  refuses("std", texts, [&] { here(), taper::std(f23, IntArrayRef(2)); });
  refuses("std", texts, [&] { here(), f23.std(IntArrayRef(2)); });
  refuses("var_mean", texts, [&] { here(), var_mean(f23, 2); });
  refuses("amax", texts, [&] { here(), amax(f23, 2); });
  refuses("amax", texts, [&] { here(), f23.amax(2); });
  refuses("amin", texts, [&] { here(), amin(f23, 2); });
  refuses("amin", texts, [&] { here(), f23.amin(2); });
  refuses("max", texts, [&] { here(), max(f23, std::int64_t{2}); });
  refuses("max", texts, [&] { here(), f23.max(2); });
  refuses("min", texts, [&] { here(), min(f23, std::int64_t{2}); });
  refuses("min", texts, [&] { here(), f23.min(2); });
  refuses("argmax", texts, [&] { here(), argmax(f23, 2); });
  refuses("argmax", texts, [&] { here(), f23.argmax(2); });
  refuses("argmin", texts, [&] { here(), argmin(f23, 2); });
  refuses("argmin", texts, [&] { here(), f23.argmin(2); });
  refuses("any", texts, [&] { here(), any(f23, 2); });
  refuses("any", texts, [&] { here(), f23.any(2); });
  refuses("all", texts, [&] { here(), all(f23, 2); });
  refuses("all", texts, [&] { here(), f23.all(2); });
  refuses("norm", texts, [&] { here(), norm(f23, 2, 2); });
  refuses("norm", texts, [&] { here(), f23.norm(2, 2); });
  refuses("logsumexp", texts, [&] { here(), logsumexp(f23, 2); });
  refuses("logsumexp", texts, [&] { here(), f23.logsumexp(2); });
  refuses("cumsum", texts, [&] { here(), cumsum(f23, 2); });
  refuses("cumsum", texts, [&] { here(), f23.cumsum(2); });
  refuses("cumprod", texts, [&] { here(), cumprod(f23, 2); });
  refuses("cumprod", texts, [&] { here(), f23.cumprod(2); });
  refuses("sort", texts, [&] { here(), sort(f23, 2); });
  refuses("sort", texts, [&] { here(), f23.sort(2); });
  refuses("argsort", texts, [&] { here(), argsort(f23, 2); });
  refuses("argsort", texts, [&] { here(), f23.argsort(2); });
  refuses("topk", texts, [&] { here(), topk(f23, 1, 2); });
  refuses("topk", texts, [&] { here(), f23.topk(1, 2); });
  refuses("softmax", texts, [&] { here(), softmax(f23, 2); });
  refuses("softmax", texts, [&] { here(), f23.softmax(2); });
  refuses("log_softmax", texts, [&] { here(), log_softmax(f23, 2); });
  refuses("log_softmax", texts, [&] { here(), f23.log_softmax(2); });
}

TEST_F(Reductions, ErrorsAboutADimShowTheShape) {
  refuses("sum", {"(2, 3)"}, [&] { here(), sum(f23, 2); });
  refuses("softmax", {"(2, 3)"}, [&] { here(), softmax(f23, 2); });
  refuses("cumsum", {"(2, 3)"}, [&] { here(), cumsum(f23, 2); });
  refuses("max", {"(2, 3)"}, [&] { here(), f23.max(2); });
  refuses("argmin", {"(2, 3)"}, [&] { here(), f23.argmin(2); });
  refuses("any", {"(2, 3)"}, [&] { here(), f23.any(2); });
  refuses("norm", {"(2, 3)"}, [&] { here(), f23.norm(2, 2); });
  refuses("var", {"(2, 3)"}, [&] { here(), f23.var(IntArrayRef(2)); });
  refuses("sort", {"(2, 3)"}, [&] { here(), f23.sort(2); });
}

TEST_F(Reductions, ADimIsNamedOnce) {
  const std::vector<std::string> texts{"twice", "(1, -1)"};
  refuses("sum", texts, [&] { here(), sum(f23, {1, -1}); });
  refuses("mean", texts, [&] { here(), mean(f23, {1, -1}); });
  refuses("var", texts, [&] { here(), var(f23, {1, -1}); });
  refuses("std", texts, [&] { here(), taper::std(f23, {1, -1}); });
  refuses("var_mean", texts, [&] { here(), var_mean(f23, {1, -1}); });
  refuses("amax", texts, [&] { here(), amax(f23, {1, -1}); });
  refuses("amin", texts, [&] { here(), amin(f23, {1, -1}); });
  refuses("norm", texts, [&] { here(), norm(f23, 2, {1, -1}); });
  refuses("logsumexp", texts, [&] { here(), logsumexp(f23, {1, -1}); });
}

TEST_F(Reductions, SomeNeedFloats) {
  refuses("mean", {"i64"}, [&] { here(), mean(i23); });
  refuses("mean", {"i64"}, [&] { here(), i23.mean(0); });
  refuses("mean", {"bool"}, [&] { here(), mean(b23, 0); });
  refuses("var", {"i64"}, [&] { here(), var(i23); });
  refuses("std", {"i64"}, [&] { here(), taper::std(i23); });
  refuses("var_mean", {"i64"}, [&] { here(), var_mean(i23, 0); });
  refuses("norm", {"i64"}, [&] { here(), norm(i23); });
}

TEST_F(Reductions, NothingHasNoExtreme) {
  const std::vector<std::string> texts{"(0, 3)", "size 0"};
  refuses("amax", texts, [&] { here(), amax(f03); });
  refuses("amax", texts, [&] { here(), amax(f03, 0); });
  refuses("amin", texts, [&] { here(), amin(f03, 0); });
  refuses("max", texts, [&] { here(), max(f03); });
  refuses("max", texts, [&] { here(), max(f03, std::int64_t{0}); });
  refuses("min", texts, [&] { here(), min(f03); });
  refuses("min", texts, [&] { here(), f03.min(0); });
  refuses("argmax", texts, [&] { here(), argmax(f03); });
  refuses("argmax", texts, [&] { here(), argmax(f03, 0); });
  refuses("argmin", texts, [&] { here(), argmin(f03); });
  refuses("argmin", texts, [&] { here(), f03.argmin(0); });
}

TEST_F(Reductions, TopkTakesNoMoreThanThereAre) {
  refuses("topk", {"(2, 3)", "4"}, [&] { here(), topk(f23, 4); });
  refuses("topk", {"(2, 3)", "-1"}, [&] { here(), f23.topk(-1); });
  refuses("topk", {"(2, 3)", "3"}, [&] { here(), f23.topk(3, 0); });
}

TEST_F(Reductions, UndefinedTensorsAreRefused) {
  refuses("sum", {nothing}, [&] { here(), sum(none, 0); });
  refuses("mean", {nothing}, [&] { here(), mean(none, 0); });
  refuses("prod", {nothing}, [&] { here(), prod(none, 0); });
  refuses("var", {nothing}, [&] { here(), var(none); });
  refuses("std", {nothing}, [&] { here(), taper::std(none); });
  refuses("amax", {nothing}, [&] { here(), amax(none); });
  refuses("argmax", {nothing}, [&] { here(), argmax(none); });
  refuses("any", {nothing}, [&] { here(), any(none, 0); });
  refuses("norm", {nothing}, [&] { here(), norm(none); });
  refuses("logsumexp", {nothing}, [&] { here(), logsumexp(none, 0); });
  refuses("cumsum", {nothing}, [&] { here(), cumsum(none, 0); });
  refuses("cumprod", {nothing}, [&] { here(), none.cumprod(0); });
  refuses("sort", {nothing}, [&] { here(), sort(none); });
  refuses("topk", {nothing}, [&] { here(), topk(none, 1); });
  refuses("softmax", {nothing}, [&] { here(), softmax(none, 0); });
  refuses("log_softmax", {nothing}, [&] { here(), none.log_softmax(0); });
}

}  // namespace
}  // namespace taper::errors
