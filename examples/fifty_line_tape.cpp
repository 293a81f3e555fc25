// Reverse-mode differentiation from nothing: a tape in fifty lines of C++, beside Taper's.
#include <cmath>
#include <cstdio>
#include <vector>

#include "taper/taper.h"

// --- The tape: fifty lines --------------------------------------------------------------------
namespace fifty {

// One line of the list: which two values it was computed from, and its derivative by each.
struct Entry {
  int a, b;
  double da, db;
};

std::vector<Entry> tape;

// A number that remembers where on the tape it was made.
struct Var {
  double value;
  int index;

  explicit Var(double v, Entry e = {-1, -1, 0, 0})
      : value(v), index(static_cast<int>(tape.size())) {
    tape.push_back(e);
  }
};

Var operator+(const Var& x, const Var& y) {
  return Var(x.value + y.value, {x.index, y.index, 1, 1});
}

Var operator*(const Var& x, const Var& y) {
  return Var(x.value * y.value, {x.index, y.index, y.value, x.value});
}

Var sin(const Var& x) {
  return Var(std::sin(x.value), {x.index, -1, std::cos(x.value), 0});
}

// Walks the tape backwards. Inputs come before what is computed from them, so by the time an entry
// is reached all that was computed from it has already added its share.
std::vector<double> backward(const Var& y) {
  std::vector<double> grad(tape.size(), 0);
  grad[static_cast<std::size_t>(y.index)] = 1;
  for (std::size_t i = tape.size(); i-- > 0;) {
    const Entry& e = tape[i];
    if (e.a >= 0) grad[static_cast<std::size_t>(e.a)] += grad[i] * e.da;
    if (e.b >= 0) grad[static_cast<std::size_t>(e.b)] += grad[i] * e.db;
  }
  return grad;
}

}  // namespace fifty
// ----------------------------------------------------------------------------------------------

bool compare(const char* what, double ours, double tapers) {
  const bool same = std::fabs(ours - tapers) < 1e-12;
  std::printf("  %-28s fifty lines: %-20.15g Taper: %-20.15g %s\n", what, ours, tapers,
              same ? "same" : "DIFFERENT");
  return same;
}

int main() {
  bool good = true;

  std::printf("y = x^2 at x = 3\n");
  const fifty::Var x(3);
  const fifty::Var y = x * x;
  const double dx = fifty::backward(y)[static_cast<std::size_t>(x.index)];
  std::printf(
      "  tape:\n    [0] x = 3\n    [1] y = [%d] * [%d] = 9   dy/d[0] = 3 (left) and 3 (right)\n",
      fifty::tape[1].a, fifty::tape[1].b);
  std::printf("  backward: grad[1] = 1; entry 1 adds 1*3 and 1*3 to grad[0] = %g\n", dx);

  const taper::Tensor tx =
      taper::tensor(3.0, taper::TensorOptions(taper::kFloat64).requires_grad(true));
  const taper::Tensor ty = tx * tx;
  ty.backward();
  good = compare("dy/dx = 2x", dx, tx.grad().item<double>()) && good;

  std::printf("\nz = sin(a b) + a a, at a = 0.5, b = 2: a is used three times\n");
  fifty::tape.clear();
  const fifty::Var a(0.5), b(2);
  const fifty::Var z = sin(a * b) + a * a;
  const std::vector<double> g = fifty::backward(z);

  const auto f64 = taper::TensorOptions(taper::kFloat64).requires_grad(true);
  const taper::Tensor ta = taper::tensor(0.5, f64), tb = taper::tensor(2.0, f64);
  const taper::Tensor tz = taper::sin(ta * tb) + ta * ta;
  tz.backward();
  good = compare("z", z.value, tz.item<double>()) && good;
  good = compare("dz/da = b cos(ab) + 2a", g[0], ta.grad().item<double>()) && good;
  good = compare("dz/db = a cos(ab)", g[1], tb.grad().item<double>()) && good;

  std::printf(
      "\nTaper's tape is the same list. Its entries hold tensors, know the line that recorded "
      "them,\n"
      "and die when nobody can reach them; its loop is autograd/backward.cpp.\n");
  return good ? 0 : 1;
}
