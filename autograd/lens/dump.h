// What the tape holds, as plain data: who saved what, whose it is, and how many bytes that keeps.
#pragma once
#include <string>
#include <vector>

#include "taper/autograd/tape.h"

namespace taper::lens {

// One output of a node, by the node's index; node 0: none.
struct DumpEdge {
  std::uint64_t node = 0;
  std::uint32_t slot = 0;

  friend bool operator==(const DumpEdge&, const DumpEdge&) = default;
};

// Why the bytes are there: an entry made them and a gradient flows to them; they are a leaf's; or
// nothing flows to them: batches, labels, masks, statistics of norms.
enum class StorageKind : std::uint8_t { kActivation, kParameter, kData };

const char* to_string(StorageKind kind);

struct DumpStorage {
  std::uint64_t bytes = 0;
  StorageKind kind = StorageKind::kData;
  std::uint64_t first_saver = 0;  // the entry of the smallest index that saves it
};

struct DumpLeaf {
  std::uint64_t index = 0;
  std::string name;  // "encoder.3.fc1.weight", or ""
  TensorSpec spec;
};

struct DumpSaved {
  TensorSpec spec;
  std::uint32_t storage = 0;  // its place in TapeDump::storages
  DumpEdge from;              // whose it is: the entry itself, an input's edge, or none
};

struct DumpEntry {
  std::uint64_t index = 0;
  std::string op, file, function, scope;
  std::uint32_t line = 0;
  StreamId stream = 0;
  bool consumed = false;  // backward ran and gave back what it had saved
  std::vector<DumpEdge> inputs;
  std::vector<TensorSpec> outputs;
  std::vector<DumpSaved> saved;
  std::uint64_t saved_bytes = 0;  // storages counted once
  std::uint64_t first_bytes = 0;  // of those storages that it is the first to save
};

struct TapeDump {
  std::vector<DumpEntry> entries;     // by rising index
  std::vector<DumpLeaf> leaves;       // by rising index
  std::vector<DumpStorage> storages;  // in the order of their first savers

  const DumpEntry* find_entry(std::uint64_t index) const;
  const DumpLeaf* find_leaf(std::uint64_t index) const;
};

// What backward from the loss would reach.
TapeDump dump(const Tensor& loss, Loc loc = Loc::current());
// Every entry alive in the process. Meanwhile no other thread may let go of one.
TapeDump dump();

// Unique storages, each counted once.
struct DumpBytes {
  std::uint64_t activations = 0, parameters = 0, data = 0;

  std::uint64_t total() const { return activations + parameters + data; }
};

DumpBytes bytes_of(const TapeDump& dump);
// Of the storages that the entry is the first to save: over all entries these add up to the whole.
DumpBytes first_bytes_of(const TapeDump& dump, const DumpEntry& entry);

enum class DumpBy : std::uint8_t { kScope, kOp, kLine };

struct DumpGroup {
  std::string name;
  std::size_t entries = 0;
  DumpBytes bytes;
};

// By op or line, the largest first. By scope as a tree: each scope holds those inside it and stands
// before them, in the order of the forward; the first, "", is the whole.
std::vector<DumpGroup> bytes_by(const TapeDump& dump, DumpBy by);

// What is held while one entry runs, forward or backward.
struct DumpHeld {
  std::uint64_t entry = 0;
  bool backward = false;
  std::uint64_t saved = 0;      // by the tape; parameters are not counted, which stay anyhow
  std::uint64_t gradients = 0;  // in flight and added up in leaves, each of its tensor's size

  std::uint64_t total() const { return saved + gradients; }
};

// Forward by rising index, then a backward pass that frees as it goes. `saved` is exact. Gradients
// are an upper bound: rules that pass on what they got, or a view of it, make none.
std::vector<DumpHeld> held_over_time(const TapeDump& dump);
// The first moment at which most is held; a default DumpHeld of an empty dump.
DumpHeld peak_of(const TapeDump& dump);

// "its output 0", "input 1", "#12 relu's output 0", "fc1.weight", "data".
std::string owner_of(const TapeDump& dump, const DumpEntry& entry, const DumpSaved& saved);
// "train.cpp:42"
std::string place_of(const DumpEntry& entry);

// A table for a terminal.
std::string to_text(const TapeDump& dump);
// For Graphviz: entries in boxes of their scopes.
std::string to_dot(const TapeDump& dump);

// When an entry ran, in microseconds since any start.
struct DumpTime {
  std::uint64_t entry = 0;
  bool backward = false;
  double start = 0, duration = 0;
};

// For Perfetto and chrome://tracing: what ran forward and backward, and the bytes held. An entry
// that `times` does not name takes one microsecond, in the order of the tape.
std::string to_chrome(const TapeDump& dump, const std::vector<DumpTime>& times = {});

// A file that is no dump. The message says at which byte, and why.
class DumpError final : public Error {
 public:
  using Error::Error;
};

// The dump as a file; a reader of version 1 passes over keys that it does not know.
std::string to_json(const TapeDump& dump);
// The text is not trusted: DumpError names `name`. Memory stays within a few times the text's size.
TapeDump from_json(const std::string& text, const std::string& name = "the dump");

}  // namespace taper::lens
