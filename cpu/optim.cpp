// One step of Adam, AdamW and SGD over each parameter: every number is read and written once.
#include "taper/core/optim_step.h"
#include "taper/cpu/kernels.h"
#include "taper/cpu/parallel.h"
#include "taper/cpu/walk.h"

// Note [Steps in blocks]
// A parameter and its state are taken in blocks that stay in the first cache. Operands that lie
// dense in the type computed in are worked on in place; others (16-bit types, odd strides) pass
// through a buffer. So the loops below know one type and no layout. What they do to an element is
// in core/optim_step.h.
namespace taper::cpu {
inline namespace TAPER_ISA {
namespace {

using Index = std::int64_t;

constexpr Index kBlock = 512;
constexpr int kMostOperands = 5;

// The operands of one step as blocks of T; operand 0 is the parameter.
template <class T> class Blocks {
 public:
  Blocks(const View* const* views, int count) : views_(views), count_(count) {
    const Layout& first = *views[0]->layout;
    start_.ndim = first.ndim;
    start_.count = count;
    flat_ = is_dense(first);
    for (int k = 0; k < count; ++k) {
      const Layout& layout = *views[k]->layout;
      for (int d = 0; d < first.ndim; ++d) {
        start_.sizes[d] = first.sizes[d];
        start_.strides[k][d] = layout.strides[d];
        if (first.sizes[d] > 1 && layout.strides[d] != first.strides[d]) flat_ = false;
      }
    }
    numel_ = first.numel();
    // Flat runs begin at the lowest address.
    for (int k = 0; k < count; ++k)
      data_[k] = flat_ ? lowest(*views[k]) : views[k]->as<std::byte>();
  }

  // Calls step(pointers, n) for each block; writes back the operands whose bit is set in `written`.
  template <class Step> void for_each(unsigned written, const Step& step) const {
    parallel_for(numel_, kGrain / 4, [&](Index begin, Index end) {
      alignas(64) T buffer[kMostOperands][kBlock];
      Walk<kMostOperands> walk = start_;
      if (!flat_) walk.seek(begin);
      for (Index i = begin; i < end; i += kBlock) {
        const Index n = end - i < kBlock ? end - i : kBlock;
        T* at[kMostOperands] = {};
        bring(i, n, walk, buffer, at);
        step(at, n);
        for (int k = 0; k < count_; ++k) {
          if ((written >> k & 1U) != 0 && at[k] == buffer[k]) save(k, i, n, walk, buffer[k]);
        }
        if (!flat_) walk.seek(i + n < numel_ ? i + n : 0);
      }
    });
  }

 private:
  // Where the operands of a block are: in place, or in the buffer.
  void bring(Index i,
             Index n,
             const Walk<kMostOperands>& walk,
             T (&buffer)[kMostOperands][kBlock],
             T* (&at)[kMostOperands]) const {
    for (int k = 0; k < count_; ++k) {
      const bool in_place = flat_ && views_[k]->dtype == dtype_of<T>();
      at[k] = in_place ? reinterpret_cast<T*>(data_[k]) + i : buffer[k];
      if (!in_place) load(k, i, n, walk, buffer[k]);
    }
  }

  static std::byte* lowest(const View& view) {
    Index back = 0;
    for (int d = 0; d < view.layout->ndim; ++d) {
      if (view.layout->strides[d] < 0)
        back += (view.layout->sizes[d] - 1) * view.layout->strides[d];
    }
    return view.as<std::byte>() + back * element_size(view.dtype);
  }

  void load(int k, Index i, Index n, Walk<kMostOperands> walk, T* to) const {
    visit_floating(views_[k]->dtype, [&](auto type) {
      const auto* from = reinterpret_cast<const typename decltype(type)::type*>(data_[k]);
      if (flat_) {
        for (Index j = 0; j < n; ++j) to[j] = static_cast<T>(from[i + j]);
      } else {
        for (Index j = 0; j < n; ++j, walk.next()) to[j] = static_cast<T>(from[walk.offset[k]]);
      }
    });
  }

  void save(int k, Index i, Index n, Walk<kMostOperands> walk, const T* from) const {
    visit_floating(views_[k]->dtype, [&](auto type) {
      using E = typename decltype(type)::type;
      auto* to = reinterpret_cast<E*>(data_[k]);
      if (flat_) {
        for (Index j = 0; j < n; ++j) to[i + j] = static_cast<E>(from[j]);
      } else {
        for (Index j = 0; j < n; ++j, walk.next()) to[walk.offset[k]] = static_cast<E>(from[j]);
      }
    });
  }

  const View* const* views_;
  int count_;
  bool flat_;  // all operands lie without gaps, in the same order
  Index numel_;
  std::byte* data_[kMostOperands];
  Walk<kMostOperands> start_;
};

template <class T>
void decay(T* __restrict out, const T* __restrict p, const T* g, T rate, Index n) {
  for (Index i = 0; i < n; ++i) out[i] = fn::add_decay(g[i], p[i], rate);
}

template <class T>
void moments(
    T* __restrict m, T* __restrict v, const T* __restrict g, fn::AdamConstants<T> c, Index n) {
  for (Index i = 0; i < n; ++i) {
    m[i] = c.first_moment(m[i], g[i]);
    v[i] = c.second_moment(v[i], g[i]);
  }
}

template <class T>
void update(T* __restrict p,
            const T* __restrict m,
            const T* __restrict v,
            fn::AdamConstants<T> c,
            Index n) {
  for (Index i = 0; i < n; ++i) p[i] = c.update(p[i], m[i], v[i]);
}

template <class T> void keep_largest(T* __restrict largest, const T* __restrict v, Index n) {
  for (Index i = 0; i < n; ++i) largest[i] = fn::larger_moment(largest[i], v[i]);
}

template <class T> void adam_step(const AdamParam& param, const AdamHyper& hyper) {
  const fn::AdamConstants<T> constants(hyper, param.step.at);
  const bool amsgrad = param.max_exp_avg_sq.defined();
  const View* const views[] = {&param.param, &param.grad, &param.exp_avg, &param.exp_avg_sq,
                               &param.max_exp_avg_sq};
  const Blocks<T> blocks(views, amsgrad ? 5 : 4);
  blocks.for_each(0b11101U, [&](T* const* at, Index n) {
    T decayed[kBlock];
    const T* g = at[1];
    if (hyper.weight_decay != 0 && hyper.decoupled) {
      const T shrink = constants.shrink;
      for (Index i = 0; i < n; ++i) at[0][i] *= shrink;
    } else if (hyper.weight_decay != 0) {
      decay(decayed, at[0], g, constants.decay, n);
      g = decayed;
    }
    moments(at[2], at[3], g, constants, n);
    if (amsgrad) keep_largest(at[4], at[3], n);
    update(at[0], at[2], amsgrad ? at[4] : at[3], constants, n);
  });
}

template <class T> void sgd_step(const SgdParam& param, const SgdHyper& hyper) {
  const bool momentum = param.momentum_buffer.defined() && hyper.momentum != 0;
  const View* const views[] = {&param.param, &param.grad, &param.momentum_buffer};
  const Blocks<T> blocks(views, momentum ? 3 : 2);
  const fn::SgdConstants<T> c(hyper);
  blocks.for_each(0b101U, [&](T* const* at, Index n) {
    T *const p = at[0], *const b = at[2];
    T decayed[kBlock], ahead[kBlock];
    const T* g = at[1];
    if (hyper.weight_decay != 0) {
      decay(decayed, p, g, c.decay, n);
      g = decayed;
    }
    if (momentum) {
      if (param.first) {
        for (Index i = 0; i < n; ++i) b[i] = g[i];
      } else {
        for (Index i = 0; i < n; ++i) b[i] = c.buffer(b[i], g[i]);
      }
      for (Index i = 0; hyper.nesterov && i < n; ++i) ahead[i] = c.ahead(g[i], b[i]);
      g = hyper.nesterov ? ahead : b;
    }
    for (Index i = 0; i < n; ++i) p[i] = c.update(p[i], g[i]);
  });
}

}  // namespace

// Bytes, in f32: 28 for each element, 36 with amsgrad. Two square roots' and divisions' worth of
// work hides behind them.
void adam(const Exec&, ArrayRef<AdamParam> params, const AdamHyper& hyper) {
  for (const AdamParam& param : params) {
    if (param.param.dtype == kFloat64) adam_step<double>(param, hyper);
    else adam_step<float>(param, hyper);
  }
}

// Bytes, in f32: 12 for each element, 20 with momentum.
void sgd(const Exec&, ArrayRef<SgdParam> params, const SgdHyper& hyper) {
  for (const SgdParam& param : params) {
    if (param.param.dtype == kFloat64) sgd_step<double>(param, hyper);
    else sgd_step<float>(param, hyper);
  }
}

}  // namespace TAPER_ISA
}  // namespace taper::cpu
