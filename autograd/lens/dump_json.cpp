// Writes a dump as a file; dump_reader.cpp reads it.
#include <nlohmann/json.hpp>

#include "taper/autograd/lens/dump_parts.h"
#include "taper/core/base/dtype.h"

namespace taper::lens {
namespace {

using nlohmann::ordered_json;

ordered_json json_of(const DumpEdge& edge) {
  return edge.node == 0 ? ordered_json() : ordered_json{edge.node, edge.slot};
}

ordered_json json_of(const TensorSpec& spec) {
  ordered_json sizes = ordered_json::array();
  for (const std::int64_t s : spec.sizes) sizes.push_back(s);
  return {
      {"sizes", std::move(sizes)}, {"dtype", info(spec.dtype).name}, {"device", spec.device.str()}};
}

ordered_json json_of(const DumpEntry& e) {
  ordered_json inputs = ordered_json::array(), outputs = inputs, saved = inputs;
  for (const DumpEdge& edge : e.inputs) inputs.push_back(json_of(edge));
  for (const TensorSpec& spec : e.outputs) outputs.push_back(json_of(spec));
  for (const DumpSaved& s : e.saved) {
    ordered_json tensor = json_of(s.spec);
    tensor["storage"] = s.storage;
    tensor["from"] = json_of(s.from);
    saved.push_back(std::move(tensor));
  }
  return {{"index", e.index},
          {"op", e.op},
          {"file", e.file},
          {"line", e.line},
          {"function", e.function},
          {"scope", e.scope},
          {"stream", e.stream},
          {"consumed", e.consumed},
          {"inputs", std::move(inputs)},
          {"outputs", std::move(outputs)},
          {"saved", std::move(saved)},
          {"saved_bytes", e.saved_bytes},
          {"first_bytes", e.first_bytes}};
}

// A list, one item to a line.
template <class T, class F>
void append_list(std::string& out, const char* name, const T& items, F f) {
  out += str(",\n\"", name, "\":[");
  const char* between = "\n";
  for (const auto& item : items) {
    out += between + f(item).dump(-1, ' ', false, ordered_json::error_handler_t::replace);
    between = ",\n";
  }
  out += "]";
}

}  // namespace

std::string to_json(const TapeDump& dump) {
  std::string out = str("{\"format\":\"", kDumpFormat, "\",\"version\":", kDumpVersion);
  append_list(out, "storages", dump.storages, [](const DumpStorage& s) {
    return ordered_json{{"bytes", s.bytes}, {"kind", to_string(s.kind)}};
  });
  append_list(out, "leaves", dump.leaves, [](const DumpLeaf& leaf) {
    ordered_json one = {{"index", leaf.index}, {"name", leaf.name}};
    one.update(json_of(leaf.spec));
    return one;
  });
  append_list(out, "entries", dump.entries, [](const DumpEntry& e) { return json_of(e); });
  return out + "}\n";
}

}  // namespace taper::lens
