// Custom differentiable functions: a forward and a backward written by the user.
#pragma once
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <vector>

#include "taper/autograd/backward.h"

namespace taper::autograd {

// What forward leaves for backward. Tensors go through save_for_backward, so that writes to them
// are noticed; anything else may be a member of the user's own `saved_data`.
class AutogradContext {
 public:
  void save_for_backward(variable_list tensors) { to_save_ = std::move(tensors); }

  // In backward: what was saved, in order; undefined where an undefined tensor was.
  variable_list get_saved_variables() const { return saved_; }

  // Outputs that have no gradient (indices, say).
  void mark_non_differentiable(const variable_list& outputs) { not_differentiable_ = outputs; }

  // In backward: whether input i (tensors only, in order) wants a gradient.
  bool needs_input_grad(std::size_t i) const { return (needs_ >> i & 1U) != 0; }

  // In backward: whether a gradient that nothing reached comes as zeros (as at first) or undefined.
  void set_materialize_grads(bool on) { materialize_ = on; }

  // Numbers and texts by name, LibTorch's ctx->saved_data["n"].
  struct Value {
    Scalar number;
    std::string text;

    Value() = default;
    template <class T>
    requires std::is_arithmetic_v<T> Value& operator=(T x) {
      number = Scalar(x);
      return *this;
    }
    Value& operator=(std::string s) {
      text = std::move(s);
      return *this;
    }
    double toDouble() const { return number.to_double(); }   // NOLINT: LibTorch's name
    std::int64_t toInt() const { return number.to_int(); }   // NOLINT: LibTorch's name
    bool toBool() const { return number.to_int() != 0; }     // NOLINT: LibTorch's name
    const std::string& toStringRef() const { return text; }  // NOLINT: LibTorch's name
  };

  Value& saved(const std::string& name);

  struct Data {
    AutogradContext* context;
    Value& operator[](const std::string& name) const { return context->saved(name); }
  };

  Data saved_data{this};

  AutogradContext() = default;
  AutogradContext(const AutogradContext&) = delete;
  AutogradContext& operator=(const AutogradContext&) = delete;

 private:
  friend class CustomOp;
  friend bool is_differentiable(const AutogradContext& ctx, const Tensor& output);

  std::vector<std::pair<std::string, Value>> values_;
  variable_list to_save_, saved_, not_differentiable_;
  std::uint64_t needs_ = 0;
  bool materialize_ = true;
};

// The op behind a Function: calls the user's static functions through two pointers.
class CustomOp final : public Op {
 public:
  using Run = void (*)(AutogradContext*, void* arguments, variable_list* outputs);
  using Back = variable_list (*)(AutogradContext*, variable_list grads);

  CustomOp(const char* name, Run run, void* arguments, Back back)
      : name_(name),
        run_(run),
        arguments_(arguments),
        back_(back),
        context_(std::make_unique<AutogradContext>()) {}

  const char* name() const override { return name_; }

  bool plain_views() const override { return false; }

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

  std::unique_ptr<Op> to_heap() override {
    return std::unique_ptr<Op>(new CustomOp(std::move(*this)));
  }

  // Which argument each tensor input was, so that gradients of numbers can be skipped.
  std::vector<std::size_t> positions;

 private:
  std::vector<bool> saved_defined_;  // of what forward kept: undefined tensors are kept too
  const char* name_;
  Run run_;
  void* arguments_;
  Back back_;
  std::unique_ptr<AutogradContext> context_;
};

std::vector<Tensor> apply_custom(CustomOp&& op, const std::vector<Tensor>& inputs, Loc loc);

// struct Cube : Function<Cube> {
//   static Tensor forward(AutogradContext* ctx, const Tensor& x) {
//     ctx->save_for_backward({x});
//     return x * x * x;
//   }
//   static tensor_list backward(AutogradContext* ctx, tensor_list grads) {
//     return {grads[0] * 3 * ctx->get_saved_variables()[0].square()};
//   }
// };
// Tensor y = Cube::apply(x);
// backward returns one gradient per argument of forward (undefined for numbers), one for each
// tensor of an argument that is a vector. Written in tensor functions it can be differentiated
// again. An output that shares memory with an input cannot be written in place.
template <class Derived> class Function {
 public:
  // One overload per number of arguments, so that the caller's line can be a default argument.
  template <class A> static auto apply(A&& a, Loc loc = Loc::current()) {
    return run(loc, std::forward<A>(a));
  }

  template <class A, class B> static auto apply(A&& a, B&& b, Loc loc = Loc::current()) {
    return run(loc, std::forward<A>(a), std::forward<B>(b));
  }

  template <class A, class B, class C>
  static auto apply(A&& a, B&& b, C&& c, Loc loc = Loc::current()) {
    return run(loc, std::forward<A>(a), std::forward<B>(b), std::forward<C>(c));
  }

  template <class A, class B, class C, class D>
  static auto apply(A&& a, B&& b, C&& c, D&& d, Loc loc = Loc::current()) {
    return run(loc, std::forward<A>(a), std::forward<B>(b), std::forward<C>(c), std::forward<D>(d));
  }

  template <class A, class B, class C, class D, class E>
  static auto apply(A&& a, B&& b, C&& c, D&& d, E&& e, Loc loc = Loc::current()) {
    return run(loc, std::forward<A>(a), std::forward<B>(b), std::forward<C>(c), std::forward<D>(d),
               std::forward<E>(e));
  }

  template <class A, class B, class C, class D, class E, class F>
  static auto apply(A&& a, B&& b, C&& c, D&& d, E&& e, F&& f, Loc loc = Loc::current()) {
    return run(loc, std::forward<A>(a), std::forward<B>(b), std::forward<C>(c), std::forward<D>(d),
               std::forward<E>(e), std::forward<F>(f));
  }

 private:
  template <class... Args> static auto run(Loc loc, Args&&... args) {
    auto arguments = std::tuple<std::decay_t<Args>...>(std::forward<Args>(args)...);
    using Pack = decltype(arguments);
    using Result = decltype(call(static_cast<AutogradContext*>(nullptr), arguments));
    const auto forward = [](AutogradContext* ctx, void* pack, variable_list* outputs) {
      collect(call(ctx, *static_cast<Pack*>(pack)), outputs);
    };
    CustomOp op(name(), forward, &arguments, [](AutogradContext* ctx, variable_list grads) {
      return Derived::backward(ctx, std::move(grads));
    });
    std::vector<Tensor> inputs;
    std::size_t position = 0;
    std::apply([&](const auto&... a) { (gather(a, inputs, op, position), ...); }, arguments);
    std::vector<Tensor> outputs = apply_custom(std::move(op), inputs, loc);
    if constexpr (std::is_same_v<Result, Tensor>) return outputs[0];
    else return outputs;
  }

  template <class Pack> static auto call(AutogradContext* ctx, Pack& pack) {
    return std::apply([ctx](const auto&... a) { return Derived::forward(ctx, a...); }, pack);
  }

  static void collect(Tensor t, variable_list* out) { out->push_back(std::move(t)); }

  static void collect(variable_list list, variable_list* out) { *out = std::move(list); }

  template <class T>
  static void gather(const T& a, std::vector<Tensor>& in, CustomOp& op, std::size_t& position) {
    if constexpr (std::is_same_v<T, std::vector<Tensor>>) {
      for (const Tensor& t : a) gather(t, in, op, position);
      return;
    } else if constexpr (std::is_same_v<T, std::optional<Tensor>>) {
      gather(a.value_or(Tensor()), in, op, position);
      return;
    } else if constexpr (std::is_same_v<T, Tensor>) {
      in.push_back(a);
      op.positions.push_back(position);
    }
    ++position;
  }

  static const char* name();
};

// "Cube", cut out of the compiler's own text of this function.
std::string function_name(const char* pretty);

template <class Derived> const char* Function<Derived>::name() {
  static const std::string name = function_name(__PRETTY_FUNCTION__);
  return name.c_str();
}

}  // namespace taper::autograd
