// Reads the file of a dump, without trust.
#include <nlohmann/json.hpp>

#include "taper/autograd/lens/dump_parts.h"
#include "taper/core/base/dtype.h"

namespace taper::lens {
namespace {

constexpr std::size_t kDeepest = 16, kMostDims = 8, kLongestText = 4096;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 62;  // of all tensors and storages

// A text of the file as a message may show it.
std::string shown(const std::string& text) {
  std::string out = "'" + text.substr(0, 60) + (text.size() > 60 ? "...'" : "'");
  for (char& c : out) c = static_cast<unsigned char>(c) < ' ' || c == 127 ? '?' : c;
  return out;
}

// Follows the parser; nothing is built but the dump. What it does not know it passes over.
class Reader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  Reader(const std::string& text, const std::string& name)
      : name_(name), budget_((std::uint64_t{64} << 20) + 4 * text.size()) {}

  TapeDump dump;

  void check_header() const {
    if (format_ != kDumpFormat)
      refuse(str("expected the format '", kDumpFormat, "', got ", shown(format_)));
    if (version_ != kDumpVersion)
      refuse(str("expected version ", kDumpVersion, ", got ", version_));
  }

  bool null() override {
    if (place() == Place::kEdges) add_edge();
    else if (key_ != "from" || place() != Place::kSavedTensor) return other("null");
    return true;
  }

  bool boolean(bool b) override {
    if (place() != Place::kEntry || key_ != "consumed") return other("a bool");
    dump.entries.back().consumed = b;
    return true;
  }

  bool number_integer(number_integer_t) override { return other("a negative number"); }
  bool number_float(number_float_t, const string_t&) override { return other("a fraction"); }
  bool binary(binary_t&) override { return other("binary data"); }

  bool number_unsigned(number_unsigned_t n) override {
    switch (place()) {
      case Place::kTop:
        if (key_ != "version") return other("a number");
        version_ = n;
        return true;
      case Place::kStorage:
        if (key_ != "bytes") return other("a number");
        add_bytes(dump.storages.back().bytes = n);
        return true;
      case Place::kLeaf:
        if (key_ != "index") return other("a number");
        dump.leaves.back().index = n;
        return true;
      case Place::kEntry: return entry_number(dump.entries.back(), n);
      case Place::kSavedTensor:
        if (key_ != "storage") return other("a number");
        dump.entries.back().saved.back().storage = narrow(n);
        return true;
      case Place::kEdge:
        if (numbers_ == 0) edge_->node = n;
        else if (numbers_ == 1) edge_->slot = narrow(n);
        else refuse("an edge of more than two numbers");
        ++numbers_;
        return true;
      case Place::kSizes:
        if (n > INT64_MAX) refuse(str("a size of ", n));
        if (spec_->sizes.size() == kMostDims) refuse(str("more than ", kMostDims, " dims"));
        spec_->sizes.push_back(static_cast<std::int64_t>(n));
        return true;
      default: return other("a number");
    }
  }

  bool string(string_t& s) override {
    if (s.size() > kLongestText) refuse(str("a text is longer than ", kLongestText, " bytes"));
    charge(s.size());
    DumpEntry* e = dump.entries.empty() ? nullptr : &dump.entries.back();
    const Place at = place();
    if (at == Place::kTop && key_ == "format") format_ = s;
    else if (at == Place::kStorage && key_ == "kind") dump.storages.back().kind = kind_of(s);
    else if (at == Place::kLeaf && key_ == "name") dump.leaves.back().name = s;
    else if (at == Place::kEntry && key_ == "op") e->op = s;
    else if (at == Place::kEntry && key_ == "file") e->file = s;
    else if (at == Place::kEntry && key_ == "function") e->function = s;
    else if (at == Place::kEntry && key_ == "scope") e->scope = s;
    else if (is_tensor(at) && key_ == "dtype") spec_->dtype = dtype_of(s);
    else if (is_tensor(at) && key_ == "device") spec_->device = device_of(s);
    else return other("a text");
    return true;
  }

  bool start_object(std::size_t) override {
    switch (place()) {
      case Place::kStart: return enter(Place::kTop);
      case Place::kStorages:
        charge(sizeof(DumpStorage));
        dump.storages.emplace_back();
        return enter(Place::kStorage);
      case Place::kLeaves:
        charge(sizeof(DumpLeaf));
        spec_ = &dump.leaves.emplace_back().spec;
        return enter(Place::kLeaf);
      case Place::kEntries:
        charge(sizeof(DumpEntry));
        dump.entries.emplace_back();
        return enter(Place::kEntry);
      case Place::kOutputs:
        charge(sizeof(TensorSpec));
        spec_ = &dump.entries.back().outputs.emplace_back();
        return enter(Place::kOutput);
      case Place::kSaved:
        charge(sizeof(DumpSaved));
        spec_ = &dump.entries.back().saved.emplace_back().spec;
        return enter(Place::kSavedTensor);
      default: other("an object"); return enter(Place::kOther);
    }
  }

  bool start_array(std::size_t) override {
    const Place at = place();
    if (at == Place::kTop && key_ == "storages") return enter(Place::kStorages);
    if (at == Place::kTop && key_ == "leaves") return enter(Place::kLeaves);
    if (at == Place::kTop && key_ == "entries") return enter(Place::kEntries);
    if (at == Place::kEntry && key_ == "inputs") return enter(Place::kEdges);
    if (at == Place::kEntry && key_ == "outputs") return enter(Place::kOutputs);
    if (at == Place::kEntry && key_ == "saved") return enter(Place::kSaved);
    if (at == Place::kEdges) return add_edge(), enter(Place::kEdge);
    if (at == Place::kSavedTensor && key_ == "from") {
      edge_ = &dump.entries.back().saved.back().from;
      numbers_ = 0;
      return enter(Place::kEdge);
    }
    if (is_tensor(at) && key_ == "sizes") return spec_->sizes.clear(), enter(Place::kSizes);
    other("a list");
    return enter(Place::kOther);
  }

  bool key(string_t& k) override {
    key_ = k.substr(0, 32);
    return true;
  }

  bool end_object() override {
    if (is_tensor(place())) check_size(*spec_);
    places_.pop_back();
    return true;
  }

  bool end_array() override {
    places_.pop_back();
    return true;
  }

  bool parse_error(std::size_t at, const std::string&, const nlohmann::json::exception&) override {
    refuse(str("it is no JSON at byte ", at));
  }

  // What no key alone shows: that all that is named is there.
  void check_whole() {
    std::uint64_t before = 0;
    for (const DumpLeaf& leaf : dump.leaves) check_order(before, leaf.index);
    before = 0;
    for (const DumpEntry& e : dump.entries) check_order(before, e.index);
    for (const DumpEntry& e : dump.entries) {
      if (dump.find_leaf(e.index) != nullptr) refuse(str("#", e.index, " is an entry and a leaf"));
      for (const DumpEdge& edge : e.inputs) check_edge(e, edge, false);
      for (const DumpSaved& s : e.saved) {
        check_edge(e, s.from, true);
        if (s.storage >= dump.storages.size()) {
          refuse(
              str("entry ", e.index, " saves storage ", s.storage, " of ", dump.storages.size()));
        }
      }
    }
  }

 private:
  enum class Place {
    kStart,
    kTop,
    kStorages,
    kStorage,
    kLeaves,
    kLeaf,
    kEntries,
    kEntry,
    kEdges,
    kEdge,
    kOutputs,
    kOutput,
    kSaved,
    kSavedTensor,
    kSizes,
    kOther
  };

  static bool is_tensor(Place p) {
    return p == Place::kLeaf || p == Place::kOutput || p == Place::kSavedTensor;
  }

  Place place() const { return places_.empty() ? Place::kStart : places_.back(); }

  bool enter(Place p) {
    if (places_.size() == kDeepest) refuse(str("nested deeper than ", kDeepest));
    places_.push_back(p);
    return true;
  }

  [[noreturn]] void refuse(const std::string& problem) const {
    throw DumpError(str(name_, ": ", problem), "", call_site.loc(), "");
  }

  // Something where another thing is expected. Keys that are not known may hold anything.
  bool other(const char* what) const {
    static constexpr std::string_view kKnown[] = {
        "format", "version", "storages", "leaves", "entries", "bytes", "kind",    "index",
        "name",   "sizes",   "dtype",    "device", "op",      "file",  "line",    "function",
        "scope",  "stream",  "consumed", "inputs", "outputs", "saved", "storage", "from"};
    if (place() == Place::kOther) return true;
    bool known = places_.empty() || place() == Place::kStorages || place() == Place::kLeaves ||
                 place() == Place::kEntries || place() == Place::kEdges ||
                 place() == Place::kEdge || place() == Place::kOutputs ||
                 place() == Place::kSaved || place() == Place::kSizes;
    for (const std::string_view k : kKnown) known = known || k == key_;
    if (known) refuse(str(what, " is not expected at ", shown(key_)));
    return true;
  }

  // A short text must not make a large dump.
  void charge(std::uint64_t bytes) {
    if (bytes > budget_) refuse("it describes far more than a file of its size can");
    budget_ -= bytes;
  }

  void add_bytes(std::uint64_t bytes) {
    if (bytes > kMostBytes - sum_) refuse("its tensors are larger than any memory");
    sum_ += bytes;
  }

  void check_size(const TensorSpec& spec) {
    std::uint64_t bytes = static_cast<std::uint64_t>(element_size(spec.dtype));
    for (const std::int64_t s : spec.sizes) {
      if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(s), &bytes))
        refuse(str("a tensor of shape ", IntArrayRef(spec.sizes), " is too large"));
    }
    add_bytes(bytes);
  }

  void add_edge() {
    charge(sizeof(DumpEdge));
    edge_ = &dump.entries.back().inputs.emplace_back();
    numbers_ = 0;
  }

  std::uint32_t narrow(std::uint64_t n) const {
    if (n > UINT32_MAX)
      refuse(str("expected at most ", UINT32_MAX, " at ", shown(key_), ", got ", n));
    return static_cast<std::uint32_t>(n);
  }

  bool entry_number(DumpEntry& e, std::uint64_t n) const {
    if (key_ == "index") e.index = n;
    else if (key_ == "line") e.line = narrow(n);
    else if (key_ == "stream") e.stream = narrow(n);
    else if (key_ != "saved_bytes" && key_ != "first_bytes") return other("a number");
    return true;  // the sums are made anew
  }

  StorageKind kind_of(const std::string& text) const {
    for (const StorageKind k :
         {StorageKind::kActivation, StorageKind::kParameter, StorageKind::kData}) {
      if (text == to_string(k)) return k;
    }
    refuse("no storage is a " + shown(text));
  }

  DType dtype_of(const std::string& text) const {
    for (int i = 0; i < kNumDTypes; ++i) {
      if (text == kDTypeInfo[i].name) return static_cast<DType>(i);
    }
    refuse("there is no dtype " + shown(text));
  }

  Device device_of(const std::string& text) const {
    try {
      return Device(text);
    } catch (const Error&) {
      refuse("there is no device " + shown(text));
    }
  }

  void check_order(std::uint64_t& before, std::uint64_t index) const {
    if (index <= before) refuse(str("#", index, " stands behind #", before));
    before = index;
  }

  // Gradients flow to nodes of smaller index, and a saved output is the entry's own.
  void check_edge(const DumpEntry& e, const DumpEdge& edge, bool may_be_own) const {
    if (edge.node == 0) return;
    const DumpEntry* to = dump.find_entry(edge.node);
    const std::size_t slots = to != nullptr                          ? to->outputs.size()
                              : dump.find_leaf(edge.node) != nullptr ? 1
                                                                     : 0;
    const bool order = edge.node < e.index || (may_be_own && edge.node == e.index);
    if (edge.slot >= slots || !order) {
      refuse(str("entry ", e.index, " names output ", edge.slot, " of #", edge.node,
                 ", which it cannot come from"));
    }
  }

  const std::string& name_;
  std::uint64_t budget_, sum_ = 0, version_ = 0;
  std::vector<Place> places_;
  std::string key_, format_;
  TensorSpec* spec_ = nullptr;  // the tensor that is being read
  DumpEdge* edge_ = nullptr;
  int numbers_ = 0;  // of the edge
};

}  // namespace

TapeDump from_json(const std::string& text, const std::string& name) {
  Reader reader(text, name);
  nlohmann::json::sax_parse(text, &reader);
  reader.check_header();
  reader.check_whole();
  count_bytes(reader.dump);
  return std::move(reader.dump);
}

}  // namespace taper::lens
