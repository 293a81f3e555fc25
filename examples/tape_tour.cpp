// A walk along the tape: its entries, hooks, kept gradients, double backward, and what errors say.
#include <cstdio>
#include <string>
#include <vector>

#include "taper/taper.h"

using namespace taper;

bool good = true;

void check(const char* what, bool holds) {
  std::printf("  %s  %s\n", holds ? "yes" : "NO!", what);
  good = good && holds;
}

// Prints the entry behind t and those before it, newest first, each once.
void print_entries(const Tensor& t) {
  std::vector<const Node*> ahead{gradient_edge(t).node.get()};
  while (!ahead.empty()) {
    std::size_t latest = 0;
    for (std::size_t i = 1; i < ahead.size(); ++i) {
      if (ahead[i]->index > ahead[latest]->index) latest = i;
    }
    const Node* node = ahead[latest];
    std::erase(ahead, node);
    if (node->is_leaf) {
      std::printf("    [%llu] leaf\n", static_cast<unsigned long long>(node->index));
      continue;
    }
    const auto& entry = static_cast<const Entry&>(*node);
    std::string from;
    for (const Edge& e : entry.inputs) {
      if (!e) continue;
      from += " [" + std::to_string(e.node->index) + "]";
      ahead.push_back(e.node.get());
    }
    std::printf("    [%llu] %-7s of%-10s saved %3llu bytes   %s\n",
                static_cast<unsigned long long>(node->index), entry.op->name(), from.c_str(),
                static_cast<unsigned long long>(entry.saved_bytes), to_string(entry.loc).c_str());
  }
}

// Runs f, which must throw, and prints what it said.
template <class F> void print_error(const char* what, const F& f) {
  std::printf("\n%s\n", what);
  try {
    f();
    check("it throws", false);
  } catch (const Error& e) {
    std::string text = e.what();
    for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 3)
      text.replace(at, 1, "\n  ");
    std::printf("  %s\n", text.c_str());
    check("it names a line of this file", text.find("tape_tour.cpp") != std::string::npos);
  }
}

int main() {
  const std::size_t at_start = live_entries();
  const Tensor x = tensor({1.0, 2.0, 3.0}, requires_grad());
  const Tensor w = tensor({0.5, -1.0, 2.0}, requires_grad());
  {
    std::printf(
        "1. y = (w * x).tanh().sum() records one entry per op, in the order of the program:\n");
    const Tensor product = w * x;
    const Tensor y = product.tanh().sum();
    print_entries(y);
    std::printf("  grad_fn: product '%s', y '%s', x '%s' (a leaf has none)\n", product.grad_fn(),
                y.grad_fn(), x.grad_fn());
    check("three entries live", live_entries() == at_start + 3);

    std::printf("\n2. Hooks see a gradient pass; retain_grad() keeps that of an inner tensor:\n");
    product.retain_grad();
    const unsigned hook = x.register_hook([](const Tensor& g) {
      std::printf("  hook on x: the gradient is (%.4f, %.4f, %.4f)\n", g[0].item<double>(),
                  g[1].item<double>(), g[2].item<double>());
    });
    Backward pass(y);
    int steps = 0;
    while (pass.step()) ++steps;
    std::printf("  Backward(y).step() ran %d times; finish() would run the rest at once\n", steps);
    x.remove_hook(hook);
    const Tensor expected = 1 - product.detach().tanh().square();
    check("the inner gradient is 1 - tanh^2", product.grad().allclose(expected));
    check("x.grad() is that times w", x.grad().allclose(expected * w.detach()));
  }
  check("no tensor needs the entries now, so they are gone", live_entries() == at_start);

  std::printf("\n3. Double backward: the pass itself is recorded, and differentiated again:\n");
  const Tensor t = tensor(2.0, TensorOptions(kFloat64).requires_grad(true));
  const Tensor cube = t.pow(3);
  const Tensor first = grad({cube}, {t}, {}, true, true)[0];
  const Tensor second = grad({first}, {t}, {}, true, true)[0];
  const Tensor third = grad({second}, {t})[0];
  std::printf("  t^3 at 2: %g, then %g, %g, %g\n", cube.item<double>(), first.item<double>(),
              second.item<double>(), third.item<double>());
  check("8, 12, 12, 6",
        first.item<double>() == 12 && second.item<double>() == 12 && third.item<double>() == 6);

  std::printf("\n4. What is said when something is wrong.\n");
  print_error("Shapes that do not fit:", [&] { (void)matmul(ones({2, 3}), ones({4, 5})); });
  print_error("Backward twice:", [&] {
    const Tensor y = (x * x).sum();
    y.backward();
    y.backward();
  });
  print_error("A write to what backward needs:", [&] {
    const Tensor e = x.exp();
    const Tensor y = e.sum();
    e.add_(1);
    y.backward();
  });
  print_error("Backward from more than one element:", [&] { (x * 2).backward(); });
  print_error("No history:", [&] {
    const NoGradGuard no_grad;
    (x * 2).sum().backward();
  });
  print_error("An error inside a module knows where in the model it happened:", [&] {
    nn::Sequential model(nn::Linear(4, 8), nn::Linear(9, 2));
    model->forward(ones({1, 4}));
  });
  std::printf("\n%s\n", good ? "All as said." : "Something is not as said.");
  return good ? 0 : 1;
}
