// Tensor's autograd methods.
#include <mutex>

#include "taper/autograd/backward.h"
#include "taper/autograd/inplace.h"
#include "taper/autograd/lens/cuts.h"

namespace taper {

namespace {

void freeze(const Tensor& leaf) {
  const std::uint32_t cut = lens::note_cut(lens::Cut::Kind::kFrozen, "requires_grad_", leaf);
  meta_of(leaf).edge = {};
  leaf.impl().cut = cut;
}

}  // namespace

bool Tensor::requires_grad() const {
  return static_cast<bool>(gradient_edge(*this));
}

const Tensor& Tensor::requires_grad_(bool requires_grad, Loc loc) const {
  const Call call(loc);
  if (requires_grad == this->requires_grad()) return *this;
  TAPER_CHECK(is_leaf(), "requires_grad_: only a leaf can change it; this tensor was made by ",
              grad_fn(), ". detach() gives a leaf");
  TAPER_CHECK(!requires_grad || is_floating_point(),
              "requires_grad_: only floating-point tensors have gradients, this one is ", dtype());
  TAPER_CHECK(!requires_grad || !is_inference() || InferenceMode::is_enabled(),
              "requires_grad_: an inference tensor cannot require grad; clone() it first");
  if (requires_grad) {
    meta_of(*this).edge = {Ref<Node>(&leaf_of(*this)), 0};
    impl().cut = 0;
  } else freeze(*this);
  return *this;
}

bool Tensor::is_leaf() const {
  const Edge& edge = gradient_edge(*this);
  return !edge || edge.node->is_leaf;
}

bool Tensor::is_view() const {
  return impl().meta != nullptr && impl().meta->view != nullptr;
}

const Tensor& Tensor::grad() const {
  static const Tensor kUndefined;
  const AutogradMeta* meta = impl().meta;
  return meta == nullptr || !meta->leaf ? kUndefined : meta->leaf->grad;
}

Tensor& Tensor::mutable_grad() const {
  return leaf_of(*this).grad;
}

void clear_grad(const Tensor& t, bool set_to_none) {
  if (!t.grad().defined()) return;
  Leaf& leaf = leaf_of(t);
  const std::lock_guard lock(leaf.mutex);
  if (set_to_none) {
    leaf.grad = Tensor();
    leaf.dropped_at = call_site.loc();
    leaf.dropped = next_entry_index();
  } else {
    leaf.grad = leaf.grad.detach().zero_();
  }
}

namespace {

// Keeps the gradient of a tensor that is no leaf.
class RetainGrad final : public Hook {
 public:
  explicit RetainGrad(Ref<Leaf> home) : home_(std::move(home)) {}

  Tensor call(const Tensor& grad) override {
    const std::lock_guard lock(home_->mutex);
    if (home_->tensor == nullptr) return {};
    home_->grad = home_->grad.defined() ? home_->grad + grad : grad.clone();
    return {};
  }

 private:
  Ref<Leaf> home_;
};

}  // namespace

void start_retaining(const Tensor& t) {
  const Ref<Leaf> home(&leaf_of(t));
  home->retains = hooks_of(gradient_edge(t)).add(std::make_unique<RetainGrad>(home));
}

const Tensor& Tensor::retain_grad(Loc loc) const {
  const Call call(loc);
  TAPER_CHECK(requires_grad(), "retain_grad: the tensor does not require grad");
  if (!is_leaf() && !retains_grad()) start_retaining(*this);
  return *this;
}

bool Tensor::retains_grad() const {
  return !is_leaf() && impl().meta->leaf && impl().meta->leaf->retains;
}

void Tensor::backward(const Tensor& gradient,
                      std::optional<bool> retain_graph,
                      bool create_graph,
                      Loc loc) const {
  const Call call(loc);
  impl();  // an undefined tensor is an error with a line
  Backward pass(ArrayRef<Tensor>(this, 1),
                gradient.defined() ? ArrayRef<Tensor>(&gradient, 1) : ArrayRef<Tensor>(), {},
                {retain_graph.value_or(create_graph), create_graph, true}, loc);
  pass.finish();
}

void note_item(const Tensor& t) {
  lens::note_cut(lens::Cut::Kind::kItem, "item", t);
}

// What the user cuts is written down; what a function of ours cuts inside is its own affair.
Tensor Tensor::detach(Loc loc) const {
  const bool by_user = !call_site.active();
  const Call call(loc);
  Tensor out = make_tensor(storage(), layout(), dtype());
  out.impl().inference = is_inference();
  if (by_user) out.impl().cut = lens::note_cut(lens::Cut::Kind::kDetach, "detach", *this);
  return out;
}

const Tensor& Tensor::detach_(Loc loc) const {
  const Call call(loc);
  TAPER_CHECK(!is_view(), "detach_: a view cannot forget its history in place; use detach()");
  AutogradMeta* meta = impl().meta;
  if (meta == nullptr) return *this;
  if (meta->leaf && meta->leaf->retains) {
    hooks_of(meta->edge).remove(*meta->leaf->retains);
    meta->leaf->retains.reset();
  }
  impl().cut = lens::note_cut(lens::Cut::Kind::kDetach, "detach_", *this);
  meta->edge = {};
  return *this;
}

void Tensor::set_data(const Tensor& other, Loc loc) const {
  const Call call(loc);
  impl().storage = other.storage();
  impl().layout = other.layout();
  impl().dtype = other.dtype();
  impl().device = other.device();
  if (impl().meta == nullptr || !impl().meta->leaf) return;
  Leaf& leaf = *impl().meta->leaf;
  leaf.spec = TensorSpec(*this);
  leaf.layout = dense_like(layout());
}

unsigned Tensor::add_hook(Hook* hook, Loc loc) const {
  std::unique_ptr<Hook> owned(hook);
  const Call call(loc, "register_hook");
  return hooks_of(gradient_edge(*this)).add(std::move(owned));
}

void Tensor::remove_hook(unsigned handle) const {
  hooks_of(gradient_edge(*this)).remove(handle);
}

const char* Tensor::grad_fn() const {
  return is_leaf() ? "" : static_cast<const Entry&>(*gradient_edge(*this).node).op->name();
}

}  // namespace taper
