// The non-finite hunt: marks the memory of bad numbers with the kernel in which they began.
#include "taper/autograd/lens/hunt.h"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "taper/autograd/lens/hunt_origin.h"
#include "taper/autograd/lens/moment.h"
#include "taper/core/base/log.h"

// Note [Marks on memory]
// A kernel that writes a NaN or an infinity leaves a mark on that memory, with an origin. If its
// operands were finite the origin is the kernel itself; if not, it hands on the origin that is
// marked on the operand. So an origin follows the numbers themselves, over ops that the tape
// records and over those that it does not, and ends where they end: a softmax over masked scores
// writes finite numbers, which leave no mark. While no mark is left, a kernel costs one pass over
// what it wrote: elementwise kernels and products let each thread look at its own piece while that
// is in its first cache (FiniteWatch), the outputs of others are read afterwards.
namespace taper::lens {

constinit std::atomic<int> hunts{0};

namespace {

constexpr std::size_t kMostOrigins = 256, kMostMarks = 1024;

struct Mark {
  const std::byte* bad = nullptr;  // the first bad element
  int origin = -1;
  bool nan = false;
};

// The hunts alive; also held while one of them is asked, so that it cannot go.
std::mutex registry;
std::vector<Hunt*> alive;

bool is_slot(const KernelCall& call, const void* of_cpu) {
  return slot_number(call.slot) == slot_number(of_cpu);
}

// Optimizers are left unlooked at, for speed: a parameter that goes bad shows in the next forward,
// and its storage knows the step that wrote it.
bool is_optimizer(const KernelCall& call) {
  return is_slot(call, &cpu_kernels().adam) || is_slot(call, &cpu_kernels().sgd);
}

std::string described(const Tensor& t) {
  return str(t.dtype(), " ", t.sizes());
}

}  // namespace

struct Hunt::State {
  Found found;
  mutable std::mutex mutex;
  std::vector<Origin> origins;
  std::vector<Mark> marks;           // the newest last
  std::atomic<std::size_t> live{0};  // marks.size(), to be read without the lock
  std::string text;                  // of what was found

  const Mark* mark_in(Range memory) const;
  void forget(Range memory);
  void put(const Mark& mark);
  void judge(Origin& origin, const KernelCall& call) const;
  int add(Origin origin);
  void note(const KernelCall& call, const View& written, std::int64_t index);
  void copied(const KernelCall& call);
  void found_in(const Tensor& t, const std::string& what, const Node* from);
};

// The newest mark there; null when there is none.
const Mark* Hunt::State::mark_in(Range memory) const {
  for (auto m = marks.rbegin(); m != marks.rend(); ++m) {
    if (memory.holds(m->bad)) return &*m;
  }
  return nullptr;
}

// That memory has been written.
void Hunt::State::forget(Range memory) {
  std::erase_if(marks, [&](const Mark& m) { return memory.holds(m.bad); });
  live.store(marks.size(), std::memory_order_relaxed);
}

void Hunt::State::put(const Mark& mark) {
  if (marks.size() == kMostMarks) marks.erase(marks.begin());
  marks.push_back(mark);
  live.store(marks.size(), std::memory_order_relaxed);
}

int Hunt::State::add(Origin origin) {
  const auto same = std::find_if(origins.begin(), origins.end(),
                                 [&](const Origin& o) { return o.same_place(origin); });
  if (same != origins.end()) {
    *same = std::move(origin);
    return static_cast<int>(same - origins.begin());
  }
  if (origins.size() == kMostOrigins) return static_cast<int>(kMostOrigins) - 1;
  origins.push_back(std::move(origin));
  return static_cast<int>(origins.size()) - 1;
}

// Which of its operands is to blame, if any.
void Hunt::State::judge(Origin& o, const KernelCall& call) const {
  const bool chooses = is_slot(call, &cpu_kernels().where);
  const auto same_number = [&](double x) {
    return x == o.value || (std::isnan(x) && std::isnan(o.value));
  };
  const Mark* from = nullptr;
  bool nan = false, blamed = false;
  for (std::size_t i = 0; i < o.operands.size(); ++i) {
    const OperandSeen& x = o.operands[i];
    if (!is_floating_point(x.dtype)) continue;
    const Mark* mark = mark_in(x.memory);
    const bool bad = x.known ? !std::isfinite(x.value) : mark != nullptr;
    if (!bad || (chooses && x.known && !same_number(x.value))) continue;
    nan = nan || (x.known ? std::isnan(x.value) : mark->nan);
    if (blamed && (from != nullptr || mark == nullptr)) continue;  // one that was made says more
    blamed = true;
    o.bad_operand = i;
    from = mark;
  }
  if (!blamed) return;
  o.kind = std::isnan(o.value) && !nan ? Origin::Kind::kMadeNaN : Origin::Kind::kCameIn;
  if (from != nullptr) o.before = from->origin;
}

void Hunt::State::note(const KernelCall& call, const View& written, std::int64_t index) {
  Origin origin = see(call, written, index);
  const std::lock_guard lock(mutex);
  judge(origin, call);
  Mark mark{element_of(written, origin.at), -1, std::isnan(origin.value)};
  const bool handed_on = origin.kind == Origin::Kind::kCameIn && origin.before >= 0;
  mark.origin = handed_on ? origin.before : add(std::move(origin));
  forget(memory_of(written));
  put(mark);
}

// What is copied takes its mark along.
void Hunt::State::copied(const KernelCall& call) {
  const std::lock_guard lock(mutex);
  if (marks.empty() || call.writes[0]->layout->numel() == 0) return;
  const Mark* mark = mark_in(memory_of(*call.reads[0]));
  const Mark moved =
      mark == nullptr ? Mark{} : Mark{call.writes[0]->as<std::byte>(), mark->origin, mark->nan};
  forget(memory_of(*call.writes[0]));
  if (moved.bad != nullptr) put(moved);
}

// A number that matters is bad: says where it began.
void Hunt::State::found_in(const Tensor& t, const std::string& what, const Node* from) {
  const std::unique_lock lock(mutex);
  if (!text.empty() && found == Found::kReport) return;
  const Mark* mark = mark_in(memory_of(t.as<In>()));
  if (mark == nullptr) {
    text = what + "; no kernel that the hunt has seen made it so. Begin the hunt before forward";
    if (found == Found::kThrow) fail(text);
    return log(LogLevel::kWarning, text);
  }
  const Origin& last = origins[static_cast<std::size_t>(mark->origin)];
  text = what;
  if (last.before >= 0) text += to_string(origins[static_cast<std::size_t>(last.before)], from);
  text += to_string(last, from);
  if (found == Found::kReport) return log(LogLevel::kWarning, text);
  throw Error(text, "hunt", last.loc, scope_name(last.scope));
}

Hunt::Hunt(Found found) : state_(std::make_unique<State>()) {
  state_->found = found;
  {
    const std::lock_guard lock(registry);
    alive.push_back(this);
  }
  hunts.fetch_add(1, std::memory_order_relaxed);
  install(*this);
}

Hunt::~Hunt() {
  remove(*this);
  hunts.fetch_sub(1, std::memory_order_relaxed);
  const std::lock_guard lock(registry);
  std::erase(alive, this);
}

std::string Hunt::report() const {
  const std::lock_guard lock(state_->mutex);
  if (!state_->text.empty()) return state_->text;
  if (state_->origins.empty()) return "every number so far is finite";
  const std::size_t places = state_->origins.size();
  std::string text = str(places, places == 1 ? " place" : " places",
                         " made an infinity or a NaN; none has reached "
                         "a loss or a gradient that backward was shown");
  for (const Origin& o : state_->origins) text += to_string(o, nullptr);
  return text;
}

void Hunt::before(const KernelCall& call) {
  if (!call.exec.device.is_cpu() || is_optimizer(call)) return;
  thread_local constinit FiniteWatch watch;
  watch.looked_at = nullptr;
  watch.found.store(false, std::memory_order_relaxed);
  finite_watch = &watch;
}

void Hunt::after(const KernelCall& call) {
  if (call.exec.device.is_meta() || is_optimizer(call)) return;
  // A copy of a device may read or write the host's memory, which its kernels cannot look at.
  if (call.exec.device.is_cuda() && is_slot(call, &cpu_kernels().copy)) return state_->copied(call);
  for (const View* view : call.writes) {
    const View& written = *view;
    if (!written.defined() || !is_floating_point(written.dtype)) continue;
    // Of a reduction's output stride 0 is no element of its own.
    Layout layout = *written.layout;
    for (int d = 0; d < layout.ndim; ++d) {
      if (layout.strides[d] == 0 && layout.sizes[d] != 0) layout.sizes[d] = 1;
    }
    const View own{written.data, &layout, written.dtype};
    const bool is_finite = finite_watch != nullptr && finite_watch->looked_at == view->data &&
                           !finite_watch->found.load(std::memory_order_relaxed);
    const std::int64_t index =
        is_finite ? -1 : first_nonfinite(own, call.exec.device, call.exec.stream);
    if (index >= 0) {
      state_->note(call, own, index);
    } else if (state_->live.load(std::memory_order_relaxed) != 0) {
      const std::lock_guard lock(state_->mutex);
      state_->forget(memory_of(own));
    }
  }
}

void Hunt::look_at_roots(ArrayRef<Tensor> roots, ArrayRef<Tensor> gradients) {
  const std::lock_guard lock(registry);
  const auto look = [](const Tensor& t, const char* what, const Node* from) {
    if (!t.defined() || !t.is_floating_point()) return;
    const std::int64_t index = first_nonfinite(t.as<In>(), t.device(), 0);
    if (index < 0) return;
    const auto value = t.detach().reshape({-1}).select(0, index).item<double>();
    const char* kind = std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
    for (Hunt* hunt : alive)
      hunt->state_->found_in(t, str(what, described(t), ", is ", kind), from);
  };
  for (const Tensor& t : roots) look(t, "the loss, ", gradient_edge(t).node.get());
  for (const Tensor& t : gradients) look(t, "the gradient that backward was given, ", nullptr);
}

void Hunt::look_at(const Node& node, ArrayRef<Tensor> grads) {
  const std::lock_guard lock(registry);
  for (Hunt* hunt : alive) {
    if (hunt->state_->live.load(std::memory_order_relaxed) == 0) continue;
    for (const Tensor& g : grads) {
      if (!g.defined() || !g.is_floating_point()) continue;
      if (first_nonfinite(g.as<In>(), g.device(), 0) < 0) continue;
      hunt->state_->found_in(
          g, str("the gradient ", described(g), " that came to ", describe(node), " is not finite"),
          &node);
    }
  }
}

}  // namespace taper::lens
