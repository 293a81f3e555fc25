// Runs golden samples: forward, views, gradients, written inputs and in-place twins.
#include "taper/tests/golden/runner.h"

#include <algorithm>
#include <cstdio>

#include "taper/autograd/backward.h"
#include "taper/autograd/grad_mode.h"
#include "taper/tests/golden/compare.h"

namespace taper::golden {
namespace {

constexpr double kForward = 1e-10;
constexpr double kGradient = 1e-8;

std::string check_outputs(const Sample& sample,
                          const std::vector<Tensor>& got,
                          const std::vector<Tensor>& inputs) {
  if (got.size() != sample.outputs.size()) {
    return std::to_string(got.size()) + " outputs, expected " +
           std::to_string(sample.outputs.size());
  }
  for (std::size_t i = 0; i < got.size(); ++i) {
    const TensorRecord& want = sample.outputs[i];
    std::string why = difference(got[i], want, kForward);
    if (why.empty() && want.view_of >= 0) {
      why = view_difference(got[i], want, inputs[static_cast<std::size_t>(want.view_of)]);
    }
    if (!why.empty()) return "output " + std::to_string(i) + ": " + why;
  }
  return "";
}

std::string check_gradients(const Sample& sample,
                            const std::vector<Tensor>& outputs,
                            const std::vector<Tensor>& inputs) {
  std::vector<Tensor> roots, cotangents, wanted;
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].requires_grad()) continue;
    roots.push_back(outputs[i]);
    cotangents.push_back(cotangent(outputs[i], static_cast<int>(i), sample.ones_cotangent));
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].requires_grad()) continue;
    wanted.push_back(inputs[i]);
    positions.push_back(i);
  }
  if (wanted.empty()) return "";
  if (roots.empty()) return "no output requires grad";
  const auto found = taper::grad(roots, wanted, cotangents, std::nullopt, false, true);
  for (std::size_t k = 0; k < found.size(); ++k) {
    const auto& want = sample.grads[positions[k]];
    const std::string name = "gradient " + std::to_string(positions[k]) + ": ";
    if (!want) {
      if (found[k].defined() && !is_zero(found[k])) return name + "not zero, expected none";
    } else if (!found[k].defined()) {
      if (want->length > 0) return name + "none";
    } else if (const std::string why = difference(found[k], *want, kGradient); !why.empty()) {
      return name + why;
    }
  }
  return "";
}

std::string check_written(const Sample& sample, const std::vector<Tensor>& inputs) {
  for (const auto& [position, want] : sample.after) {
    const std::string why = difference(inputs[static_cast<std::size_t>(position)], want, kForward);
    if (!why.empty()) return "input " + std::to_string(position) + " afterwards: " + why;
  }
  return "";
}

std::vector<Tensor> build_inputs(const Sample& sample, bool gradients) {
  std::vector<Tensor> inputs;
  for (TensorRecord record : sample.inputs) {
    record.requires_grad = record.requires_grad && gradients;
    inputs.push_back(build(record));
  }
  return inputs;
}

// x.op_(...) must give what op(x, ...) gives, where the result fits into x.
std::string check_in_place(const Sample& sample) {
  const auto twin = registry().in_place.find(sample.op);
  if (twin == registry().in_place.end() || sample.outputs.size() != 1) return "";
  if (sample.args.empty() || sample.args[0].kind != Value::Kind::kTensor) return "";
  const auto self = static_cast<std::size_t>(sample.args[0].integer);
  const TensorRecord& to = sample.inputs[self];
  if (to.shape != sample.outputs[0].shape || to.dtype != sample.outputs[0].dtype) return "";
  const std::vector<Tensor> inputs = build_inputs(sample, false);
  if (may_overlap_itself(inputs[self].layout())) return "";  // refused, and should be
  const std::uint32_t version = inputs[self].version();
  twin->second(Args(sample, inputs));
  std::string why = difference(inputs[self], sample.outputs[0], kForward);
  if (why.empty() && inputs[self].version() == version && inputs[self].numel() > 0) {
    why = "the version did not rise";
  }
  return why.empty() ? "" : "in place: " + why;
}

std::string first_wrong(const Sample& sample, const Adapter& call) {
  const std::vector<Tensor> inputs = build_inputs(sample, true);
  const std::vector<Tensor> outputs = call(Args(sample, inputs));
  std::string why = check_outputs(sample, outputs, inputs);
  if (why.empty()) why = check_written(sample, inputs);
  if (why.empty() && !sample.grads.empty()) why = check_gradients(sample, outputs, inputs);
  if (why.empty()) why = check_in_place(sample);
  return why;
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text.substr(0, 300);
}

std::string title(const Sample& s) {
  std::string text = s.full_name() + " #" + std::to_string(s.number);
  if (!s.kind.empty()) text += " (" + s.kind + ")";
  if (!s.note.empty()) text += " \"" + s.note + "\"";
  return text;
}

}  // namespace

const Adapter* Registry::find(const Sample& sample) const {
  auto found = calls.find(sample.full_name());
  if (found == calls.end()) found = calls.find(sample.op);
  return found == calls.end() ? nullptr : &found->second;
}

const Registry& registry() {
  static const Registry all = [] {
    Registry r;
    add_elementwise(r);
    add_reductions(r);
    add_products(r);
    add_shapes(r);
    add_indexing(r);
    add_activations(r);
    add_nn(r);
    add_losses(r);
    return r;
  }();
  return all;
}

Outcome run(const Sample& sample, const Adapter& call) {
  try {
    if (sample.throws) {
      try {
        call(Args(sample, build_inputs(sample, true)));
      } catch (const Error&) {
        return {};
      }
      return {Verdict::kFail, "did not throw"};
    }
    std::string why = first_wrong(sample, call);
    if (why.empty()) return {};
    return {Verdict::kFail, std::move(why)};
  } catch (const Skip& skip) {
    return {Verdict::kSkip, skip.what()};
  } catch (const std::exception& e) {
    return {Verdict::kFail, std::string("threw: ") + e.what()};
  }
}

void Report::add(const Sample& sample, const Outcome& outcome) {
  Tally& tally = ops[sample.full_name()];
  const char* reason = known_difference(sample);
  if (outcome.verdict == Verdict::kPass) {
    ++tally.pass;
    if (reason != nullptr) {  // a list of excuses that nobody needs any more must shrink
      failures.push_back(title(sample) + ": passes, but is listed as known: " + reason);
    }
  } else if (outcome.verdict == Verdict::kSkip) {
    ++tally.skip;
    ++skips[sample.full_name() + ": " + outcome.why];
  } else if (reason != nullptr) {
    ++tally.known;
  } else {
    ++tally.fail;
    failures.push_back(title(sample) + ": " + one_line(outcome.why));
  }
}

Tally Report::total() const {
  Tally sum;
  for (const auto& [name, t] : ops) {
    sum.pass += t.pass;
    sum.fail += t.fail;
    sum.skip += t.skip;
    sum.known += t.known;
  }
  return sum;
}

void Report::print() const {
  const Tally all = total();
  std::printf("%-50s %6s %6s %6s %6s\n", "op", "pass", "of", "skip", "known");
  for (const auto& [name, t] : ops) {
    const int n = t.pass + t.fail + t.skip + t.known;
    std::printf("%-50s %6d %6d %6d %6d\n", name.c_str(), t.pass, n, t.skip, t.known);
  }
  std::printf("%zu ops: %d pass, %d fail, %d skipped, %d known differences\n", ops.size(), all.pass,
              all.fail, all.skip, all.known);
  for (const auto& [reason, n] : skips) std::printf("skipped %4d  %s\n", n, reason.c_str());
  std::string names;
  for (const auto& [name, n] : missing) names += " " + name;
  if (!names.empty()) std::printf("no adapter (%zu):%s\n", missing.size(), names.c_str());
  std::fflush(stdout);
}

Report run_all(const std::vector<Sample>& samples) {
  Report report;
  for (const Sample& sample : samples) {
    const Adapter* call = registry().find(sample);
    if (call == nullptr) {
      ++report.missing[sample.full_name()];
      continue;
    }
    report.add(sample, run(sample, *call));
  }
  return report;
}

}  // namespace taper::golden
