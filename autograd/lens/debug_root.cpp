// The list of backward passes, and the struct that a debugger finds by name.
#include "taper/autograd/lens/debug_root.h"

#include <bit>
#include <iterator>
#include <mutex>

#include <unistd.h>

#include "taper/autograd/lens/cuts.h"
#include "taper/autograd/slab.h"
#include "taper/core/base/spin_lock.h"

namespace taper {

// Friend of the classes whose private members a debugger reads.
struct DebugLayout {
  static const DebugField fields[];

  // A pointer to a member is its offset, by the C++ ABI of all that is not Windows.
  template <class T, class M> static std::uint32_t offset(M T::*member) {
    return static_cast<std::uint32_t>(std::bit_cast<std::ptrdiff_t>(member));
  }

  template <class T> static DebugField type(const char* name) { return {name, 0, sizeof(T)}; }

  template <class T, class M> static DebugField at(const char* name, M T::*member) {
    return {name, offset(member), sizeof(M)};
  }

  template <class T, class E, std::size_t N>
  static DebugField data(const char* name, SmallVector<E, N> T::*member) {
    return {name, offset(member) + offset(&SmallVector<E, N>::data_), sizeof(E*)};
  }

  template <class T, class E, std::size_t N>
  static DebugField size(const char* name, SmallVector<E, N> T::*member) {
    return {name, offset(member) + offset(&SmallVector<E, N>::size_), sizeof(std::size_t)};
  }
};

const DebugField DebugLayout::fields[] = {
    at("DebugRoot.passes", &DebugRoot::passes),
    at("DebugRoot.attention", &DebugRoot::attention),
    at("DebugRoot.remember", &DebugRoot::remember),
    at("DebugRoot.seek_to", &DebugRoot::seek_to),
    at("DebugRoot.dtypes", &DebugRoot::dtypes),
    at("DebugRoot.num_dtypes", &DebugRoot::num_dtypes),
    at("DebugRoot.devices", &DebugRoot::devices),
    at("DebugRoot.num_devices", &DebugRoot::num_devices),
    at("DebugRoot.slabs", &DebugRoot::slabs),
    at("DebugRoot.next_index", &DebugRoot::next_index),
    at("DebugRoot.scopes", &DebugRoot::scopes),

    at("DebugRoot.cuts", &DebugRoot::cuts),
    at("DebugRoot.num_cuts", &DebugRoot::num_cuts),

    at("DebugPass.next", &DebugPass::next),
    at("DebugPass.thread", &DebugPass::thread),
    at("DebugPass.entry", &DebugPass::entry),
    at("DebugPass.grads", &DebugPass::grads),
    at("DebugPass.num_grads", &DebugPass::num_grads),
    at("DebugPass.position", &DebugPass::position),
    at("DebugPass.seeking", &DebugPass::seeking),
    at("DebugPass.remembers", &DebugPass::remembers),
    at("DebugPass.first", &DebugPass::first),

    // libstdc++'s, which have no members to name.
    {"vector.begin", 0, 8},
    {"vector.end", 8, 8},
    {"string.data", 0, 8},
    {"string.size", 8, 8},

    type<DTypeInfo>("DTypeInfo"),
    at("DTypeInfo.name", &DTypeInfo::name),
    at("DTypeInfo.bits", &DTypeInfo::bits),
    at("Device.type", &Device::type_),
    at("Device.index", &Device::index_),
    at("SourceLoc.file", &SourceLoc::file),
    at("SourceLoc.function", &SourceLoc::function),
    at("SourceLoc.line", &SourceLoc::line),
    at("Layout.offset", &Layout::offset),
    at("Layout.ndim", &Layout::ndim),
    at("Layout.sizes", &Layout::sizes),
    at("Layout.strides", &Layout::strides),

    at("Storage.data", &Storage::data_),
    at("Storage.bytes", &Storage::bytes_),
    at("Storage.device", &Storage::device_),
    at("Storage.version", &Storage::version_),
    at("Storage.writers", &Storage::writers_),
    type<Mutation>("Mutation"),
    at("Mutation.version", &Mutation::version),
    at("Mutation.op", &Mutation::op),
    at("Mutation.loc", &Mutation::loc),

    type<Tensor>("Tensor"),
    at("Tensor.impl", &Tensor::impl_),
    at("TensorImpl.refs", &TensorImpl::refs),
    at("TensorImpl.storage", &TensorImpl::storage),
    at("TensorImpl.layout", &TensorImpl::layout),
    at("TensorImpl.dtype", &TensorImpl::dtype),
    at("TensorImpl.device", &TensorImpl::device),
    at("TensorImpl.inference", &TensorImpl::inference),
    at("TensorImpl.cut", &TensorImpl::cut),
    at("TensorImpl.meta", &TensorImpl::meta),
    at("AutogradMeta.edge", &AutogradMeta::edge),
    at("AutogradMeta.leaf", &AutogradMeta::leaf),

    type<Edge>("Edge"),
    at("Edge.node", &Edge::node),
    at("Edge.slot", &Edge::slot),
    at("Edge.cut", &Edge::cut),
    at("Node.index", &Node::index),
    at("Node.is_leaf", &Node::is_leaf),
    at("Leaf.tensor", &Leaf::tensor),
    at("Leaf.grad", &Leaf::grad),
    at("Leaf.name", &Leaf::name),
    at("Leaf.cuts", &Leaf::cuts),
    at("Leaf.last_use", &Leaf::last_use),
    at("Leaf.scope", &Leaf::scope),
    at("Leaf.spec", &Leaf::spec),
    type<TensorSpec>("TensorSpec"),
    at("TensorSpec.dtype", &TensorSpec::dtype),
    at("TensorSpec.device", &TensorSpec::device),
    data("TensorSpec.sizes.data", &TensorSpec::sizes),
    size("TensorSpec.sizes.size", &TensorSpec::sizes),

    type<SavedTensor>("SavedTensor"),
    at("SavedTensor.storage", &SavedTensor::storage),
    at("SavedTensor.layout", &SavedTensor::layout),
    at("SavedTensor.dtype", &SavedTensor::dtype),
    at("SavedTensor.version", &SavedTensor::version),
    at("SavedTensor.output", &SavedTensor::output),
    at("SavedTensor.edge", &SavedTensor::edge),
    at("Entry.name", &Entry::name),
    at("Entry.loc", &Entry::loc),
    at("Entry.scope", &Entry::scope),
    data("Entry.inputs.data", &Entry::inputs),
    size("Entry.inputs.size", &Entry::inputs),
    data("Entry.outputs.data", &Entry::outputs),
    size("Entry.outputs.size", &Entry::outputs),
    data("Entry.saved.data", &Entry::saved),
    size("Entry.saved.size", &Entry::saved),
    at("Entry.saved_bytes", &Entry::saved_bytes),
    at("Entry.consumed", &Entry::consumed),
    at("Entry.consumed_at", &Entry::consumed_at),

    type<lens::Cut>("Cut"),
    at("Cut.id", &lens::Cut::id),
    at("Cut.kind", &lens::Cut::kind),
    at("Cut.scope", &lens::Cut::scope),
    at("Cut.op", &lens::Cut::op),
    at("Cut.loc", &lens::Cut::loc),
    at("Cut.guard", &lens::Cut::guard),
    at("Cut.joined", &lens::Cut::joined),

    at("Slab.next", &Slab::next),
    at("Slab.places", &Slab::places),
    type<Place>("Place"),
    at("Place.live", &Place::live),
};

namespace {

constexpr const char* kDevices[] = {"cpu", "cuda", "meta"};

}  // namespace

extern "C" {
constinit DebugRoot taper_debug_v1{
    .magic = {'T', 'A', 'P', 'E', 'R', 'D', 'B', 'G'},
    .version = 1,
    .bytes = sizeof(DebugRoot),
    .fields = DebugLayout::fields,
    .num_fields = std::size(DebugLayout::fields),
    .passes = nullptr,
    .attention = 0,
    .remember = 0,
    .seek_to = -1,
    .dtypes = kDTypeInfo,
    .num_dtypes = std::size(kDTypeInfo),
    .devices = kDevices,
    .num_devices = std::size(kDevices),
    .slabs = &newest_slab,
    .next_index = &next_index,
    .scopes = &scope_names,
    .cuts = &lens::cut_ring,
    .num_cuts = lens::kCutsKept,
};
}

namespace {

constinit SpinLock passes_lock;

std::int64_t this_thread() {
  static thread_local const std::int64_t id = gettid();
  return id;
}

}  // namespace

DebugPass::DebugPass() : thread(this_thread()) {
  const std::lock_guard lock(passes_lock);
  next = taper_debug_v1.passes;
  taper_debug_v1.passes = this;
}

DebugPass::~DebugPass() {
  const std::lock_guard lock(passes_lock);
  DebugPass** at = &taper_debug_v1.passes;
  while (*at != this) at = &(*at)->next;
  *at = next;
}

}  // namespace taper
