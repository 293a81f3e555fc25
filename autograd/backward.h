// The backward pass: one object, one loop, on the calling thread.
#pragma once
#include <vector>

#include "taper/autograd/lens/debug_root.h"
#include "taper/autograd/lens/moment.h"
#include "taper/autograd/lens/stop.h"
#include "taper/autograd/op.h"

namespace taper {

struct BackwardOptions {
  bool retain_graph = false;  // keep what entries saved, for another pass
  bool create_graph = false;  // record the pass itself, to differentiate again
  bool accumulate = true;     // add into grad() of the leaves
  bool run_hooks = true;      // false: only look, as lens::why_zero does
};

// Runs entries by decreasing index: see Node::index for why that order is right without counting
// dependencies. Gradients of one output are added in the order in which their entries ran, which
// the indices fix: results are the same to the bit each time.
class Backward {
 public:
  explicit Backward(const Tensor& loss, BackwardOptions options = {}, Loc loc = Loc::current());
  // Several roots with their gradients (undefined: ones, for one element). When `inputs` is not
  // empty only the entries on paths to them run, and captured(i) is the gradient of inputs[i].
  Backward(ArrayRef<Tensor> roots,
           ArrayRef<Tensor> gradients,
           ArrayRef<Tensor> inputs,
           BackwardOptions options,
           Loc loc);
  ~Backward();
  Backward(const Backward&) = delete;
  Backward& operator=(const Backward&) = delete;

  // Runs all that is left and gives back what entries saved as it goes: `loss.backward()` is
  // Backward(loss).finish(). After it there is no way back.
  void finish(Loc loc = Loc::current());

  // --- The Lens: one node at a time, forth and back ---------------------------------------------
  // A node is an entry of the tape, or a leaf in which the gradient is added up. From the first
  // step on the pass remembers what it needs to go back, and entries keep what they saved until
  // finish() or the pass's end; memory stays within some 10 % of a pass with retain_graph. Going
  // back runs rules again, from gradients kept on the way; each hook runs once, each leaf adds up
  // once, and what they made is kept.

  // Runs the next node; false when none is left.
  bool step(Loc loc = Loc::current());
  // Runs on to the first entry that belongs to another module; false at the end.
  bool next_module(Loc loc = Loc::current());
  // Runs on until a step meets the condition; here() is that step. False when none did.
  bool run_until(const lens::Stop& stop, Loc loc = Loc::current());
  // To where the pass stood before its latest step.
  void back(Loc loc = Loc::current());
  // To where it stood, or will stand, after that many nodes from its beginning. A place that the
  // pass does not have is refused; it may have run to its end to find out, with its effects.
  void seek(std::size_t position, Loc loc = Loc::current());

  // How many nodes have run.
  std::size_t position() const { return debug_.position; }

  // The latest step, told whole. Throws before the first step and after finish().
  lens::Moment here(Loc loc = Loc::current()) const;

  // The node of the latest step; asks for as much.
  const Node& node() const;

  const Tensor& captured(std::size_t input) const { return captured_[input]; }

 private:
  struct History;

  // A node that gradients have reached, and their sum for each of its outputs, which the current
  // stream of `streams` wrote last (of the gradient's device).
  struct Reached {
    Ref<Node> node;
    SmallVector<Tensor, 1> grads;
    SmallVector<StreamId, 1> streams;
  };

  struct Capture {
    const Node* node;
    std::uint32_t slot;
    std::size_t input;
  };

  Reached& reach(const Edge& edge);
  std::uint32_t& cell_of(const Node* node);
  void rebuild_table();
  void add(const Edge& edge, Tensor grad);
  bool advance();
  void show_to_user(Node& node, SmallVector<Tensor, 1>& grads);
  void check_usable(const char* wanted) const;
  void recover(std::size_t position) noexcept;
  void find_needed(ArrayRef<Tensor> roots);
  bool is_needed(const Edge& edge) const;
  void run_hooks(Node& node, SmallVector<Tensor, 1>& grads);
  void run_leaf(Leaf& leaf, Tensor grad);
  void run_entry(Entry& entry, ArrayRef<Tensor> grads);
  void pass_on(const Entry& entry, Grads& grads);
  void capture(const Node& node, SmallVector<Tensor, 1>& grads);
  void consume(Entry& entry) const;
  void remember(const char* wanted);
  void forget() noexcept;
  void restore(std::size_t position);
  std::vector<const Node*> nodes_ahead() const;
  bool stops_at(const lens::Stop& stop) const;
  void obey_debugger();

  BackwardOptions options_;
  Loc loc_;
  std::vector<Reached> reached_;  // places are reused through free_
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> heap_;   // of places in reached_, largest index on top
  std::vector<std::uint32_t> table_;  // node -> place + 1, open addressing
  std::size_t used_cells_ = 0;
  std::vector<Capture> captures_;
  std::vector<Tensor> captured_;
  std::vector<const Node*> needed_;  // only with inputs: those on a path to one, by address
  bool restricted_ = false;
  DebugPass debug_;       // for debuggers; and where the pass stands
  std::string broken_;    // the node that failed where there is no way back; empty: none
  bool running_ = false;  // a node runs now
  std::unique_ptr<History> history_;  // from the first step() to finish()
};

// d(sum of outputs * grad_outputs) / d(inputs), without touching grad(). An input that does not
// take part throws, or with allow_unused gives an undefined tensor.
std::vector<Tensor> grad(ArrayRef<Tensor> outputs,
                         ArrayRef<Tensor> inputs,
                         ArrayRef<Tensor> grad_outputs = {},
                         std::optional<bool> retain_graph = std::nullopt,
                         bool create_graph = false,
                         bool allow_unused = false,
                         Loc loc = Loc::current());

// backward() of several tensors at once.
void backward(ArrayRef<Tensor> tensors,
              ArrayRef<Tensor> grad_tensors = {},
              std::optional<bool> retain_graph = std::nullopt,
              bool create_graph = false,
              ArrayRef<Tensor> inputs = {},
              Loc loc = Loc::current());

namespace autograd {  // LibTorch's names
using taper::backward;
using taper::grad;
using variable_list = std::vector<Tensor>;
using tensor_list = std::vector<Tensor>;
}  // namespace autograd

}  // namespace taper
