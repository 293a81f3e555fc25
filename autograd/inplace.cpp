// Writes in place and the views around them: what is allowed, and how histories are rebased.
#include "taper/autograd/inplace.h"

#include "taper/autograd/ops/shape.h"

namespace taper {

// Note [Views and writes]
// x = base(); v = x.view...; v.mul_(2) must change the gradient that flows through x as well. So:
// - a view keeps its base (never another view: a view of a view keeps that one's base);
// - a write through v records its op as usual, and then becomes an entry whose output is the
//   whole base, with v's part replaced: CopySlices. That is the base's new history;
// - each view remembers the storage version at which its own history was right. When it is asked
//   for it later and the version has moved on, the history is made anew as an as_strided of the
//   base's present one. gradient_edge is the one place where that happens.

void check_writable(const Tensor& t) {
  TAPER_CHECK(!t.is_inference() || InferenceMode::is_enabled(),
              "an inference tensor cannot be written outside InferenceMode; clone() it first");
  TAPER_CHECK(!may_overlap_itself(t.layout()), "several elements of the written tensor, ",
              t.layout(), ", share one place in memory (it was expanded); clone() it first");
}

void check_history_may_change(const Tensor& t) {
  TAPER_CHECK(!t.is_leaf() || !t.requires_grad(),
              "a leaf that requires grad is written in place; do it under NoGradGuard, or on a "
              "clone()");
  const AutogradMeta* meta = t.impl().meta;
  const ViewInfo* view = meta == nullptr ? nullptr : meta->view.get();
  if (view == nullptr) return;
  TAPER_CHECK(!view->base.is_leaf() || !view->base.requires_grad(),
              "a view of a leaf that requires grad is written in place; do it under NoGradGuard, "
              "or on a clone()");
  TAPER_CHECK(view->made != ViewInfo::Made::kMultiOutput,
              "the written tensor is one of several views that ", view->op,
              " returned at once; their history cannot be changed in place. Use slice() or "
              "select() instead, or clone()");
  TAPER_CHECK(view->made != ViewInfo::Made::kCustom, "the written tensor is a view that ", view->op,
              " returned, and a write to it would bypass that function's backward; clone() it");
  TAPER_CHECK(view->made != ViewInfo::Made::kNoGrad,
              "the written tensor is a view made under NoGradGuard or InferenceMode; make it "
              "outside, or clone()");
}

bool hides_a_write(const Tensor& t) {
  const AutogradMeta* meta = t.impl().meta;
  if (!GradMode::is_enabled() || meta == nullptr || meta->view == nullptr) return false;
  const ViewInfo& view = *meta->view;
  return view.made == ViewInfo::Made::kNoGrad && view.base.requires_grad();
}

bool overlaps(const Tensor& target, const Tensor& source, bool elementwise) {
  if (!(target.storage() == source.storage())) return false;
  if (elementwise && target.layout() == source.layout() && target.dtype() == source.dtype()) {
    return false;
  }
  const Extent a = extent(target.layout()), b = extent(source.layout());
  return a.begin * target.element_size() < b.end * source.element_size() &&
         b.begin * source.element_size() < a.end * target.element_size();
}

void note_view(const Tensor& view, const Tensor& input, const char* op, ViewInfo::Made made) {
  view.impl().inference = input.is_inference();  // the mode marks new memory, not views of old
  if (input.is_inference()) return;
  auto info = std::make_unique<ViewInfo>();
  const AutogradMeta* input_meta = input.impl().meta;
  const bool chained = input_meta != nullptr && input_meta->view != nullptr;
  info->base = chained ? input_meta->view->base : input;
  info->version = view.version();
  info->op = op;
  info->made = made == ViewInfo::Made::kMultiOutput         ? made
               : !GradMode::is_enabled()                    ? ViewInfo::Made::kNoGrad
               : made == ViewInfo::Made::kNormal && chained ? input_meta->view->made
                                                            : made;
  meta_of(view).view = std::move(info);
}

namespace {

// The part of a base that a view shows, and the op that wrote it; stands for the whole base.
// d base = d out with the view's part taken by the inner op's rule.
class CopySlices final : public Op {
 public:
  CopySlices(std::unique_ptr<Op> inner, const Layout& base, const Layout& view)
      : inner_(std::move(inner)), part_{base, view} {}

  const char* name() const override { return inner_->name(); }

  void forward(Frame&) override { TAPER_ASSERT(false && "CopySlices only runs backwards"); }

  Grads backward(const Reverse& r) const override {
    const auto& [base, view] = part_;
    const Tensor part = strided_part(r.grad(), base, view);
    std::uint64_t needs = 0;
    for (std::size_t i = 0; i < r.entry().inputs.size(); ++i) {
      if (r.needs(i)) needs |= std::uint64_t{1} << i;
    }
    Grads grads = inner_->backward(Reverse(r.entry(), ArrayRef<Tensor>(&part, 1), needs, &part_));
    if (r.needs(0)) {
      const Tensor inner = grads[0].defined() ? sum_to(grads[0], part.sizes()) : zeros_like(part);
      grads[0] = replace_strided_part(r.grad(), inner, base, view);
    }
    return grads;
  }

  std::unique_ptr<Op> to_heap() override {
    return std::make_unique<CopySlices>(std::move(inner_), part_.base, part_.view);
  }

 private:
  std::unique_ptr<Op> inner_;
  Reverse::PartOf part_;
};

}  // namespace

void rebase_history(const Tensor& self, const Ref<Entry>& entry) {
  AutogradMeta& meta = meta_of(self);
  if (!meta.view) {
    set_history(self, entry, 0);
    return;
  }
  const Tensor& base = meta.view->base;
  const Edge base_edge = gradient_edge(base);
  entry->op = std::make_unique<CopySlices>(std::move(entry->op), base.layout(), self.layout());
  entry->inputs[0] = base_edge;
  entry->outputs[0] = TensorSpec(base);
  set_history(base, entry, 0);
  meta.view->version = self.version() - 1;  // stale: the next look makes its history anew
}

Edge part_edge(const Edge& base_edge, const Layout& base, const Tensor& part) {
  const Ref<Entry> entry = new_entry();
  entry->loc = call_site.loc();
  entry->scope = call_site.scope;
  entry->stream = current_stream(part.device()).id();
  entry->inputs.push_back(base_edge);
  entry->outputs.emplace_back(part);
  entry->op = strided_part_op(base, part.layout());
  entry->name = entry->op->name();
  return {Ref<Node>(entry.get()), 0};
}

const Edge& gradient_edge(const Tensor& t) {
  static const Edge kNone;
  AutogradMeta* meta = t.impl().meta;
  if (meta == nullptr) return kNone;
  ViewInfo* view = meta->view.get();
  if (view == nullptr || view->version == t.version() || view->made == ViewInfo::Made::kCustom) {
    return meta->edge;
  }
  const Edge& base = gradient_edge(view->base);
  view->version = t.version();
  if (base && t.is_floating_point()) {
    meta->edge = part_edge(base, view->base.layout(), t);
  }
  return meta->edge;
}

}  // namespace taper
