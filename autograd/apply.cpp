// apply(): runs an op's forward and, when a gradient will be wanted, writes it on the tape.
#include <atomic>
#include <typeinfo>

#include "taper/autograd/inplace.h"
#include "taper/autograd/lens/cuts.h"
#include "taper/autograd/op.h"
#include "taper/core/promote.h"

namespace taper {
namespace {

std::atomic<bool> deterministic{false};

std::uint64_t which_need_grad(ArrayRef<const Tensor*> inputs) {
  std::uint64_t needs = 0;
  TAPER_CHECK(inputs.size() <= 64, "an op takes at most 64 tensors, got ", inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i]->defined() && gradient_edge(*inputs[i])) needs |= std::uint64_t{1} << i;
  }
  return needs;
}

// Names the running op for error messages, and gives back the entry that it worked on.
class OpName {
 public:
  explicit OpName(const char* op) : kept_(call_site.op), entry_(call_site.entry_index) {
    call_site.op = op;
  }

  ~OpName() {
    call_site.op = kept_;
    call_site.entry_index = entry_;
  }

  // No other op is running it.
  bool outermost() const { return kept_ == nullptr; }

  OpName(const OpName&) = delete;
  OpName& operator=(const OpName&) = delete;

 private:
  const char* kept_;
  std::uint64_t entry_;
};

// "f32 (2, 3) on cpu, the number 2, nothing"
std::string listed(ArrayRef<const Tensor*> inputs) {
  std::string text;
  for (const Tensor* t : inputs) {
    if (!text.empty()) text += ", ";
    if (!t->defined()) text += "nothing";
    else if (t->impl().wrapped_number) text += str("the number ", t->item());
    else text += str(t->dtype(), " ", t->sizes(), " on ", t->device());
  }
  return text;
}

Tensor copy_of(const Tensor& t) {
  Tensor copy = make_tensor(contiguous_layout(t.sizes()), t.dtype(), t.device());
  kernels_for(t.device()).copy(Exec(t.device()), copy.as<Out>(), t.as<In>());
  return copy;
}

}  // namespace

void set_deterministic(bool on) {
  deterministic.store(on, std::memory_order_relaxed);
}

bool is_deterministic() {
  return deterministic.load(std::memory_order_relaxed);
}

Device Op::device(ArrayRef<const Tensor*> inputs) const {
  const Tensor* first = nullptr;
  const auto follows = [](const Tensor& t) { return t.is_cpu() && t.dim() == 0; };
  for (const Tensor* t : inputs) {
    if (!t->defined()) continue;
    if (first == nullptr || (follows(*first) && !follows(*t))) {
      first = t;
      continue;
    }
    TAPER_CHECK(t->device() == first->device() || follows(*t),
                "the tensors lie on different devices: ", first->sizes(), " on ", first->device(),
                " and ", t->sizes(), " on ", t->device(), "; move one with to(device)");
  }
  return first == nullptr ? Device(kCPU) : first->device();
}

Frame::Frame(ArrayRef<const Tensor*> inputs, const Tensor* target, bool recording, Device device)
    : inputs_(inputs), target_(target), recording_(recording), exec_(device) {
  if (!exec_.device.is_cuda()) return;
  const Stream stream(exec_.device, exec_.stream);
  for (const Tensor* t : inputs) {
    if (t->defined() && t->storage()->stream() != stream.id()) t->storage()->record_stream(stream);
  }
}

const Tensor& Frame::out(IntArrayRef sizes, DType dtype) {
  if (target_ == nullptr) return out(contiguous_layout(sizes), dtype);
  const Tensor& target = *target_;
  TAPER_CHECK(target.sizes() == sizes, "the result has shape ", sizes,
              ", which an in-place op cannot write into ", target.sizes());
  if (target.dtype() == dtype) {
    outputs_.push_back(target);
    return outputs_.back();
  }
  TAPER_CHECK(can_cast(dtype, target.dtype()), "the result is ", dtype,
              ", which an in-place op cannot write into ", target.dtype());
  cast_into_target_ = make_tensor(contiguous_layout(sizes), dtype, target.device());
  outputs_.push_back(cast_into_target_);
  return outputs_.back();
}

const Tensor& Frame::out(const Layout& dense, DType dtype) {
  if (target_ != nullptr) return out(dense.shape(), dtype);
  Layout layout = dense;
  layout.offset = 0;
  outputs_.push_back(make_tensor(layout, dtype, device()));
  return outputs_.back();
}

void Frame::view(const Layout& layout) {
  view(layout, in(0).dtype());
}

void Frame::view(const Layout& layout, DType dtype) {
  outputs_.push_back(make_tensor(in(0).storage(), layout, dtype));
}

void Frame::save(const Tensor& t) {
  if (!recording_) return;
  TAPER_CHECK(!t.is_inference(), "an inference tensor of shape ", t.sizes(),
              " cannot be saved for backward; make it outside InferenceMode, or clone() it");
  // An in-place op overwrites what it saves: it keeps the elements that were there.
  const bool doomed = target_ != nullptr && t.storage() == target_->storage();
  const Tensor kept = doomed ? copy_of(t) : t;
  SavedTensor& s = saved_.emplace_back();
  s.storage = kept.storage();
  s.layout = kept.layout();
  s.dtype = kept.dtype();
  s.version = kept.version();
  s.edge = gradient_edge(t);
}

void Frame::save_out(std::size_t output) {
  if (recording_) saved_.emplace_back().output = static_cast<std::int32_t>(output);
}

// Runs one op: forward, then the entry on the tape. Split by time, each part once.
class Recorder {
 public:
  Recorder(Op& op, ArrayRef<const Tensor*> inputs, const Tensor* target)
      : op_(op),
        needs_(GradMode::is_enabled() && op.differentiable() ? which_need_grad(inputs) : 0),
        frame_(inputs, target, needs_ != 0, op.device(inputs)) {
    frame_.needs_ = needs_;
  }

  // Errors of the op that the user called show what it was given; those of a kind of their own,
  // such as out of memory, stay of that kind.
  void forward(bool outermost) {
    TAPER_CHECK(!is_deterministic() || op_.deterministic(frame_.device()),
                "has no deterministic kernel on ", frame_.device(),
                ", and set_deterministic(true) is in force");
    if (needs_ != 0) call_site.entry_index = next_entry_index();
    const GradModeSetting not_recorded({false, grad_mode_state.inference});
    try {
      op_.forward(frame_);
    } catch (const Error& e) {
      if (!outermost || typeid(e) != typeid(Error)) throw;
      throw Error(e.message() + "\n  given " + listed(frame_.inputs_), e.op(), e.loc(), e.scope());
    }
  }

  bool records() const { return needs_ != 0; }

  Tensors& outputs() { return frame_.outputs_; }

  // After an in-place forward: the cast, and the note of who wrote.
  void finish_write() {
    const Tensor& target = *frame_.target_;
    if (frame_.cast_into_target_.defined()) {
      frame_.kernels().copy(frame_.exec(), target.as<Out>(), frame_.cast_into_target_.as<In>());
      frame_.outputs_[0] = target;
    }
    target.storage()->note_write(op_.name());
  }

  Ref<Entry> record() {
    Ref<Entry> entry = new_entry();
    entry->loc = call_site.loc();
    entry->scope = call_site.scope;
    entry->stream = current_stream(frame_.outputs_[0].device()).id();
    for (std::size_t i = 0; i < frame_.size(); ++i) {
      if (!frame_.needs(i)) {
        const Tensor& t = frame_.in(i);
        const std::uint32_t cut = t.defined() ? t.impl().cut : 0;
        entry->inputs.emplace_back().cut = cut;
        if (cut != 0) lens::note_joined(cut);
        continue;
      }
      const Edge& edge = gradient_edge(frame_.in(i));
      entry->inputs.push_back(edge);
      if (edge.node->is_leaf) note_use(static_cast<Leaf&>(*edge.node), *entry);
    }
    for (const Tensor& t : frame_.outputs_) entry->outputs.emplace_back(t);
    const IntArrayRef sizes(entry->outputs[0].sizes);
    entry->both_stretched = frame_.size() == 2 && !(frame_.in(0).sizes() == sizes) &&
                            !(frame_.in(1).sizes() == sizes) && op_.elementwise();
    keep(*entry);
    entry->name = op_.name();
    entry->op = op_.to_heap();
    return entry;
  }

 private:
  static void note_use(Leaf& leaf, const Entry& entry) {
    leaf.last_use.store(entry.index, std::memory_order_relaxed);
    if (leaf.scope.load(std::memory_order_relaxed) == 0)
      leaf.scope.store(entry.scope, std::memory_order_relaxed);
    leaf.last_file.store(entry.loc.file, std::memory_order_relaxed);
    leaf.last_line.store(entry.loc.line, std::memory_order_relaxed);
  }

  // Outputs are looked at only now: an in-place op has made its version by then.
  void keep(Entry& entry) {
    entry.saved = std::move(frame_.saved_);
    for (SavedTensor& s : entry.saved) {
      if (s.output >= 0) {
        const Tensor& t = outputs()[static_cast<std::size_t>(s.output)];
        s.storage = t.storage();
        s.layout = t.layout();
        s.dtype = t.dtype();
        s.version = t.version();
      }
      bool seen = false;
      for (const SavedTensor* other = entry.saved.begin(); other != &s; ++other) {
        seen = seen || other->storage == s.storage;
      }
      if (!seen) entry.saved_bytes += s.storage->nbytes();
    }
  }

  Op& op_;
  std::uint64_t needs_;
  Frame frame_;
};

namespace {

Tensor copy_with_history(const Tensor& t) {
  Tensor copy = copy_of(t);
  if (gradient_edge(t)) meta_of(copy).edge = gradient_edge(t);
  return copy;
}

void remember_views(const Op& op, ArrayRef<const Tensor*> inputs, Tensors& outputs) {
  using Made = ViewInfo::Made;
  const Made made = !op.plain_views()    ? Made::kCustom
                    : outputs.size() > 1 ? Made::kMultiOutput
                                         : Made::kNormal;
  for (const Tensor* input : inputs) {
    if (!input->defined()) continue;
    for (const Tensor& t : outputs) {
      if (t.storage() == input->storage() && !t.is_same(*input)) {
        note_view(t, *input, op.name(), made);
      }
    }
    if (op.plain_views()) return;  // then a view is one of the first input
  }
}

// Whether there is anything to say of an op that was not recorded: something requires grad, or is
// what is left of something that did.
bool may_cut(ArrayRef<const Tensor*> inputs) {
  for (const Tensor* t : inputs) {
    if (t->defined() && (t->impl().cut != 0 || t->impl().meta != nullptr)) return true;
  }
  return false;
}

}  // namespace

Tensors apply_n(Op&& op, ArrayRef<const Tensor*> inputs) {
  const OpName name(op.name());
  Recorder recorder(op, inputs, nullptr);
  recorder.forward(name.outermost());
  Tensors& outputs = recorder.outputs();
  if (InferenceMode::is_enabled()) {
    for (Tensor& t : outputs) t.impl().inference = true;  // but for views, below
  }
  if (recorder.records() && !InferenceMode::is_enabled()) {
    const Ref<Entry> entry = recorder.record();
    for (std::uint32_t k = 0; k < outputs.size(); ++k) {
      if (outputs[k].is_floating_point()) set_history(outputs[k], entry, k);
    }
    if (!outputs[0].is_floating_point()) outputs[0].impl().cut = lens::note_unrecorded(op, inputs);
  } else if (name.outermost() && may_cut(inputs)) {
    const std::uint32_t cut = lens::note_unrecorded(op, inputs);
    for (const Tensor& t : outputs) t.impl().cut = cut;
  }
  remember_views(op, inputs, outputs);
  return std::move(outputs);
}

Tensor apply(Op&& op, ArrayRef<const Tensor*> inputs) {
  Tensors outputs = apply_n(std::move(op), inputs);
  return std::move(outputs[0]);
}

void apply_inplace(Op&& op, const Tensor& self, ArrayRef<const Tensor*> inputs) {
  const OpName name(op.name());
  check_writable(self);
  SmallVector<Tensor, 2> copies;  // of inputs that share some of self's elements
  copies.reserve(inputs.size());
  SmallVector<const Tensor*, 4> safe;
  for (const Tensor* t : inputs) {
    const bool shares = t != inputs[0] && t->defined() && overlaps(self, *t, op.elementwise());
    safe.push_back(shares ? &copies.emplace_back(copy_with_history(*t)) : t);
  }
  Recorder recorder(op, safe, &self);
  if (recorder.records() || hides_a_write(self)) check_history_may_change(self);
  recorder.forward(name.outermost());
  recorder.finish_write();
  if (recorder.records()) {
    rebase_history(self, recorder.record());
  } else if (name.outermost() && !gradient_edge(self) && may_cut(inputs)) {
    self.impl().cut = lens::note_unrecorded(op, inputs);
  }
}

}  // namespace taper
