// A debugger's view: reads tensors, entries, leaves and scopes through the table of debug_root.h
// alone, byte by byte, and compares them with the objects themselves.
#include "taper/autograd/lens/debug_root.h"

#include <algorithm>
#include <cstring>

#include <gtest/gtest.h>

#include "taper/autograd/lens/cuts.h"
#include "taper/taper.h"

namespace taper {
namespace {

const DebugField& field(const std::string& name) {
  const DebugRoot& root = taper_debug_v1;
  for (std::uint64_t i = 0; i < root.num_fields; ++i) {
    if (name == root.fields[i].name) return root.fields[i];
  }
  throw std::runtime_error("the table has no " + name);
}

const char* at(const void* object, const std::string& member) {
  return static_cast<const char*>(object) + field(member).offset;
}

std::uint64_t number(const void* object, const std::string& member) {
  std::uint64_t value = 0;
  std::memcpy(&value, at(object, member), field(member).bytes);
  return value;
}

const char* pointer(const void* object, const std::string& member) {
  return reinterpret_cast<const char*>(number(object, member));  // NOLINT: what a debugger does
}

std::string text(const void* object, const std::string& member) {
  return pointer(object, member);
}

std::string string(const char* object) {
  return {pointer(object, "string.data"), number(object, "string.size")};
}

std::vector<std::int64_t> numbers(const char* from, std::uint64_t count) {
  std::vector<std::int64_t> list(count);
  if (count != 0) std::memcpy(list.data(), from, 8 * count);
  return list;
}

std::string scope(std::uint64_t number_of_scope) {
  const char* vector = nullptr;
  std::memcpy(&vector, pointer(&taper_debug_v1, "DebugRoot.scopes"), sizeof vector);
  const char* name = nullptr;
  std::memcpy(&name, pointer(vector, "vector.begin") + 8 * number_of_scope, sizeof name);
  return string(name);
}

std::vector<const char*> live_places() {
  std::vector<const char*> live;
  const char* slab = nullptr;
  std::memcpy(&slab, pointer(&taper_debug_v1, "DebugRoot.slabs"), sizeof slab);
  for (; slab != nullptr; slab = pointer(slab, "Slab.next")) {
    const DebugField& places = field("Slab.places");
    for (std::uint32_t i = 0; i < places.bytes; i += field("Place").bytes) {
      const char* place = at(slab, "Slab.places") + i;
      if (number(place, "Place.live") != 0) live.push_back(place);
    }
  }
  return live;
}

TEST(DebugRoot, NamesItsVersion) {
  EXPECT_EQ(std::memcmp(taper_debug_v1.magic, "TAPERDBG", 8), 0);
  EXPECT_EQ(taper_debug_v1.version, 1U);
  EXPECT_EQ(taper_debug_v1.bytes, sizeof(DebugRoot));
  // The two that everything else is found by.
  EXPECT_EQ(offsetof(DebugRoot, fields), 16U);
  EXPECT_EQ(offsetof(DebugRoot, num_fields), 24U);
}

TEST(DebugRoot, ShowsATensor) {
  const Tensor x = arange(24, TensorOptions(kInt64)).reshape({4, 6}).t().slice(0, 1, 5);
  Tensor(x).add_(1);
  const char* impl = pointer(&x, "Tensor.impl");
  const char* layout = at(impl, "TensorImpl.layout");
  ASSERT_EQ(number(layout, "Layout.ndim"), 2U);
  EXPECT_EQ(numbers(at(layout, "Layout.sizes"), 2), x.sizes().vec());
  EXPECT_EQ(numbers(at(layout, "Layout.strides"), 2), x.strides().vec());
  EXPECT_EQ(number(layout, "Layout.offset"), 1U);
  EXPECT_EQ(number(impl, "TensorImpl.refs"), x.use_count());

  const std::uint64_t dtype = number(impl, "TensorImpl.dtype");
  ASSERT_LT(dtype, number(&taper_debug_v1, "DebugRoot.num_dtypes"));
  const char* info =
      pointer(&taper_debug_v1, "DebugRoot.dtypes") + dtype * field("DTypeInfo").bytes;
  EXPECT_EQ(text(info, "DTypeInfo.name"), "i64");
  EXPECT_EQ(number(info, "DTypeInfo.bits"), 64U);

  const char* storage = pointer(impl, "TensorImpl.storage");
  EXPECT_EQ(pointer(storage, "Storage.data") + 8, static_cast<const char*>(x.data_ptr()));
  EXPECT_EQ(number(storage, "Storage.bytes"), 24 * 8U);
  EXPECT_EQ(number(storage, "Storage.version"), 1U);
  const char* writers = pointer(storage, "Storage.writers");
  const char* last = pointer(writers, "vector.end") - field("Mutation").bytes;
  EXPECT_EQ(last, pointer(writers, "vector.begin"));
  EXPECT_EQ(text(last, "Mutation.op"), "add");
  EXPECT_EQ(number(last, "Mutation.version"), 1U);
  EXPECT_EQ(text(at(last, "Mutation.loc"), "SourceLoc.file"), __FILE__);
}

TEST(DebugRoot, NamesDevices) {
  const Tensor x = empty({2}, TensorOptions().device(kMeta));
  const char* device = at(pointer(&x, "Tensor.impl"), "TensorImpl.device");
  const char* name = nullptr;
  std::memcpy(&name,
              pointer(&taper_debug_v1, "DebugRoot.devices") + 8 * number(device, "Device.type"),
              sizeof name);
  EXPECT_STREQ(name, "meta");
  EXPECT_EQ(number(device, "Device.index"), 0U);
}

TEST(DebugRoot, ShowsEntriesLeavesAndScopes) {
  nn::Sequential model(nn::Linear(3, 4), nn::ReLU());
  const Tensor out = model->forward(ones({2, 3}));
  const auto* node = &static_cast<const Entry&>(*gradient_edge(out).node);
  const auto& relu = *node;

  const char* meta = pointer(pointer(&out, "Tensor.impl"), "TensorImpl.meta");
  const char* edge = at(meta, "AutogradMeta.edge");
  ASSERT_EQ(pointer(edge, "Edge.node"), reinterpret_cast<const char*>(node));
  EXPECT_EQ(number(edge, "Edge.slot"), 0U);
  const std::vector<const char*> live = live_places();
  EXPECT_EQ(live.size(), live_entries());
  EXPECT_EQ(std::count(live.begin(), live.end(), reinterpret_cast<const char*>(node)), 1);

  EXPECT_EQ(number(node, "Node.index"), relu.index);
  EXPECT_EQ(number(node, "Node.is_leaf"), 0U);
  EXPECT_EQ(text(node, "Entry.name"), "relu");
  EXPECT_EQ(number(at(node, "Entry.loc"), "SourceLoc.line"), relu.loc.line);
  EXPECT_EQ(text(at(node, "Entry.loc"), "SourceLoc.function"), relu.loc.function);
  EXPECT_EQ(scope(number(node, "Entry.scope")), scope_name(relu.scope));
  EXPECT_EQ(number(node, "Entry.saved_bytes"), 2 * 4 * 4U);
  EXPECT_EQ(number(node, "Entry.consumed"), 0U);
  ASSERT_EQ(number(node, "Entry.saved.size"), 1U);
  const char* saved = pointer(node, "Entry.saved.data");
  EXPECT_EQ(pointer(saved, "SavedTensor.storage"),
            reinterpret_cast<const char*>(out.storage().get()));
  EXPECT_EQ(number(saved, "SavedTensor.output"), 0U);
  ASSERT_EQ(number(node, "Entry.outputs.size"), 1U);
  const char* spec = pointer(node, "Entry.outputs.data");
  EXPECT_EQ(numbers(pointer(spec, "TensorSpec.sizes.data"), number(spec, "TensorSpec.sizes.size")),
            (std::vector<std::int64_t>{2, 4}));

  // linear: its second input is the weight.
  ASSERT_EQ(number(node, "Entry.inputs.size"), 1U);
  const char* linear = pointer(pointer(node, "Entry.inputs.data"), "Edge.node");
  EXPECT_EQ(text(linear, "Entry.name"), "linear");
  EXPECT_EQ(scope(number(linear, "Entry.scope")), "Sequential.0");
  ASSERT_EQ(number(linear, "Entry.inputs.size"), 3U);
  const char* leaf =
      pointer(pointer(linear, "Entry.inputs.data") + field("Edge").bytes, "Edge.node");
  EXPECT_EQ(number(leaf, "Node.is_leaf"), 1U);
  EXPECT_EQ(string(at(leaf, "Leaf.name")), "weight");
  EXPECT_EQ(number(leaf, "Leaf.last_use"), number(linear, "Node.index"));
  EXPECT_EQ(scope(number(leaf, "Leaf.scope")), "Sequential.0");

  out.sum().backward();
  EXPECT_EQ(number(node, "Entry.consumed"), 1U);
  EXPECT_EQ(text(at(node, "Entry.consumed_at"), "SourceLoc.file"), __FILE__);
  const Tensor grad = model->parameters()[0].grad();
  EXPECT_EQ(pointer(at(leaf, "Leaf.grad"), "Tensor.impl"),
            reinterpret_cast<const char*>(grad.ref().get()));
  EXPECT_EQ(
      *reinterpret_cast<const std::uint64_t*>(pointer(&taper_debug_v1, "DebugRoot.next_index")),
      next_entry_index());
}

TEST(DebugRoot, ShowsWherePathsWereCut) {
  const Tensor x = ones({2}, requires_grad());
  const Tensor y = (x * 2).detach();
  const std::uint64_t id = number(pointer(&y, "Tensor.impl"), "TensorImpl.cut");
  ASSERT_NE(id, 0U);
  const std::uint64_t place = id % number(&taper_debug_v1, "DebugRoot.num_cuts");
  const char* ring = nullptr;
  std::memcpy(&ring, pointer(&taper_debug_v1, "DebugRoot.cuts"), sizeof ring);
  const char* cut = ring + place * field("Cut").bytes;
  EXPECT_EQ(number(cut, "Cut.id"), id);
  EXPECT_EQ(number(cut, "Cut.kind"), static_cast<std::uint64_t>(lens::Cut::Kind::kDetach));
  EXPECT_EQ(number(at(cut, "Cut.loc"), "SourceLoc.line"),
            lens::cut(static_cast<std::uint32_t>(id)).loc.line);
  const Edge& edge = gradient_edge(x);
  std::uint32_t last = 0;
  std::memcpy(&last, at(edge.node.get(), "Leaf.cuts") + 12, sizeof last);
  EXPECT_EQ(last, id);
}

// Looks at the struct from where a debugger stops.
struct Looks final : public Hook {
  Tensor call(const Tensor&) override {
    const DebugPass* pass = taper_debug_v1.passes;
    op = text(pointer(pass, "DebugPass.entry"), "Entry.name");
    position = number(pass, "DebugPass.position");
    grads = number(pass, "DebugPass.num_grads");
    return {};
  }

  std::string op;
  std::uint64_t position = 0, grads = 0;
};

TEST(DebugRoot, ShowsThePassAndItsEntry) {
  const Tensor x = ones({2}, requires_grad());
  const Tensor y = x.exp();
  auto* looks = new Looks;
  hooks_of(gradient_edge(y)).add(std::unique_ptr<Hook>(looks));
  y.sum().backward();
  EXPECT_EQ(looks->op, "exp");
  EXPECT_EQ(looks->position, 1U);
  EXPECT_EQ(looks->grads, 1U);
  EXPECT_EQ(taper_debug_v1.passes, nullptr);
}

}  // namespace
}  // namespace taper
