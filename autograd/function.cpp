// Runs the user's forward and backward as one op of the tape.
#include "taper/autograd/function.h"

#include <algorithm>

#include "taper/autograd/ops/shape.h"

namespace taper::autograd {

AutogradContext::Value& AutogradContext::saved(const std::string& name) {
  for (auto& [known, value] : values_) {
    if (known == name) return value;
  }
  return values_.emplace_back(name, Value()).second;
}

bool is_differentiable(const AutogradContext& ctx, const Tensor& output) {
  return std::none_of(ctx.not_differentiable_.begin(), ctx.not_differentiable_.end(),
                      [&](const Tensor& t) { return t.is_same(output); });
}

void CustomOp::forward(Frame& f) {
  variable_list outputs;
  run_(context_.get(), arguments_, &outputs);
  TAPER_CHECK(!outputs.empty(), "forward must return at least one tensor");
  variable_list kept = std::move(context_->to_save_);
  context_->to_save_.clear();
  for (Tensor& out : outputs) {
    // An output that is an input, or a view of one, gets a handle of its own to carry history.
    f.out(is_differentiable(*context_, out) ? out.detach() : out);
  }
  for (const Tensor& t : kept) {
    saved_defined_.push_back(t.defined());
    if (!t.defined()) continue;
    const auto it = std::find_if(outputs.begin(), outputs.end(),
                                 [&](const Tensor& out) { return out.is_same(t); });
    if (it == outputs.end()) f.save(t);
    else f.save_out(static_cast<std::size_t>(it - outputs.begin()));
  }
}

Grads CustomOp::backward(const Reverse& r) const {
  AutogradContext context;  // of this pass alone: several threads may run the same entry
  context.values_ = context_->values_;
  std::size_t k = 0;
  for (const bool defined : saved_defined_) {
    context.saved_.push_back(defined ? r.saved(k++) : Tensor());
  }
  for (std::size_t i = 0; i < positions.size(); ++i) {
    if (r.needs(i)) context.needs_ |= std::uint64_t{1} << i;
  }
  variable_list grads;
  for (std::size_t i = 0; i < r.entry().outputs.size(); ++i) {
    grads.push_back(context_->materialize_ ? r.grad_or_zeros(i) : r.grad(i));
  }
  const variable_list out = back_(&context, std::move(grads));
  Grads result;
  for (const std::size_t p : positions) {
    TAPER_CHECK(p < out.size(), "backward returned ", out.size(),
                " gradients; it must return one per argument of forward");
    result.push_back(out[p]);
  }
  return result;
}

std::vector<Tensor> apply_custom(CustomOp&& op, const std::vector<Tensor>& inputs, Loc loc) {
  const Call call(loc, op.name());
  std::vector<const Tensor*> in;
  for (const Tensor& t : inputs) in.push_back(&t);
  Tensors out = apply_n(std::move(op), in);
  return std::vector<Tensor>(out.begin(), out.end());
}

std::string function_name(const char* pretty) {
  std::string text = pretty;
  const auto at = text.find("Derived = ");
  if (at == std::string::npos) return "Function";
  text = text.substr(at + 10, text.find_first_of(";]", at) - at - 10);
  return text.substr(text.rfind(':') + 1);
}

}  // namespace taper::autograd
