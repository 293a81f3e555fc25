// Convolution and its gradients, for every window, group, layout and dtype, against the definition.
#include "taper/tests/reference/conv.h"

#include "taper/tests/cpu/array.h"

namespace taper::testing {
namespace {

using reference::Size4;

Layout channels_last(const Size4& s) {
  return contiguous_layout({s.n, s.c, s.h, s.w}, MemoryFormat::kChannelsLast);
}

// A form, or null for channels_last.
struct Memory {
  const char* name;
  bool last;
  Form form;
};

const Memory kMemories[] = {{"contiguous", false, Form::kContiguous},
                            {"channels last", true, Form::kContiguous},
                            {"transposed", false, Form::kTransposed},
                            {"sliced", false, Form::kSliced},
                            {"reversed", false, Form::kReversed}};

Array make(DType dtype, const Size4& s, const Memory& memory) {
  Array a(dtype, {s.n, s.c, s.h, s.w}, memory.form);
  if (memory.last) a.layout() = channels_last(s);
  return a;
}

Array random_array(std::uint64_t seed, DType dtype, const Size4& s, const Memory& memory) {
  Random random(seed);
  Array a = make(dtype, s, memory);
  a.fill([&] { return random.uniform(-1, 1); });
  return a;
}

struct Problem {
  Size4 x;
  std::int64_t outputs;
  Window2d window;

  Size4 w() const { return {outputs, x.c / window.groups, window.kernel[0], window.kernel[1]}; }

  Size4 y() const { return {x.n, outputs, length(0, x.h), length(1, x.w)}; }

 private:
  std::int64_t length(int d, std::int64_t in) const {
    return (in + 2 * window.padding[d] - window.dilation[d] * (window.kernel[d] - 1) - 1) /
               window.stride[d] +
           1;
  }
};

Window2d window(std::int64_t kh,
                std::int64_t kw,
                std::int64_t sh,
                std::int64_t sw,
                std::int64_t ph,
                std::int64_t pw,
                std::int64_t dh = 1,
                std::int64_t dw = 1,
                std::int64_t groups = 1) {
  Window2d out;
  out.kernel[0] = kh, out.kernel[1] = kw;
  out.stride[0] = sh, out.stride[1] = sw;
  out.padding[0] = ph, out.padding[1] = pw;
  out.dilation[0] = dh, out.dilation[1] = dw;
  out.groups = groups;
  return out;
}

const Problem kProblems[] = {
    {{2, 3, 9, 11}, 5, window(3, 3, 1, 1, 1, 1)},
    {{1, 1, 8, 20}, 7, window(5, 5, 1, 1, 0, 0)},
    {{2, 4, 10, 9}, 6, window(3, 2, 2, 3, 1, 0)},
    {{1, 6, 12, 12}, 4, window(3, 3, 1, 2, 2, 3, 2, 1, 2)},
    {{2, 8, 6, 6}, 8, window(3, 3, 1, 1, 1, 1, 1, 1, 8)},
    {{1, 5, 7, 7}, 9, window(1, 1, 1, 1, 0, 0)},
    {{1, 3, 7, 7}, 4, window(1, 1, 2, 2, 0, 0)},
    {{1, 40, 5, 18}, 14, window(3, 3, 1, 1, 1, 1)},
    {{2, 2, 3, 3}, 2, window(3, 3, 1, 1, 3, 3)},
    {{1, 2, 9, 9}, 3, window(2, 2, 4, 4, 1, 1)},
    {{0, 3, 5, 5}, 2, window(3, 3, 1, 1, 1, 1)},
};

struct Results {
  Array y, dx, dw;
};

struct Inputs {
  Array x, w, bias, grad;
};

Inputs inputs(DType dtype, const Problem& p, const Memory& memory) {
  Inputs in{random_array(1, dtype, p.x, memory), random_array(2, dtype, p.w(), memory),
            Array(dtype, {p.outputs}, memory.form), random_array(3, dtype, p.y(), memory)};
  Random random(4);
  in.bias.fill([&] { return random.uniform(-1, 1); });
  return in;
}

Results run(
    const Kernels& kernels, DType dtype, const Problem& p, const Inputs& in, const Memory& out) {
  Results r{make(dtype, p.y(), out), make(dtype, p.x, out), make(dtype, p.w(), out)};
  kernels.conv2d(Exec(kCPU), r.y.out(), in.x.in(), in.w.in(), in.bias.in(), p.window);
  kernels.conv2d_grad_input(Exec(kCPU), r.dx.out(), in.grad.in(), in.w.in(), p.window);
  kernels.conv2d_grad_weight(Exec(kCPU), r.dw.out(), in.grad.in(), in.x.in(), p.window);
  EXPECT_TRUE(r.y.is_pad_whole() && r.dx.is_pad_whole() && r.dw.is_pad_whole());
  return r;
}

void expect_near(const Array& got,
                 const std::vector<double>& want,
                 const std::vector<double>& size,
                 const char* what) {
  for (std::int64_t i = 0; i < got.numel(); ++i) {
    const auto k = static_cast<std::size_t>(i);
    ASSERT_NEAR(got.get(i), want[k], tolerance(got.dtype()) * (1 + size[k])) << what << " " << i;
  }
}

void expect_definition(const Problem& p, const Inputs& in, const Results& r) {
  const auto n = [](const Array& a) { return static_cast<std::size_t>(a.numel()); };
  std::vector<double> y(n(r.y)), dx(n(r.dx)), dw(n(r.dw)), y_size(n(r.y)), dx_size(n(r.dx)),
      dw_size(n(r.dw));
  const std::int64_t area = p.y().h * p.y().w;
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] = in.bias.get(static_cast<std::int64_t>(i) / area % p.outputs);
  reference::for_each_product(
      p.y(), p.x, p.w(), p.window, [&](std::int64_t o, std::int64_t i, std::int64_t w) {
        const double weight = in.w.get(w), x = in.x.get(i), g = in.grad.get(o);
        const auto at_o = static_cast<std::size_t>(o), at_i = static_cast<std::size_t>(i),
                   at_w = static_cast<std::size_t>(w);
        y[at_o] += weight * x, y_size[at_o] += std::abs(weight * x);
        dx[at_i] += weight * g, dx_size[at_i] += std::abs(weight * g);
        dw[at_w] += x * g, dw_size[at_w] += std::abs(x * g);
      });
  expect_near(r.y, y, y_size, "y");
  expect_near(r.dx, dx, dx_size, "dx");
  expect_near(r.dw, dw, dw_size, "dw");
}

TEST(Conv2d, MatchesDefinitionAndNoLayoutChangesBits) {
  for (const DType dtype : kFloating) {
    for (const Problem& p : kProblems) {
      SCOPED_TRACE(str(info(dtype).name, " x ", p.x.n, " ", p.x.c, " ", p.x.h, " ", p.x.w,
                       " kernel ", p.window.kernel[0], " ", p.window.kernel[1]));
      const Inputs in = inputs(dtype, p, kMemories[0]);
      const Results first = run(cpu_kernels(), dtype, p, in, kMemories[0]);
      expect_definition(p, in, first);
      for (const Memory& memory : kMemories) {
        const Inputs same = inputs(dtype, p, memory);
        for (const cpu::Column& column : runnable_columns()) {
          const Results r = run(*column.kernels, dtype, p, same,
                                memory.form == Form::kReversed ? kMemories[1] : memory);
          ASSERT_TRUE(same_bits(r.y, first.y)) << memory.name << column.isa;
          ASSERT_TRUE(same_bits(r.dx, first.dx)) << memory.name << column.isa;
          ASSERT_TRUE(same_bits(r.dw, first.dw)) << memory.name << column.isa;
        }
      }
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(Conv2d, IsOneChainOfFmas) {
  const Problem& p = kProblems[7];
  const Inputs in = inputs(kFloat32, p, kMemories[0]);
  const Results r = run(cpu_kernels(), kFloat32, p, in, kMemories[0]);
  std::vector<float> y(static_cast<std::size_t>(r.y.numel()));
  const std::int64_t area = p.y().h * p.y().w;
  for (std::size_t i = 0; i < y.size(); ++i) {
    y[i] = static_cast<float>(in.bias.get(static_cast<std::int64_t>(i) / area % p.outputs));
  }
  reference::for_each_product(
      p.y(), p.x, p.w(), p.window, [&](std::int64_t o, std::int64_t i, std::int64_t w) {
        float& sum = y[static_cast<std::size_t>(o)];
        sum = std::fma(static_cast<float>(in.w.get(w)), static_cast<float>(in.x.get(i)), sum);
      });
  for (std::int64_t i = 0; i < r.y.numel(); ++i) {
    ASSERT_EQ(r.y.get(i), static_cast<double>(y[static_cast<std::size_t>(i)]));
  }
}

// Many images, so that the gradient of the weight is made in pieces.
TEST(Conv2d, ThreadsDoNotChangeBits) {
  const Problem p{{25, 8, 28, 28}, 7, window(3, 3, 1, 1, 1, 1)};
  const Inputs in = inputs(kFloat32, p, kMemories[0]);
  const Results first = run(cpu_kernels(), kFloat32, p, in, kMemories[0]);
  const int before = get_num_threads();
  set_num_threads(3);
  const Results r = run(cpu_kernels(), kFloat32, p, in, kMemories[1]);
  EXPECT_TRUE(same_bits(r.y, first.y) && same_bits(r.dx, first.dx) && same_bits(r.dw, first.dw));
  set_num_threads(1);
  const Results alone = run(cpu_kernels(), kFloat32, p, in, kMemories[0]);
  EXPECT_TRUE(same_bits(alone.y, first.y) && same_bits(alone.dx, first.dx) &&
              same_bits(alone.dw, first.dw));
  set_num_threads(before);
  expect_definition(p, in, first);
}

TEST(Conv2d, WithoutBias) {
  const Problem& p = kProblems[0];
  Inputs in = inputs(kFloat32, p, kMemories[0]);
  Array without = make(kFloat32, p.y(), kMemories[0]), zero = without;
  cpu_kernels().conv2d(Exec(kCPU), without.out(), in.x.in(), in.w.in(), In{}, p.window);
  in.bias.fill([] { return 0; });
  cpu_kernels().conv2d(Exec(kCPU), zero.out(), in.x.in(), in.w.in(), in.bias.in(), p.window);
  EXPECT_TRUE(same_bits(without, zero));
}

}  // namespace
}  // namespace taper::testing
