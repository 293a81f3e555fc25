// One time step of an LSTM and of a GRU over all sequences of a batch, and the gradients of each.
#include "taper/core/recurrent_step.h"
#include "taper/cuda/device.cuh"

// A thread takes one element of the state and all its gates; neighbours lie together in each of
// them. The formulas are those of core/recurrent_step.h.
namespace taper::cuda {
namespace {

// Rows of elements that lie dense; `step` from one to the next.
template <class E> struct Rows {
  E* data;
  Index step;

  __device__ E* operator()(Index row, Index col) const { return data + row * step + col; }
};

template <class E> Rows<E> rows_of(const View& view) {
  TAPER_ASSERT(view.layout->ndim == 2 &&
               (view.layout->strides[1] == 1 || view.layout->sizes[1] < 2));
  return {view.as<E>(), view.layout->strides[0]};
}

template <class E, class T = Compute<E>>
__global__ void lstm_elements(
    Rows<E> gates, Rows<E> h, Rows<E> c, Rows<const E> c_before, Index count, Index cols) {
  for (Index at = first_index(); at < count; at += index_step()) {
    const Index row = at / cols, col = at % cols;
    E* g = gates(row, col);
    const fn::LstmStep<T> step(static_cast<T>(g[0]), static_cast<T>(g[cols]),
                               static_cast<T>(g[2 * cols]), static_cast<T>(g[3 * cols]),
                               static_cast<T>(*c_before(row, col)));
    g[0] = static_cast<E>(step.i);
    g[cols] = static_cast<E>(step.f);
    g[2 * cols] = static_cast<E>(step.g);
    g[3 * cols] = static_cast<E>(step.o);
    *c(row, col) = static_cast<E>(step.c);
    *h(row, col) = static_cast<E>(step.h);
  }
}

template <class E, class T = Compute<E>>
__global__ void lstm_grad_elements(Rows<E> dgates,
                                   Rows<E> dc_before,
                                   Rows<const E> dh,
                                   Rows<const E> dc,
                                   Rows<const E> gates,
                                   Rows<const E> c,
                                   Rows<const E> c_before,
                                   Index count,
                                   Index cols) {
  for (Index at = first_index(); at < count; at += index_step()) {
    const Index row = at / cols, col = at % cols;
    const E* g = gates(row, col);
    const fn::LstmGrads<T> d(static_cast<T>(*dh(row, col)), static_cast<T>(*dc(row, col)),
                             static_cast<T>(g[0]), static_cast<T>(g[cols]),
                             static_cast<T>(g[2 * cols]), static_cast<T>(g[3 * cols]),
                             static_cast<T>(*c(row, col)), static_cast<T>(*c_before(row, col)));
    E* to = dgates(row, col);
    to[0] = static_cast<E>(d.i);
    to[cols] = static_cast<E>(d.f);
    to[2 * cols] = static_cast<E>(d.g);
    to[3 * cols] = static_cast<E>(d.o);
    E* before = dc_before(row, col);
    *before = static_cast<E>(static_cast<T>(*before) + d.c_before);
  }
}

template <class E, class T = Compute<E>>
__global__ void gru_elements(Rows<E> gates,
                             Rows<E> h,
                             Rows<const E> x,
                             Rows<const E> state,
                             Rows<const E> h_before,
                             Index count,
                             Index cols) {
  for (Index at = first_index(); at < count; at += index_step()) {
    const Index row = at / cols, col = at % cols;
    const E *of_x = x(row, col), *of_state = state(row, col);
    const E m = of_state[2 * cols];
    const fn::GruStep<T> step(static_cast<T>(of_x[0]) + static_cast<T>(of_state[0]),
                              static_cast<T>(of_x[cols]) + static_cast<T>(of_state[cols]),
                              static_cast<T>(of_x[2 * cols]), static_cast<T>(m),
                              static_cast<T>(*h_before(row, col)));
    E* to = gates(row, col);
    to[0] = static_cast<E>(step.r);
    to[cols] = static_cast<E>(step.z);
    to[2 * cols] = static_cast<E>(step.n);
    to[3 * cols] = m;
    *h(row, col) = static_cast<E>(step.h);
  }
}

template <class E, class T = Compute<E>>
__global__ void gru_grad_elements(Rows<E> dx,
                                  Rows<E> dstate,
                                  Rows<E> dh_before,
                                  Rows<const E> dh,
                                  Rows<const E> gates,
                                  Rows<const E> h_before,
                                  Index count,
                                  Index cols) {
  for (Index at = first_index(); at < count; at += index_step()) {
    const Index row = at / cols, col = at % cols;
    const E* g = gates(row, col);
    const fn::GruGrads<T> d(static_cast<T>(*dh(row, col)), static_cast<T>(g[0]),
                            static_cast<T>(g[cols]), static_cast<T>(g[2 * cols]),
                            static_cast<T>(g[3 * cols]), static_cast<T>(*h_before(row, col)));
    E *to_x = dx(row, col), *to_state = dstate(row, col);
    to_x[0] = to_state[0] = static_cast<E>(d.r);
    to_x[cols] = to_state[cols] = static_cast<E>(d.z);
    to_x[2 * cols] = static_cast<E>(d.n);
    to_state[2 * cols] = static_cast<E>(d.m);
    E* before = dh_before(row, col);
    *before = static_cast<E>(static_cast<T>(*before) + d.h_before);
  }
}

// One thread for each element of `state`, (B, H).
template <class... Params, class... Args>
void launch_elements(const Exec& exec,
                     const View& state,
                     void (*kernel)(Params...),
                     const Args&... args) {
  const Index count = state.layout->numel();
  launch_on(exec, blocks_for(count), kThreads, kernel, args..., count, state.layout->sizes[1]);
}

}  // namespace

void lstm(const Exec& exec, InOut gates, Out h, Out c, In c_before) {
  visit_floating(h.dtype, [&](auto type) {
    using E = typename decltype(type)::type;
    launch_elements(exec, h, lstm_elements<E>, rows_of<E>(gates), rows_of<E>(h), rows_of<E>(c),
                    rows_of<const E>(c_before));
  });
}

void lstm_grad(
    const Exec& exec, Out dgates, InOut dc_before, In dh, In dc, In gates, In c, In c_before) {
  visit_floating(dh.dtype, [&](auto type) {
    using E = typename decltype(type)::type;
    launch_elements(exec, dh, lstm_grad_elements<E>, rows_of<E>(dgates), rows_of<E>(dc_before),
                    rows_of<const E>(dh), rows_of<const E>(dc), rows_of<const E>(gates),
                    rows_of<const E>(c), rows_of<const E>(c_before));
  });
}

void gru(const Exec& exec, Out gates, Out h, In x, In state, In h_before) {
  visit_floating(h.dtype, [&](auto type) {
    using E = typename decltype(type)::type;
    launch_elements(exec, h, gru_elements<E>, rows_of<E>(gates), rows_of<E>(h), rows_of<const E>(x),
                    rows_of<const E>(state), rows_of<const E>(h_before));
  });
}

void gru_grad(const Exec& exec, Out dx, Out dstate, InOut dh_before, In dh, In gates, In h_before) {
  visit_floating(dh.dtype, [&](auto type) {
    using E = typename decltype(type)::type;
    launch_elements(exec, dh, gru_grad_elements<E>, rows_of<E>(dx), rows_of<E>(dstate),
                    rows_of<E>(dh_before), rows_of<const E>(dh), rows_of<const E>(gates),
                    rows_of<const E>(h_before));
  });
}

}  // namespace taper::cuda
