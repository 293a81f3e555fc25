// Module: a named tree of parameters, buffers and other modules; and the holder that users keep.
#pragma once
#include <memory>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <vector>

#include "taper/core/base/ordered_dict.h"
#include "taper/core/tensor.h"

namespace taper::nn {

class ModuleHolderIndicator {};

// What a holder holds; a module itself.
template <class T> struct ImplementationOf { using type = T; };

template <class T>
requires std::is_base_of_v<ModuleHolderIndicator, T>
struct ImplementationOf<T> {
  using type = typename T::ContainedType;
};

template <class T> using Implementation = typename ImplementationOf<T>::type;

// Base of all modules. Derive, register what the module owns in the constructor, write forward:
//
//   struct NetImpl : nn::Module {
//     NetImpl() : fc(register_module("fc", nn::Linear(784, 10))) {}
//     Tensor forward(const Tensor& x) { return fc(x); }
//     nn::Linear fc;
//   };
//   TAPER_MODULE(Net);   // Net is a shared handle: Net net; net(x); net->parameters()
//
// A call through a holder names the module in errors and on the tape: "encoder.3.attn".
class Module : public std::enable_shared_from_this<Module> {
 public:
  Module() = default;
  explicit Module(std::string name) : type_name_(std::move(name)) {}
  virtual ~Module() = default;
  Module(const Module&) = default;  // shares parameters; clone() copies them
  Module& operator=(const Module&) = default;
  Module(Module&&) = default;
  Module& operator=(Module&&) = default;

  // The C++ type, "LinearImpl" as "Linear".
  const std::string& name() const;

  // --- The tree. Names are paths with dots, in the order of registration. ---------------------
  // A parameter or buffer that several modules share comes once, under the first of its names.
  std::vector<Tensor> parameters(bool recurse = true) const;
  OrderedDict<std::string, Tensor> named_parameters(bool recurse = true) const;
  std::vector<Tensor> buffers(bool recurse = true) const;
  OrderedDict<std::string, Tensor> named_buffers(bool recurse = true) const;
  std::vector<std::shared_ptr<Module>> children() const;
  OrderedDict<std::string, std::shared_ptr<Module>> named_children() const;
  std::vector<std::shared_ptr<Module>> modules(bool include_self = true) const;
  OrderedDict<std::string, std::shared_ptr<Module>> named_modules(bool include_self = true) const;
  // Parameters, then buffers, under all their names: what save() writes. The tensors are shared,
  // not copied.
  OrderedDict<std::string, Tensor> state_dict() const;
  // Copies values in. A missing, unexpected or differently shaped name is an Error that lists all
  // of them with shapes and the nearest names; nothing is changed then. strict = false ignores
  // missing and unexpected ones.
  void load_state_dict(const OrderedDict<std::string, Tensor>& state,
                       bool strict = true,
                       Loc loc = Loc::current());

  // --- Modes and moves
  // ----------------------------------------------------------------------------
  virtual void train(bool on = true);
  void eval() { train(false); }
  bool is_training() const { return training_; }
  // Tensors keep their identity and their gradients; a dtype reaches only floating-point ones.
  virtual void to(Device device, DType dtype, bool non_blocking = false, Loc loc = Loc::current());
  virtual void to(DType dtype, bool non_blocking = false, Loc loc = Loc::current());
  virtual void to(Device device, bool non_blocking = false, Loc loc = Loc::current());
  void to(DeviceType device, Loc loc = Loc::current()) { to(Device(device), false, loc); }
  virtual void zero_grad(bool set_to_none = true, Loc loc = Loc::current());
  void requires_grad_(bool on = true, Loc loc = Loc::current());

  // Calls f(module) for this module and all below it.
  template <class F> void apply(const F& f) {
    f(*this);
    for (const auto& child : children()) child->apply(f);
  }

  // A deep copy with parameters of its own; modules that can be cloned override it (Cloneable).
  virtual std::shared_ptr<Module> clone(std::optional<Device> device = std::nullopt) const;
  virtual void reset() {}

  // One line for this module, as "Linear(in_features=784, out_features=10, bias=true)".
  virtual void pretty_print(std::ostream& out) const;

  // This module as a LinearImpl for as<LinearImpl>() or as<Linear>(); null when it is another.
  template <class T> Implementation<T>* as() noexcept {
    return dynamic_cast<Implementation<T>*>(this);
  }

  template <class T> const Implementation<T>* as() const noexcept {
    return dynamic_cast<const Implementation<T>*>(this);
  }

  // --- Registration: for constructors -----------------------------------------------------------
  // Names must be new, not empty and without dots. Returns what was registered.
  Tensor& register_parameter(std::string name,
                             Tensor tensor,
                             bool requires_grad = true,
                             Loc loc = Loc::current());
  Tensor& register_buffer(std::string name, Tensor tensor, Loc loc = Loc::current());

  template <class M>
  std::shared_ptr<M> register_module(std::string name,
                                     std::shared_ptr<M> module,
                                     Loc loc = Loc::current()) {
    add_child(std::move(name), module, loc);
    return module;
  }

  template <class Holder>
  requires std::is_base_of_v<ModuleHolderIndicator, Holder> Holder
  register_module(std::string name, Holder holder, Loc loc = Loc::current()) {
    const Call call(loc);
    add_child(std::move(name), holder.ptr(), loc);
    return holder;
  }

  // The new module takes the place of the old one in the order.
  template <class M>
  std::shared_ptr<M> replace_module(const std::string& name,
                                    std::shared_ptr<M> module,
                                    Loc loc = Loc::current()) {
    replace_child(name, module, loc);
    return module;
  }

  template <class Holder>
  requires std::is_base_of_v<ModuleHolderIndicator, Holder> Holder
  replace_module(const std::string& name, Holder holder, Loc loc = Loc::current()) {
    const Call call(loc);
    replace_child(name, holder.ptr(), loc);
    return holder;
  }

  void unregister_module(const std::string& name, Loc loc = Loc::current());

  // --- For Taper's own files --------------------------------------------------------------------
  // The scope number of this module below the thread's present scope.
  std::uint32_t scope_below(std::uint32_t parent) const;

 protected:
  // For containers, whose modules go by numbers: their scope is `name` until a parent gives them
  // another. One whose modules are called by others puts its scope before theirs: "layers.0".
  void begin_scope(std::string name, bool before_children);
  // Takes copies of the tensors of `other`, a module with the same tree, and its modes.
  void copy_from(const Module& other, std::optional<Device> device);

 private:
  using Tensors = OrderedDict<std::string, Tensor>;

  void add_child(std::string name, std::shared_ptr<Module> module, Loc loc);
  void replace_child(const std::string& name, std::shared_ptr<Module> module, Loc loc);
  void set_scope(std::string name);
  void collect(Tensors Module::*kind, const std::string& prefix, bool recurse, Tensors& out) const;
  void move_all(std::optional<Device> device, std::optional<DType> dtype);

  Tensors parameters_, buffers_;
  OrderedDict<std::string, std::shared_ptr<Module>> children_;
  bool training_ = true;
  mutable std::string type_name_;
  std::string scope_name_;  // what the parent calls it; empty for a root
  bool scope_before_children_ = false;
  mutable std::uint64_t scope_cache_ = 0;  // (parent + 1) << 32 | scope
};

// Whether a module is one of Taper's, whose forward shows nobody its lines.
bool is_ours(const std::type_info& module);

template <class M> bool is_ours() {
  static const bool ours = is_ours(typeid(M));
  return ours;
}

// Enters a module's scope, unless its own call has just done so.
class ModuleScope {
 public:
  explicit ModuleScope(const Module& module);
  ~ModuleScope();
  ModuleScope(const ModuleScope&) = delete;
  ModuleScope& operator=(const ModuleScope&) = delete;

 private:
  const Module* outer_;
  std::uint32_t kept_;
};

std::ostream& operator<<(std::ostream& out, const Module& module);  // the tree, indented

// A module that can be copied: derive class FooImpl : public Cloneable<FooImpl>, and build the
// parameters in reset().
template <class Derived> class Cloneable : public Module {
 public:
  using Module::Module;
  void reset() override = 0;

  std::shared_ptr<Module> clone(std::optional<Device> device = std::nullopt) const override {
    auto copy = std::make_shared<Derived>(static_cast<const Derived&>(*this));
    copy->forget();
    copy->reset();
    copy->copy_from(*this, device);
    return copy;
  }

 private:
  // Drops what the copy constructor shared, so that reset() registers anew.
  void forget() { static_cast<Module&>(*this) = Module(this->name()); }
};

// A module that holds no tensors: a function and its options. Prints as "Tanh()".
template <class Derived> class Stateless : public Cloneable<Derived> {
 public:
  void reset() override {}
  void pretty_print(std::ostream& out) const override;
};

// Writes "name()"; apart, so that this header needs no <ostream>.
void print_call(std::ostream& out, const std::string& name);

template <class Derived> void Stateless<Derived>::pretty_print(std::ostream& out) const {
  print_call(out, this->name());
}

[[noreturn]] void fail_empty_holder(const std::type_info& contained);

// A shared handle to a module: what TAPER_MODULE(Foo) makes of FooImpl. Copies share the module.
template <class Contained> class ModuleHolder : public ModuleHolderIndicator {
 public:
  using ContainedType = Contained;

  ModuleHolder() : impl_(std::make_shared<Contained>()) {}

  ModuleHolder(std::nullptr_t) {}  // NOLINT: nn::Linear fc{nullptr}, assigned later

  ModuleHolder(std::shared_ptr<Contained> module) : impl_(std::move(module)) {}  // NOLINT

  template <class Head, class... Tail>
  requires(
      !(sizeof...(Tail) == 0 &&
        (std::is_base_of_v<ModuleHolderIndicator, std::decay_t<Head>> ||
         std::is_convertible_v<Head,
                               std::shared_ptr<Contained>>))) explicit ModuleHolder(Head&& head,
                                                                                    Tail&&... tail)
      : impl_(std::make_shared<Contained>(std::forward<Head>(head), std::forward<Tail>(tail)...)) {}

  explicit operator bool() const { return impl_ != nullptr; }

  Contained* operator->() const { return get(); }

  Contained& operator*() const { return *get(); }

  // list[0] for lists of modules.
  decltype(auto) operator[](std::size_t i) const { return (*get())[i]; }

  const std::shared_ptr<Contained>& ptr() const {
    get();
    return impl_;
  }

  Contained* get() const {
    if (impl_ == nullptr) fail_empty_holder(typeid(Contained));
    return impl_.get();
  }

  bool is_empty() const { return impl_ == nullptr; }

  // Calls forward in the module's scope: a module of ours under the caller's line, while in a
  // user's forward each call stands at a line of its own. One overload per number of
  // arguments, so that the line can be a default argument.
  template <class A> decltype(auto) operator()(A&& a, Loc loc = Loc::current()) const {
    const Call call(loc);
    const ModuleScope scope(*get());
    const UserCode lines_of_its_own(!is_ours<Contained>());
    return impl_->forward(std::forward<A>(a));
  }

  template <class A, class B>
  requires(!std::is_same_v<std::decay_t<B>, Loc>) decltype(auto) operator()(
      A&& a, B&& b, Loc loc = Loc::current()) const {
    const Call call(loc);
    const ModuleScope scope(*get());
    const UserCode lines_of_its_own(!is_ours<Contained>());
    return impl_->forward(std::forward<A>(a), std::forward<B>(b));
  }

  template <class A, class B, class C>
  requires(!std::is_same_v<std::decay_t<C>, Loc>) decltype(auto) operator()(
      A&& a, B&& b, C&& c, Loc loc = Loc::current()) const {
    const Call call(loc);
    const ModuleScope scope(*get());
    const UserCode lines_of_its_own(!is_ours<Contained>());
    return impl_->forward(std::forward<A>(a), std::forward<B>(b), std::forward<C>(c));
  }

  template <class A, class B, class C, class D>
  requires(!std::is_same_v<std::decay_t<D>, Loc>) decltype(auto) operator()(
      A&& a, B&& b, C&& c, D&& d, Loc loc = Loc::current()) const {
    const Call call(loc);
    const ModuleScope scope(*get());
    const UserCode lines_of_its_own(!is_ours<Contained>());
    return impl_->forward(std::forward<A>(a), std::forward<B>(b), std::forward<C>(c),
                          std::forward<D>(d));
  }

 private:
  std::shared_ptr<Contained> impl_;
};

template <class Contained>
std::ostream& operator<<(std::ostream& out, const ModuleHolder<Contained>& module) {
  return out << static_cast<const Module&>(*module);
}

}  // namespace taper::nn

// Defines class Name, a ModuleHolder of NameImpl.
#define TAPER_MODULE(Name)                                                 \
  class Name : public ::taper::nn::ModuleHolder<Name##Impl> { /* NOLINT */ \
   public:                                                                 \
    using ::taper::nn::ModuleHolder<Name##Impl>::ModuleHolder;             \
    using Impl = Name##Impl;                                               \
  }
