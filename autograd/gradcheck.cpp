// Central differences, element by element, beside what backward says.
#include "taper/autograd/gradcheck.h"

#include <cmath>

#include "taper/autograd/ops/create.h"
#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/shape.h"

namespace taper {
namespace {

bool is_varied(const Tensor& t) {
  return t.defined() && t.requires_grad();
}

// Visits the address of each element, row-major.
template <class Visit> void for_each_element(const Tensor& t, Visit visit) {
  const Layout& layout = t.layout();
  auto* data = static_cast<double*>(t.storage()->data());
  for (std::int64_t i = 0; i < layout.numel(); ++i) {
    std::int64_t rest = i, offset = layout.offset;
    for (int d = layout.ndim - 1; d >= 0; --d) {
      offset += rest % layout.sizes[d] * layout.strides[d];
      rest /= layout.sizes[d];
    }
    visit(i, data[offset]);
  }
}

std::vector<double> elements(const Tensor& t) {
  std::vector<double> out;
  for_each_element(t, [&](std::int64_t, double& x) { out.push_back(x); });
  return out;
}

// A fixed cotangent, the same for the same numel; no element is special.
Tensor cotangent(const Tensor& like) {
  Tensor out = empty(like.sizes(), kFloat64);
  for_each_element(out, [](std::int64_t i, double& x) {
    x = 0.5 + std::fmod(static_cast<double>(i) * 0.61803398874989485 + 0.3, 1.0);
  });
  return out;
}

std::vector<Tensor> differentiable_only(std::vector<Tensor> outputs) {
  std::erase_if(outputs, [](const Tensor& t) { return !is_varied(t); });
  return outputs;
}

class Check {
 public:
  Check(const TensorFunction& f, const std::vector<Tensor>& inputs, const GradcheckOptions& options)
      : f_(f), inputs_(inputs), options_(options) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!is_varied(inputs[i])) continue;
      TAPER_CHECK(inputs[i].dtype() == kFloat64, "gradcheck: input ", i,
                  " must be f64 for differences to mean anything, it is ", inputs[i].dtype());
      TAPER_CHECK(!may_overlap_itself(inputs[i].layout()), "gradcheck: elements of input ", i,
                  " share memory; clone() it");
      varied_.push_back(inputs[i]);
    }
    TAPER_CHECK(!varied_.empty(), "gradcheck: no input requires grad");
  }

  // "" or what is wrong.
  std::string run() {
    const std::vector<Tensor> outputs = differentiable_only(f_.call(inputs_));
    TAPER_CHECK(!outputs.empty(), "gradcheck: no output requires grad");
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      TAPER_CHECK(outputs[k].dtype() == kFloat64, "gradcheck: output ", k, " is ",
                  outputs[k].dtype(), "; only f64 can be checked");
      const std::string wrong = check_output(outputs[k], k);
      if (!wrong.empty()) return wrong;
    }
    return check_unused(outputs);
  }

 private:
  // Row by row of the Jacobian: the gradient of one output element, against differences.
  std::string check_output(const Tensor& output, std::size_t k) {
    std::vector<std::vector<std::vector<double>>> analytic(varied_.size());
    for (std::int64_t row = 0; row < output.numel(); ++row) {
      const Tensor unit = zeros(output.sizes(), kFloat64);
      for_each_element(unit, [&](std::int64_t i, double& x) { x = i == row ? 1 : 0; });
      const std::vector<Tensor> once = gradients(output, unit), twice = gradients(output, unit);
      for (std::size_t v = 0; v < varied_.size(); ++v) {
        if (once[v].defined() && !(once[v].sizes() == varied_[v].sizes())) {
          return str("the gradient of input ", v, " has shape ", once[v].sizes(), ", the input ",
                     varied_[v].sizes());
        }
        const std::vector<double> a = flat(once[v], v), b = flat(twice[v], v);
        for (std::size_t i = 0; i < a.size(); ++i) {
          if (std::abs(a[i] - b[i]) > options_.nondet_tol) {
            return str("two backward passes differ at input ", v, ", element ", i, ": ", a[i],
                       " and ", b[i]);
          }
        }
        analytic[v].push_back(a);
      }
    }
    for (std::size_t v = 0; v < varied_.size(); ++v) {
      const std::string wrong = compare(k, v, output.numel(), analytic[v]);
      if (!wrong.empty()) return wrong;
    }
    return "";
  }

  std::vector<Tensor> gradients(const Tensor& output, const Tensor& unit) {
    return grad({output}, varied_, {unit}, true, false, true);
  }

  std::vector<double> flat(const Tensor& g, std::size_t v) {
    if (g.defined()) return elements(g);
    return std::vector<double>(static_cast<std::size_t>(varied_[v].numel()), 0.0);
  }

  std::string compare(std::size_t k,
                      std::size_t v,
                      std::int64_t rows,
                      const std::vector<std::vector<double>>& analytic) {
    std::string wrong;
    const Tensor& x = varied_[v];
    for_each_element(x, [&](std::int64_t column, double& value) {
      if (!wrong.empty()) return;
      const double kept = value;
      value = kept + options_.eps;
      const std::vector<double> up = evaluate(k);
      value = kept - options_.eps;
      const std::vector<double> down = evaluate(k);
      value = kept;
      for (std::int64_t row = 0; row < rows; ++row) {
        const auto r = static_cast<std::size_t>(row);
        const double numeric = (up[r] - down[r]) / (2 * options_.eps);
        const double a = analytic[r][static_cast<std::size_t>(column)];
        if (std::abs(numeric - a) <= options_.atol + options_.rtol * std::abs(numeric)) continue;
        wrong = str("d output ", k, "[", row, "] / d input ", v, "[", column, "] is ", numeric,
                    " by differences, ", a, " by backward");
        return;
      }
    });
    return wrong;
  }

  std::vector<double> evaluate(std::size_t k) {
    return elements(differentiable_only(f_.call(inputs_)).at(k));
  }

  // An output whose gradient never comes must act as one whose gradient is zero.
  std::string check_unused(const std::vector<Tensor>& outputs) {
    const std::vector<Tensor> zero_first =
        grad(outputs, varied_, zeros_for(outputs), true, false, true);
    for (const Tensor& g : zero_first) {
      if (!g.defined()) continue;
      for (const double x : elements(g)) {
        if (x != 0) return str("a zero cotangent gives a gradient of ", x);
      }
    }
    return "";
  }

  static std::vector<Tensor> zeros_for(const std::vector<Tensor>& outputs) {
    std::vector<Tensor> out;
    for (const Tensor& t : outputs) out.push_back(zeros(t.sizes(), kFloat64));
    return out;
  }

  const TensorFunction& f_;
  const std::vector<Tensor>& inputs_;
  const GradcheckOptions& options_;
  std::vector<Tensor> varied_;
};

// (inputs..., cotangents...) -> the gradients of f, so that they can be checked in turn.
class GradientOf final : public TensorFunction {
 public:
  GradientOf(const TensorFunction& f, std::size_t inputs) : f_(f), inputs_(inputs) {}

  std::vector<Tensor> call(const std::vector<Tensor>& all) const override {
    const std::vector<Tensor> in(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(inputs_));
    const std::vector<Tensor> cotangents(all.begin() + static_cast<std::ptrdiff_t>(inputs_),
                                         all.end());
    std::vector<Tensor> varied = in;
    std::erase_if(varied, [](const Tensor& t) { return !is_varied(t); });
    std::vector<Tensor> grads =
        grad(differentiable_only(f_.call(in)), varied, cotangents, std::nullopt, true, true);
    std::erase_if(grads, [](const Tensor& t) { return !t.defined(); });
    return grads;
  }

 private:
  const TensorFunction& f_;
  std::size_t inputs_;
};

bool verdict(const std::string& wrong, const char* what, const GradcheckOptions& options) {
  if (wrong.empty()) return true;
  TAPER_CHECK(!options.raise, what, ": ", wrong);
  return false;
}

}  // namespace

bool gradcheck(const TensorFunction& f,
               const std::vector<Tensor>& inputs,
               GradcheckOptions options,
               Loc loc) {
  const Call call(loc);
  const AutoGradMode on(true);
  return verdict(Check(f, inputs, options).run(), "gradcheck", options);
}

bool gradgradcheck(const TensorFunction& f,
                   const std::vector<Tensor>& inputs,
                   GradcheckOptions options,
                   Loc loc) {
  const Call call(loc);
  const AutoGradMode on(true);
  std::vector<Tensor> all = inputs;
  for (const Tensor& out : differentiable_only(f.call(inputs))) {
    all.push_back(cotangent(out).requires_grad_());
  }
  const GradientOf gradient(f, inputs.size());
  std::vector<Tensor> grads = gradient.call(all);
  // A function that is linear in its inputs and whose gradient nobody asks for has none to check.
  std::erase_if(grads, [](const Tensor& t) { return !is_varied(t); });
  if (grads.empty()) return true;
  return verdict(Check(gradient, all, options).run(), "gradgradcheck", options);
}

}  // namespace taper
