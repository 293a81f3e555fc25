// The calling thread's call site, and the process-wide tree of module scopes.
#include "taper/core/base/source_loc.h"

#include <map>
#include <mutex>
#include <utility>

namespace taper {

thread_local constinit CallSite call_site;

std::string to_string(const SourceLoc& loc) {
  if (!loc.known()) return "an unknown line";
  std::string file = loc.file;
  file = file.substr(file.find_last_of('/') + 1);
  return file + ":" + std::to_string(loc.line) + " in " + loc.function;
}

namespace {

struct ScopeTree {
  std::mutex mutex;
  std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> children;
  std::vector<const std::string*> names{new std::string};  // pointers: a name stays where it is

  ScopeTree() { scope_names = &names; }
};

ScopeTree& tree() {
  static auto* tree = new ScopeTree;  // never destroyed: tensors may die after main
  return *tree;
}

}  // namespace

constinit const std::vector<const std::string*>* scope_names = nullptr;

std::uint32_t scope_child(std::uint32_t parent, const std::string& name) {
  ScopeTree& t = tree();
  const std::lock_guard lock(t.mutex);
  const auto [it, fresh] =
      t.children.try_emplace({parent, name}, static_cast<std::uint32_t>(t.names.size()));
  if (fresh) t.names.push_back(new std::string(parent == 0 ? name : *t.names[parent] + "." + name));
  return it->second;
}

const std::string& scope_name(std::uint32_t scope) {
  ScopeTree& t = tree();
  const std::lock_guard lock(t.mutex);
  return *t.names.at(scope);
}

void lock_scopes() {
  tree().mutex.lock();
}

void unlock_scopes() {
  tree().mutex.unlock();
}

}  // namespace taper
