// What is asked of every op, over the list of all of them: derivatives, layouts, dtypes, meta.
#include <cmath>

#include "taper/tests/contract/enumerate.h"

namespace taper::contract {
namespace {

bool is_differentiable(const Sample& s) {
  std::vector<Tensor> in;
  for (const Tensor& t : s.inputs) {
    in.push_back(t.is_floating_point() ? t.detach().requires_grad_() : t);
  }
  for (const Tensor& t : s.call(in)) {
    if (t.requires_grad()) return true;
  }
  return false;
}

std::vector<Tensor> leaves(const Sample& s) {
  std::vector<Tensor> out;
  for (const Tensor& t : s.inputs) {
    out.push_back(t.is_floating_point() ? t.clone().requires_grad_() : t);
  }
  return out;
}

void expect_same(const Tensor& a, const Tensor& b, double tolerance, const std::string& what) {
  ASSERT_EQ(a.sizes().vec(), b.sizes().vec()) << what;
  if (a.numel() == 0) return;
  const Tensor x = a.detach().to(kFloat64), y = b.detach().to(kFloat64);
  EXPECT_TRUE(x.allclose(y, tolerance, tolerance, true)) << what << "\n" << x << "\n" << y;
}

// What a call gave: outputs, or what it refused.
struct Result {
  std::vector<Tensor> outputs;
  std::string refusal;
};

Result attempt(const Sample& s, const std::vector<Tensor>& inputs) {
  try {
    return {s.call(inputs), ""};
  } catch (const Error& e) {
    return {{}, e.what()};
  }
}

std::vector<Tensor> to_meta(const std::vector<Tensor>& in) {
  return map(in, [](const Tensor& t) { return t.to(kMeta); });
}

// A kernel and the meta column must agree on every input: both refuse it, or both give the same
// sizes and dtypes; and what was recorded can be run backwards.
void expect_as_meta_says(const Sample& s, const std::vector<Tensor>& inputs, const char* kind) {
  const Result meta = attempt(s, to_meta(inputs));
  const Result real = attempt(s, inputs);
  const std::string what = str(s.name, ", ", kind);
  // Without elements no index can be out of range, and item() cannot be asked.
  if (real.refusal.empty() != meta.refusal.empty()) {
    const bool excused = meta.refusal.find("item") != std::string::npos ||
                         real.refusal.find("range") != std::string::npos ||
                         real.refusal.find("class") != std::string::npos;
    EXPECT_TRUE(excused) << what << "\nreal: " << real.refusal << "\nmeta: " << meta.refusal;
    return;
  }
  for (std::size_t i = 0; i < real.outputs.size(); ++i) {
    EXPECT_EQ(real.outputs[i].sizes().vec(), meta.outputs[i].sizes().vec()) << what;
    EXPECT_EQ(real.outputs[i].dtype(), meta.outputs[i].dtype()) << what;
  }
  for (const Tensor& t : real.outputs) {
    if (!t.requires_grad()) continue;
    EXPECT_NO_THROW(t.sum().backward({}, true)) << what;
  }
}

template <class Op> class OpContract : public testing::Test {
 protected:
  const std::vector<Sample> samples_ = Samples<Op>::make();
};

TYPED_TEST_SUITE_P(OpContract);

TYPED_TEST_P(OpContract, GradientsAreRight) {
  for (const Sample& s : this->samples_) {
    if (!is_differentiable(s)) continue;
    EXPECT_NO_THROW(gradcheck(s.call, leaves(s))) << s.name;
  }
}

TYPED_TEST_P(OpContract, SecondGradientsAreRight) {
  for (const Sample& s : this->samples_) {
    if (!is_differentiable(s)) continue;
    EXPECT_NO_THROW(gradgradcheck(s.call, leaves(s))) << s.name;
  }
}

TYPED_TEST_P(OpContract, StridesDoNotMatter) {
  for (const Sample& s : this->samples_) {
    const std::vector<Tensor> plain = s.call(s.inputs);
    for (const Variant& v : kVariants) {
      const std::vector<Tensor> other = s.call(map(s.inputs, v.make));
      ASSERT_EQ(plain.size(), other.size());
      for (std::size_t i = 0; i < plain.size(); ++i) {
        EXPECT_EQ(plain[i].dtype(), other[i].dtype());
        expect_same(plain[i], other[i], 1e-12, s.name + ", " + v.name);
      }
    }
  }
}

TYPED_TEST_P(OpContract, ExpandedInputsActAsTheirCopies) {
  for (const Sample& s : this->samples_) {
    const std::vector<Tensor> stretched = map(s.inputs, expanded);
    const auto copy = [](const Tensor& t) { return t.clone(MemoryFormat::kContiguous); };
    const std::vector<Tensor> a = s.call(stretched), b = s.call(map(stretched, copy));
    for (std::size_t i = 0; i < a.size(); ++i) expect_same(a[i], b[i], 1e-12, s.name);
  }
}

TYPED_TEST_P(OpContract, NarrowDtypesAreCloseToF64) {
  for (const Sample& s : this->samples_) {
    for (const auto& [dtype, tolerance] :
         {std::pair(kFloat32, 1e-5), std::pair(kFloat16, 4e-2), std::pair(kBFloat16, 2e-1)}) {
      // The f64 run sees the rounded inputs, so that only the op's own rounding is measured.
      std::vector<Tensor> narrow, wide;
      for (const Tensor& t : s.inputs) {
        narrow.push_back(t.is_floating_point() ? t.to(dtype) : t);
        wide.push_back(t.is_floating_point() ? narrow.back().to(kFloat64) : t);
      }
      const std::vector<Tensor> a = s.call(narrow), b = s.call(wide);
      for (std::size_t i = 0; i < a.size(); ++i) {
        if (!b[i].is_floating_point()) continue;  // a rounded tie may fall either way
        EXPECT_EQ(a[i].dtype(), dtype) << s.name;
        expect_same(a[i], b[i], tolerance, str(s.name, " in ", dtype));
      }
    }
  }
}

TYPED_TEST_P(OpContract, MetaGivesTheShapes) {
  for (const Sample& s : this->samples_) {
    std::vector<Tensor> meta;
    for (const Tensor& t : s.inputs) meta.push_back(t.to(kMeta));
    std::vector<Tensor> shapes;
    try {
      shapes = s.call(meta);
    } catch (const Error& e) {
      // Samples that read an element to build themselves cannot run without any.
      EXPECT_NE(std::string(e.what()).find("item"), std::string::npos)
          << s.name << ": " << e.what();
      continue;
    }
    const std::vector<Tensor> real = s.call(s.inputs);
    for (std::size_t i = 0; i < real.size(); ++i) {
      EXPECT_TRUE(shapes[i].is_meta()) << s.name;
      EXPECT_EQ(shapes[i].sizes().vec(), real[i].sizes().vec()) << s.name;
      EXPECT_EQ(shapes[i].strides().vec(), real[i].strides().vec()) << s.name;
      EXPECT_EQ(shapes[i].dtype(), real[i].dtype()) << s.name;
    }
  }
}

TYPED_TEST_P(OpContract, EmptyInputsActAsMetaSays) {
  for (const Sample& s : this->samples_) {
    for (std::size_t k = 0; k <= s.inputs.size(); ++k) {  // one of them, then all
      std::vector<Tensor> inputs = leaves(s);
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (i != k && k != s.inputs.size()) continue;
        for (std::int64_t d = 0; d < inputs[i].dim(); ++d) {
          std::vector<Tensor> emptied = inputs;
          emptied[i] = inputs[i].detach().narrow(d, 0, 0).clone();
          if (inputs[i].requires_grad()) emptied[i].requires_grad_();
          expect_as_meta_says(s, emptied, "one empty dim");
        }
        if (inputs[i].dim() == 0) continue;
        const bool grad = inputs[i].requires_grad();
        inputs[i] = inputs[i].detach().narrow(0, 0, 0).clone().requires_grad_(grad);
      }
      expect_as_meta_says(s, inputs, "empty");
    }
  }
}

TYPED_TEST_P(OpContract, NumbersActAsMetaSays) {
  for (const Sample& s : this->samples_) {
    for (std::size_t k = 0; k <= s.inputs.size(); ++k) {
      std::vector<Tensor> inputs = leaves(s);
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if ((i != k && k != s.inputs.size()) || inputs[i].numel() == 0) continue;
        const bool grad = inputs[i].requires_grad();
        inputs[i] = inputs[i].detach().flatten()[0].clone().requires_grad_(grad);
      }
      expect_as_meta_says(s, inputs, "0-dim");
    }
  }
}

TYPED_TEST_P(OpContract, EveryDtypeActsAsMetaSays) {
  for (const Sample& s : this->samples_) {
    for (int d = 0; d < kNumDTypes; ++d) {
      const auto dtype = static_cast<DType>(d);
      for (std::size_t k = 0; k <= s.inputs.size(); ++k) {
        std::vector<Tensor> inputs = s.inputs;
        for (std::size_t i = 0; i < inputs.size(); ++i) {
          if (i == k || k == s.inputs.size()) inputs[i] = (inputs[i] * 4).to(dtype);
        }
        expect_as_meta_says(s, inputs, info(dtype).name);
      }
    }
  }
}

TYPED_TEST_P(OpContract, ErrorsAndTapeNameTheLine) {
  for (const Sample& s : this->samples_) {
    for (const Tensor& t : s.call(leaves(s))) {
      if (!t.requires_grad()) continue;
      const auto& entry = static_cast<const Entry&>(*gradient_edge(t).node);
      EXPECT_TRUE(entry.loc.known()) << s.name;
      break;
    }
  }
}

REGISTER_TYPED_TEST_SUITE_P(OpContract,
                            GradientsAreRight,
                            SecondGradientsAreRight,
                            StridesDoNotMatter,
                            ExpandedInputsActAsTheirCopies,
                            NarrowDtypesAreCloseToF64,
                            MetaGivesTheShapes,
                            EmptyInputsActAsMetaSays,
                            NumbersActAsMetaSays,
                            EveryDtypeActsAsMetaSays,
                            ErrorsAndTapeNameTheLine);

INSTANTIATE_TYPED_TEST_SUITE_P(Unary, OpContract, ToTypes<ops::UnaryOps>::type, OpNames);
INSTANTIATE_TYPED_TEST_SUITE_P(Binary, OpContract, ToTypes<ops::BinaryOps>::type, OpNames);
INSTANTIATE_TYPED_TEST_SUITE_P(Other, OpContract, ToTypes<ops::OtherOps>::type, OpNames);

}  // namespace
}  // namespace taper::contract
