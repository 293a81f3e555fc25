// What the tape has grown by between two steps, and who holds on to it.
#include <algorithm>
#include <map>
#include <unordered_set>

#include "taper/autograd/lens/answers.h"

namespace taper::lens {
namespace {

std::string line_of(const Entry& entry) {
  const std::string& scope = scope_name(entry.scope);
  return str(entry.name, " at ", taper::to_string(entry.loc), scope.empty() ? "" : ", scope ",
             scope);
}

// Entries that no other entry takes from: only tensors hold them.
std::vector<const Entry*> held_by_tensors(const std::vector<Ref<Entry>>& entries) {
  std::unordered_set<const Node*> taken;
  for (const Ref<Entry>& entry : entries) {
    for (const Edge& edge : entry->inputs) taken.insert(edge.node.get());
  }
  std::vector<const Entry*> held;
  for (const Ref<Entry>& entry : entries) {
    if (taken.count(entry.get()) == 0) held.push_back(entry.get());
  }
  return held;
}

}  // namespace

std::vector<TapeMark::Line> TapeMark::count(const std::vector<Ref<Entry>>& entries) {
  std::map<std::string, Line> by_line;
  for (const Ref<Entry>& entry : entries) {
    Line& line = by_line[line_of(*entry)];
    ++line.entries;
    line.saved_bytes += entry->saved_bytes;
  }
  std::vector<Line> lines;
  for (auto& [text, line] : by_line) {
    lines.push_back(line);
    lines.back().text = text;
  }
  return lines;
}

TapeMark::TapeMark() : next_index_(next_entry_index()) {
  const std::vector<Ref<Entry>> entries = all_entries();
  lines_ = count(entries);
  entries_ = entries.size();
}

std::string TapeMark::grown() const {
  const std::vector<Ref<Entry>> entries = all_entries();
  if (entries.size() <= entries_) return "";
  const std::size_t more = entries.size() - entries_;
  std::string text;
  const auto say = [&](const std::string& what) {
    text += text.empty() ? str("+", more, more == 1 ? " entry: " : " entries: ", what, "\n")
                         : str("  ", what, "\n");
  };
  std::map<std::string, std::string> bridges;  // by line, each line once
  for (const Ref<Entry>& entry : entries) {
    if (entry->index < next_index_) continue;
    for (const Edge& edge : entry->inputs) {
      if (!edge || edge.node->is_leaf || edge.node->index >= next_index_) continue;
      bridges[line_of(*entry)] = line_of(static_cast<const Entry&>(*edge.node));
    }
  }
  for (const auto& [line, before] : bridges) {
    say(str(line, " goes on from ", before == line ? "what it made" : before,
            " before: all that came between stays alive; detach() or item() ends it"));
  }
  std::map<std::string, std::size_t> held;
  for (const Entry* entry : held_by_tensors(entries)) {
    if (entry->index >= next_index_) ++held[line_of(*entry)];
  }
  for (const auto& [line, results] : held) {
    say(str(line, ": ", results, results == 1 ? " new result is" : " new results are",
            " held by a tensor"));
  }
  std::vector<Line> now = count(entries);
  std::vector<std::pair<std::int64_t, const Line*>> grown;
  for (const Line& line : now) {
    const auto old = std::find_if(lines_.begin(), lines_.end(),
                                  [&](const Line& l) { return l.text == line.text; });
    const auto by = static_cast<std::int64_t>(line.entries) -
                    (old == lines_.end() ? 0 : static_cast<std::int64_t>(old->entries));
    if (by > 0) grown.emplace_back(by, &line);
  }
  std::stable_sort(grown.begin(), grown.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [by, line] : grown)
    say(str("+", by, " at ", line->text, ", ", line->saved_bytes, " B saved there now"));
  return text;
}

}  // namespace taper::lens
