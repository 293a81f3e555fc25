// The tape: entries that say what was computed from what, and what backward will need.
#pragma once
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "taper/core/tensor.h"

namespace taper {

class Op;
struct Entry;

// Shape, dtype and device of a tensor whose gradient may be asked for.
struct TensorSpec {
  Sizes sizes;
  DType dtype = DType::kFloat32;
  Device device;

  TensorSpec() = default;

  explicit TensorSpec(const Tensor& t) : dtype(t.dtype()), device(t.device()) {
    for (const std::int64_t s : t.sizes()) sizes.push_back(s);
  }
};

// What a user hangs on a tensor's gradient. Returns a replacement, or an undefined tensor.
class Hook {
 public:
  virtual ~Hook() = default;
  virtual Tensor call(const Tensor& grad) = 0;
};

class Hooks {
 public:
  unsigned add(std::unique_ptr<Hook> hook);
  void remove(unsigned handle);
  bool empty() const { return list_.empty(); }
  Tensor run(Tensor grad) const;  // in the order of registration; a hook may remove itself

 private:
  struct Registered {
    unsigned handle;
    SourceLoc loc;  // of the registration
    std::shared_ptr<Hook> hook;
  };

  std::vector<Registered> list_;
  unsigned next_ = 0;
};

// A place that gradients flow to: an entry of the tape, or a leaf.
struct Node : RefCounted {
  // A stamp from one process-wide counter. Inputs are always stamped before what is computed from
  // them, on whatever threads: so decreasing stamps are a reverse topological order.
  std::uint64_t index = 0;
  bool is_leaf = false;
  std::atomic<std::uint32_t> walked{0};  // a bit for each line that cut, see lens/cuts.cpp
  Node* next_dead = nullptr;

  // Frees without recursion: what a dying node gives up is queued and freed in a loop.
  static void destroy(Node* node);
};

// One output of a node; a null node means that no gradient is wanted.
struct Edge {
  Ref<Node> node;
  std::uint32_t slot = 0;
  std::uint32_t cut = 0;  // of a null node: TensorImpl::cut of the input

  explicit operator bool() const { return static_cast<bool>(node); }
};

// A tensor that the user made, as gradients see it. The tensor owns it and so do edges to it;
// it does not keep the tensor alive.
struct Leaf final : Node {
  std::mutex mutex;              // concurrent backward passes may meet here
  TensorImpl* tensor = nullptr;  // null once the tensor is gone
  TensorSpec spec;
  Layout layout;  // grad takes the same strides where they are dense
  Tensor grad;
  Hooks hooks;
  std::optional<unsigned> retains;  // of a tensor that is no leaf: the hook that fills grad
  std::string name;                 // of a module's parameter: what that module calls it
  // Where paths from here ended, the latest last; 0: none (autograd/lens/cuts.h).
  std::array<std::atomic<std::uint32_t>, 4> cuts{};
  // The latest entry that took it, 0: none; and where that was.
  std::atomic<std::uint64_t> last_use{0};
  std::atomic<const char*> last_file{""};
  std::atomic<std::uint32_t> last_line{0};
  std::atomic<std::uint32_t> scope{0};  // the first module that used it, which completes the name
  SourceLoc made_at;                    // the call that made it a leaf with a gradient
  // The latest backward that added to grad, and the latest call that dropped it; with the next
  // entry's index then, 0: none did.
  SourceLoc added_at, dropped_at;
  std::uint64_t added = 0, dropped = 0;
};

// "encoder.3.fc1.weight"; "" for a leaf that no module registered.
std::string full_name(const Leaf& leaf);

// A snapshot of a tensor that backward needs: elements by storage, never the tensor itself.
struct SavedTensor {
  Ref<Storage> storage;
  Layout layout;
  DType dtype = DType::kFloat32;
  std::uint32_t version = 0;  // of the storage when it was saved
  std::int32_t output = -1;   // the entry's own output of this number; then there is no edge
  Edge edge;                  // where its own gradient flows, for double backward
};

// One recorded op.
struct Entry final : Node {
  std::unique_ptr<Op> op;
  const char* name = "";  // the op's, for who can read memory but call nothing
  SourceLoc loc;          // the user's line
  std::uint32_t scope = 0;
  StreamId stream = 0;  // of the outputs' device
  SmallVector<Edge, 2> inputs;
  SmallVector<TensorSpec, 1> outputs;
  SmallVector<SavedTensor, 1> saved;
  std::uint64_t saved_bytes = 0;   // storages counted once
  std::unique_ptr<Hooks[]> hooks;  // one Hooks per output, made by the first
  bool consumed = false;           // backward ran and freed `saved`
  bool both_stretched = false;     // two operands were broadcast: a row and a column, perhaps
  SourceLoc consumed_at;
};

// A view remembers its base: when somebody writes in place, its history is made anew from the
// base's (Note [Views and writes] in autograd/inplace.cpp).
struct ViewInfo {
  enum class Made : std::uint8_t { kNormal, kMultiOutput, kCustom, kNoGrad };
  Tensor base;                // never a view itself
  std::uint32_t version = 0;  // of the storage when the view's edge was right
  Made made = Made::kNormal;
  const char* op = "";  // the view op, for messages
};

// What autograd knows of a tensor.
struct AutogradMeta {
  Edge edge;       // a leaf's own Leaf, or (entry, output); null: requires no grad
  Ref<Leaf> leaf;  // where grad() lives, for leaves and for retain_grad
  std::unique_ptr<ViewInfo> view;
};

AutogradMeta& meta_of(const Tensor& t);  // made on first use

// Where t's gradient flows; brings a view whose base was written up to date first.
const Edge& gradient_edge(const Tensor& t);

// The tensor whose gradient flows along an edge that is not null.
const TensorSpec& spec_of(const Edge& edge);

// The leaf node of t, made on first use; requires_grad is not touched.
Leaf& leaf_of(const Tensor& t);

// A fresh entry with a stamp, from process-owned slabs.
Ref<Entry> new_entry();

// The stamp that the next entry gets, if no other thread is faster.
std::uint64_t next_entry_index();

// Entries alive now, in the process; for tests and reports.
std::size_t live_entries();

// The entries alive now, by rising index, each held; for reports. Meanwhile no other thread may let
// go of one.
std::vector<Ref<Entry>> all_entries();

// Gives `t` the history (entry, slot). A retained gradient follows.
void set_history(const Tensor& t, const Ref<Entry>& entry, std::uint32_t slot);

// Lets the gradient of `t`, which is no leaf, add up in its grad().
void start_retaining(const Tensor& t);

// Drops t's gradient, or fills it with zeros; notes the thread's call site.
void clear_grad(const Tensor& t, bool set_to_none);

// The hooks on an edge's gradient.
Hooks& hooks_of(const Edge& edge);

template <class F> class HookOf final : public Hook {
 public:
  explicit HookOf(F f) : f_(std::move(f)) {}

  Tensor call(const Tensor& grad) override {
    if constexpr (std::is_void_v<decltype(f_(grad))>) {
      f_(grad);
      return {};
    } else {
      return f_(grad);
    }
  }

 private:
  F f_;
};

template <class F> unsigned Tensor::register_hook(F f, Loc loc) const {
  return add_hook(new HookOf<F>(std::move(f)), loc);
}

}  // namespace taper
