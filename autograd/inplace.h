// Writes in place and the views around them: what is allowed, and how histories are rebased.
#pragma once
#include "taper/autograd/op.h"

namespace taper {

// Throws when no op may write into t: its elements overlap, or it is an inference tensor outside
// inference_mode.
void check_writable(const Tensor& t);

// Throws when t's history must not change: a leaf, or a view whose base must not be rewritten.
void check_history_may_change(const Tensor& t);

// Whether a write to t would change a base that requires grad behind its back: t is a view of it
// that was made under no_grad and has no history of its own.
bool hides_a_write(const Tensor& t);

// Whether reading `source` after some of `target` was written could give new elements. Equal
// layouts are fine for an elementwise op, which reads each element before it writes it.
bool overlaps(const Tensor& target, const Tensor& source, bool elementwise);

// `view` shares `input`'s storage and was made from it by the op of that name.
void note_view(const Tensor& view, const Tensor& input, const char* op, ViewInfo::Made made);

// `entry` recorded an op that wrote `self` in place: makes it self's history, and, when self is a
// view, its base's.
void rebase_history(const Tensor& self, const Ref<Entry>& entry);

// A new entry that takes `part` out of the tensor of layout `base` whose edge is given.
Edge part_edge(const Edge& base_edge, const Layout& base, const Tensor& part);

}  // namespace taper
