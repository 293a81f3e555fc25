// The tree of modules: names, modes, moves, state, and how it is printed.
#include "taper/nn/module.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <ostream>
#include <sstream>
#include <typeinfo>

#include <cxxabi.h>

#include "taper/autograd/grad_mode.h"
#include "taper/autograd/tape.h"

namespace taper::nn {
namespace {

thread_local const Module* current_module = nullptr;

// "taper::nn::LinearImpl" as "Linear", "(anonymous namespace)::BoxImpl<ns::Item>" as "Box".
std::string short_name(const std::type_info& type) {
  int status = 0;
  char* text = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
  std::string name = status == 0 ? text : type.name();
  std::free(text);
  std::size_t begin = 0;
  int depth = 0;  // of <> and ()
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<' || name[i] == '(') ++depth;
    if (name[i] == '>' || name[i] == ')') --depth;
    if (name[i] == ':' && depth == 0) begin = i + 1;
  }
  name = name.substr(begin);
  name = name.substr(0, name.find('<'));
  if (name.size() > 4 && name.ends_with("Impl")) name.resize(name.size() - 4);
  return name;
}

void check_name(const std::string& kind, const std::string& name, bool taken) {
  TAPER_CHECK(!name.empty(), kind, ": the name must not be empty");
  TAPER_CHECK(name.find('.') == std::string::npos, kind, ": '", name,
              "' must not contain a dot, which separates modules");
  TAPER_CHECK(!taken, kind, ": '", name, "' is registered already");
}

// Levenshtein's distance, to suggest the name that was meant.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t corner = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t kept = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, corner + (a[i - 1] == b[j - 1] ? 0 : 1)});
      corner = kept;
    }
  }
  return row[b.size()];
}

std::string nearest(const std::string& name, const std::vector<std::string>& names) {
  std::string best;
  std::size_t least = name.size() / 2 + 1;
  for (const std::string& n : names) {
    const std::size_t d = distance(name, n);
    if (d < least) least = d, best = n;
  }
  return best.empty() ? "" : " (did you mean '" + best + "'?)";
}

}  // namespace

bool is_ours(const std::type_info& module) {
  return std::string_view(module.name()).starts_with("N5taper2nn");  // the Itanium C++ ABI
}

ModuleScope::ModuleScope(const Module& module) : outer_(current_module), kept_(call_site.scope) {
  if (current_module == &module) return;
  current_module = &module;
  call_site.scope = module.scope_below(kept_);
}

ModuleScope::~ModuleScope() {
  current_module = outer_;
  call_site.scope = kept_;
}

const std::string& Module::name() const {
  if (type_name_.empty()) type_name_ = short_name(typeid(*this));
  return type_name_;
}

void fail_empty_holder(const std::type_info& contained) {
  fail(str("an empty holder of ", short_name(contained),
           " is used; construct the module before, or assign one to it"));
}

std::uint32_t Module::scope_below(std::uint32_t parent) const {
  if (scope_name_.empty()) return parent;
  const std::atomic_ref<std::uint64_t> cache(scope_cache_);  // threads may share a module
  std::uint64_t entry = cache.load(std::memory_order_relaxed);
  if (entry >> 32 != parent + std::uint64_t{1}) {
    entry = (parent + std::uint64_t{1}) << 32 | scope_child(parent, scope_name_);
    cache.store(entry, std::memory_order_relaxed);
  }
  return static_cast<std::uint32_t>(entry);
}

void Module::set_scope(std::string name) {
  scope_name_ = std::move(name);
  scope_cache_ = 0;
  if (!scope_before_children_) return;
  for (const auto& child : children_) child.value()->set_scope(scope_name_ + "." + child.key());
}

void Module::begin_scope(std::string name, bool before_children) {
  scope_before_children_ = before_children;
  set_scope(std::move(name));
}

Tensor& Module::register_parameter(std::string name, Tensor tensor, bool requires_grad, Loc loc) {
  const Call call(loc);
  check_name("register_parameter", name, parameters_.contains(name) || buffers_.contains(name));
  if (tensor.defined()) {
    tensor.requires_grad_(requires_grad);
    leaf_of(tensor).name = name;
  }
  return parameters_.insert(std::move(name), std::move(tensor));
}

Tensor& Module::register_buffer(std::string name, Tensor tensor, Loc loc) {
  const Call call(loc);
  check_name("register_buffer", name, parameters_.contains(name) || buffers_.contains(name));
  return buffers_.insert(std::move(name), std::move(tensor));
}

void Module::add_child(std::string name, std::shared_ptr<Module> module, Loc loc) {
  const Call call(loc);
  check_name("register_module", name, children_.contains(name));
  TAPER_CHECK(module != nullptr, "register_module: the pointer for '", name, "' is empty");
  module->set_scope(scope_before_children_ ? scope_name_ + "." + name : name);
  children_.insert(std::move(name), std::move(module));
}

void Module::replace_child(const std::string& name, std::shared_ptr<Module> module, Loc loc) {
  const Call call(loc);
  TAPER_CHECK(children_.contains(name), "replace_module: there is no '", name, "'");
  TAPER_CHECK(module != nullptr, "replace_module: the pointer for '", name, "' is empty");
  module->set_scope(scope_before_children_ ? scope_name_ + "." + name : name);
  children_[name] = std::move(module);
}

void Module::unregister_module(const std::string& name, Loc loc) {
  const Call call(loc);
  TAPER_CHECK(children_.contains(name), "unregister_module: there is no '", name, "'");
  OrderedDict<std::string, std::shared_ptr<Module>> kept;
  for (const auto& item : children_) {
    if (item.key() != name) kept.insert(item.key(), item.value());
  }
  children_ = std::move(kept);
}

void Module::collect(Tensors Module::*kind,
                     const std::string& prefix,
                     bool recurse,
                     Tensors& out) const {
  for (const auto& t : this->*kind) {
    if (t.value().defined()) out.insert(prefix + t.key(), t.value());
  }
  if (!recurse) return;
  for (const auto& child : children_) {
    child.value()->collect(kind, prefix + child.key() + ".", true, out);
  }
}

namespace {

OrderedDict<std::string, Tensor> first_names(const OrderedDict<std::string, Tensor>& all) {
  OrderedDict<std::string, Tensor> out;
  for (const auto& item : all) {
    const bool known = std::any_of(out.begin(), out.end(), [&](const auto& other) {
      return other.value().is_same(item.value());
    });
    if (!known) out.insert(item.key(), item.value());
  }
  return out;
}

}  // namespace

OrderedDict<std::string, Tensor> Module::named_parameters(bool recurse) const {
  Tensors all;
  collect(&Module::parameters_, "", recurse, all);
  return first_names(all);
}

OrderedDict<std::string, Tensor> Module::named_buffers(bool recurse) const {
  Tensors all;
  collect(&Module::buffers_, "", recurse, all);
  return first_names(all);
}

std::vector<Tensor> Module::parameters(bool recurse) const {
  return named_parameters(recurse).values();
}

std::vector<Tensor> Module::buffers(bool recurse) const {
  return named_buffers(recurse).values();
}

std::vector<std::shared_ptr<Module>> Module::children() const {
  return children_.values();
}

OrderedDict<std::string, std::shared_ptr<Module>> Module::named_children() const {
  return children_;
}

OrderedDict<std::string, std::shared_ptr<Module>> Module::named_modules(bool include_self) const {
  OrderedDict<std::string, std::shared_ptr<Module>> out;
  // A module that lives on the stack has no shared handle to give.
  if (include_self && !weak_from_this().expired()) {
    out.insert("", std::const_pointer_cast<Module>(shared_from_this()));
  }
  for (const auto& child : children_) {
    out.insert(child.key(), child.value());
    for (const auto& below : child.value()->named_modules(false)) {
      out.insert(child.key() + "." + below.key(), below.value());
    }
  }
  return out;
}

std::vector<std::shared_ptr<Module>> Module::modules(bool include_self) const {
  return named_modules(include_self).values();
}

OrderedDict<std::string, Tensor> Module::state_dict() const {
  Tensors out;
  collect(&Module::parameters_, "", true, out);
  collect(&Module::buffers_, "", true, out);
  return out;
}

namespace {

// What keeps `state` from being that of a module whose state is `own`, a line for each; or "".
std::string misfit(const OrderedDict<std::string, Tensor>& own,
                   const OrderedDict<std::string, Tensor>& state,
                   bool strict) {
  std::string wrong;
  for (const auto& item : own) {
    const Tensor* given = state.find(item.key());
    if (given == nullptr && strict) {
      wrong += "\n  missing: " + item.key() + str(" ", item.value().sizes()) +
               nearest(item.key(), state.keys());
    }
    if (given != nullptr && !(given->sizes() == item.value().sizes())) {
      wrong += str("\n  shape: ", item.key(), " is ", item.value().sizes(), " here, ",
                   given->sizes(), " in the state");
    }
  }
  for (const auto& item : state) {
    if (strict && !own.contains(item.key())) {
      wrong += str("\n  unexpected: ", item.key(), " ", item.value().sizes(),
                   nearest(item.key(), own.keys()));
    }
  }
  return wrong;
}

}  // namespace

void Module::load_state_dict(const OrderedDict<std::string, Tensor>& state, bool strict, Loc loc) {
  const Call call(loc);
  const Tensors own = state_dict();
  const std::string wrong = misfit(own, state, strict);
  TAPER_CHECK(wrong.empty(), "load_state_dict: the state does not fit ", name(), ":", wrong);
  const NoGradGuard no_grad;
  for (const auto& item : own) {
    if (const Tensor* given = state.find(item.key())) item.value().copy_(*given);
  }
}

void Module::copy_from(const Module& other, std::optional<Device> device) {
  const Tensors own = state_dict(), theirs = other.state_dict();
  const std::string wrong = misfit(own, theirs, true);
  TAPER_CHECK(wrong.empty(), "clone: reset() does not build ", name(), " as it was:", wrong);
  const NoGradGuard no_grad;
  for (const auto& item : own) {
    const Tensor& t = theirs[item.key()];
    item.value().set_data(t.detach().clone().to(device.value_or(t.device()), t.dtype()));
    item.value().requires_grad_(t.requires_grad());
  }
  training_ = other.training_;
  const auto modules = other.named_modules(false);
  for (const auto& m : named_modules(false)) m.value()->training_ = modules[m.key()]->training_;
}

void Module::train(bool on) {
  training_ = on;
  for (const auto& child : children_) child.value()->train(on);
}

void Module::move_all(std::optional<Device> device, std::optional<DType> dtype) {
  const NoGradGuard no_grad;
  const auto move = [&](const Tensor& t) {
    if (!t.defined()) return;
    const DType to = dtype && t.is_floating_point() ? *dtype : t.dtype();
    const auto moved = [&](const Tensor& x) { return x.to(device.value_or(x.device()), to); };
    if (t.grad().defined()) {
      Tensor grad = moved(t.grad());
      t.set_data(moved(t));
      t.mutable_grad() = std::move(grad);
    } else {
      t.set_data(moved(t));
    }
  };
  for (const auto& p : parameters_) move(p.value());
  for (const auto& b : buffers_) move(b.value());
  for (const auto& child : children_) child.value()->move_all(device, dtype);
}

namespace {

void check_floating(DType dtype) {
  TAPER_CHECK(is_floating_point(dtype), "to: parameters must stay floating-point, got ", dtype);
}

}  // namespace

void Module::to(Device device, DType dtype, bool, Loc loc) {
  const Call call(loc);
  check_floating(dtype);
  move_all(device, dtype);
}

void Module::to(DType dtype, bool, Loc loc) {
  const Call call(loc);
  check_floating(dtype);
  move_all(std::nullopt, dtype);
}

void Module::to(Device device, bool, Loc loc) {
  const Call call(loc);
  move_all(device, std::nullopt);
}

void Module::zero_grad(bool set_to_none, Loc loc) {
  const Call call(loc);
  for (const Tensor& p : parameters()) clear_grad(p, set_to_none);
}

void Module::requires_grad_(bool on, Loc loc) {
  const Call call(loc);
  for (const Tensor& p : parameters()) p.requires_grad_(on);
}

std::shared_ptr<Module> Module::clone(std::optional<Device>) const {
  fail(str("clone: ", name(), " does not say how to copy itself; derive it from nn::Cloneable<",
           name(), "Impl> and build its parameters in reset()"));
}

void Module::pretty_print(std::ostream& out) const {
  out << name();
}

void print_call(std::ostream& out, const std::string& name) {
  out << name << "()";
}

namespace {

void print_tree(std::ostream& out, const Module& module, const std::string& indent) {
  module.pretty_print(out);
  const auto children = module.named_children();
  if (children.is_empty()) return;
  out << "(\n";
  for (const auto& child : children) {
    out << indent << "  (" << child.key() << "): ";
    print_tree(out, *child.value(), indent + "  ");
    out << '\n';
  }
  out << indent << ')';
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Module& module) {
  print_tree(out, module, "");
  return out;
}

}  // namespace taper::nn
