// Modules made of modules: Sequential, ModuleList, and functions as modules.
#pragma once
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "taper/nn/module.h"

namespace taper::nn {

// A module of any type that maps one tensor to one tensor, or a plain function that does.
class AnyModule {
 public:
  template <class M>
  requires std::is_base_of_v<Module, M> AnyModule(
      std::shared_ptr<M> module)  // NOLINT(google-explicit-constructor)
      : call_(std::make_shared<CallOf<M>>(module)), module_(module) {}

  template <class Holder>
  requires std::is_base_of_v<ModuleHolderIndicator, Holder> AnyModule(const Holder& holder)
      : AnyModule(holder.ptr()) {}  // NOLINT

  Tensor forward(const Tensor& x) const {
    const ModuleScope scope(*module_);
    return call_->run(x);
  }

  const std::shared_ptr<Module>& ptr() const { return module_; }

  AnyModule clone(std::optional<Device> device = std::nullopt) const {
    return call_->clone(device);
  }

 private:
  struct Forward {
    virtual ~Forward() = default;
    virtual Tensor run(const Tensor& x) const = 0;
    virtual AnyModule clone(std::optional<Device> device) const = 0;
  };

  template <class M> struct CallOf final : Forward {
    explicit CallOf(std::shared_ptr<M> m) : module(std::move(m)) {}
    Tensor run(const Tensor& x) const override {
      const UserCode lines_of_its_own(!is_ours<M>());
      return module->forward(x);
    }
    AnyModule clone(std::optional<Device> device) const override {
      const auto copy = std::dynamic_pointer_cast<M>(module->clone(device));
      TAPER_CHECK(copy != nullptr, "clone: ", module->name(), " copies itself as another type");
      return copy;
    }
    std::shared_ptr<M> module;
  };

  std::shared_ptr<Forward> call_;
  std::shared_ptr<Module> module_;
};

// A function as a module: nn::Functional(taper::relu), nn::Functional([](const Tensor& x) {...}).
class FunctionalImpl : public Stateless<FunctionalImpl> {
 public:
  template <class F>
  requires(!std::is_base_of_v<FunctionalImpl, std::decay_t<F>>) explicit FunctionalImpl(F f)
      : f_(std::make_shared<RunOf<F>>(std::move(f))) {}

  Tensor forward(const TensorArg& x) { return f_->run(*x); }

 private:
  struct Run {
    virtual ~Run() = default;
    virtual Tensor run(const Tensor& x) const = 0;
  };

  template <class F> struct RunOf final : Run {
    explicit RunOf(F g) : f(std::move(g)) {}
    Tensor run(const Tensor& x) const override {
      const UserCode lines_of_its_own(std::is_class_v<F>);
      return f(x);
    }
    F f;
  };

  std::shared_ptr<Run> f_;
};
TAPER_MODULE(Functional);

struct NamedAnyModule {
  std::string name;
  AnyModule module;
};

// Its modules one after another; they are called "0", "1", ... unless named.
class SequentialImpl : public Cloneable<SequentialImpl> {
 public:
  SequentialImpl() { begin_scope("Sequential", false); }

  SequentialImpl(std::initializer_list<NamedAnyModule> modules) : SequentialImpl() {
    for (const NamedAnyModule& m : modules) push_back(m.name, m.module);
  }

  template <class... Modules>
  requires(sizeof...(Modules) > 0 && (std::is_constructible_v<AnyModule, Modules> &&
                                      ...)) explicit SequentialImpl(Modules&&... modules)
      : SequentialImpl() {
    (push_back(AnyModule(std::forward<Modules>(modules))), ...);
  }

  // The copy shares no module: each is cloned.
  std::shared_ptr<Module> clone(std::optional<Device> device = std::nullopt) const override;
  void reset() override {}

  void push_back(AnyModule module, Loc loc = Loc::current()) {
    push_back(std::to_string(modules_.size()), std::move(module), loc);
  }

  void push_back(std::string name, AnyModule module, Loc loc = Loc::current()) {
    register_module(std::move(name), module.ptr(), loc);
    modules_.push_back(std::move(module));
  }

  Tensor forward(const TensorArg& x);

  std::size_t size() const { return modules_.size(); }

  bool is_empty() const { return modules_.empty(); }

  const std::shared_ptr<Module>& operator[](std::size_t i) const { return modules_.at(i).ptr(); }

  const std::shared_ptr<Module>& ptr(std::size_t i) const { return modules_.at(i).ptr(); }

  auto begin() const { return modules_.begin(); }

  auto end() const { return modules_.end(); }

 private:
  std::vector<AnyModule> modules_;
};

class Sequential : public ModuleHolder<SequentialImpl> {
 public:
  using ModuleHolder<SequentialImpl>::ModuleHolder;
  using Impl = SequentialImpl;

  Sequential() = default;

  // One module: ModuleHolder would take a lone holder for a copy of itself.
  template <class Holder>
  requires(std::is_base_of_v<ModuleHolderIndicator, Holder> &&
           !std::is_same_v<Holder, Sequential>) explicit Sequential(const Holder& module)
      : ModuleHolder(std::make_shared<SequentialImpl>(module)) {}

  Sequential(std::initializer_list<NamedAnyModule> modules)
      : ModuleHolder(std::make_shared<SequentialImpl>(modules)) {}
};

// A list of modules, registered as "0", "1", ...; forward is the user's.
class ModuleListImpl : public Module {
 public:
  ModuleListImpl() { begin_scope("ModuleList", true); }

  std::shared_ptr<Module> clone(std::optional<Device> device = std::nullopt) const override;

  template <class M> void push_back(std::shared_ptr<M> module, Loc loc = Loc::current()) {
    register_module(std::to_string(list_.size()), module, loc);
    list_.push_back(std::move(module));
  }

  template <class Holder>
  requires std::is_base_of_v<ModuleHolderIndicator, Holder>
  void push_back(const Holder& holder, Loc loc = Loc::current()) {
    const Call call(loc);
    push_back(holder.ptr(), loc);
  }

  // A module by value, as LibTorch takes it.
  template <class M>
  requires(std::is_base_of_v<Module, M>) void push_back(M module, Loc loc = Loc::current()) {
    push_back(std::make_shared<M>(std::move(module)), loc);
  }

  std::size_t size() const { return list_.size(); }

  const std::shared_ptr<Module>& operator[](std::size_t i) const { return list_.at(i); }

  template <class M> M& at(std::size_t i) const {
    auto* module = list_.at(i)->template as<M>();
    TAPER_CHECK(module != nullptr, "ModuleList: element ", i, " is a ", list_[i]->name());
    return *module;
  }

  auto begin() const { return list_.begin(); }

  auto end() const { return list_.end(); }

 private:
  std::vector<std::shared_ptr<Module>> list_;
};
TAPER_MODULE(ModuleList);

}  // namespace taper::nn
