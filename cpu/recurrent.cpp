// One time step of an LSTM and of a GRU over all sequences of a batch, and the gradients of each.
#include "taper/core/recurrent_step.h"
#include "taper/cpu/kernels.h"
#include "taper/cpu/parallel.h"

// The formulas are those of core/recurrent_step.h. Rows lie dense, so the loops below know one
// stride; what is stored in 16 bits is computed in f32.
namespace taper::cpu {
inline namespace TAPER_ISA {
namespace {

using Index = std::int64_t;

constexpr Index kChunk = kGrain / 16;  // elements of a chunk, at several elementary functions each

template <class E> using Computed = std::conditional_t<sizeof(E) == 2, float, E>;

// Rows of elements; `step` from one to the next.
template <class E> struct Rows {
  E* data;
  Index step;

  TAPER_INLINE E* operator()(Index row, Index col) const { return data + row * step + col; }
};

template <class E> Rows<E> rows_of(const View& view) {
  TAPER_ASSERT(view.layout->ndim == 2 &&
               (view.layout->strides[1] == 1 || view.layout->sizes[1] < 2));
  return {view.as<E>(), view.layout->strides[0]};
}

// Calls line(row, col, n) for pieces of rows that cover `state`, (B, H), from several threads.
template <class Line> void for_each_line(const View& state, const Line& line) {
  const Index rows = state.layout->sizes[0], cols = state.layout->sizes[1];
  parallel_for(rows * cols, kChunk, [&](Index begin, Index end) {
    while (begin < end) {
      const Index row = begin / cols, col = begin % cols;
      const Index n = end - begin < cols - col ? end - begin : cols - col;
      line(row, col, n);
      begin += n;
    }
  });
}

template <class E, class T = Computed<E>>
void lstm_line(E* __restrict i,
               E* __restrict f,
               E* __restrict g,
               E* __restrict o,
               E* __restrict h,
               E* __restrict c,
               const E* __restrict c_before,
               Index n) {
  for (Index j = 0; j < n; ++j) {
    const fn::LstmStep<T> step(static_cast<T>(i[j]), static_cast<T>(f[j]), static_cast<T>(g[j]),
                               static_cast<T>(o[j]), static_cast<T>(c_before[j]));
    i[j] = static_cast<E>(step.i);
    f[j] = static_cast<E>(step.f);
    g[j] = static_cast<E>(step.g);
    o[j] = static_cast<E>(step.o);
    c[j] = static_cast<E>(step.c);
    h[j] = static_cast<E>(step.h);
  }
}

// `gates` and `to` point to the first of four gates, which lie `gap` apart.
template <class E, class T = Computed<E>>
void lstm_grad_line(E* __restrict to,
                    E* __restrict dc_before,
                    const E* __restrict dh,
                    const E* __restrict dc,
                    const E* __restrict gates,
                    const E* __restrict c,
                    const E* __restrict c_before,
                    Index gap,
                    Index n) {
  E *to_f = to + gap, *to_g = to_f + gap, *to_o = to_g + gap;
  const E *f = gates + gap, *g = f + gap, *o = g + gap;
  for (Index j = 0; j < n; ++j) {
    const fn::LstmGrads<T> d(static_cast<T>(dh[j]), static_cast<T>(dc[j]), static_cast<T>(gates[j]),
                             static_cast<T>(f[j]), static_cast<T>(g[j]), static_cast<T>(o[j]),
                             static_cast<T>(c[j]), static_cast<T>(c_before[j]));
    to[j] = static_cast<E>(d.i);
    to_f[j] = static_cast<E>(d.f);
    to_g[j] = static_cast<E>(d.g);
    to_o[j] = static_cast<E>(d.o);
    dc_before[j] = static_cast<E>(static_cast<T>(dc_before[j]) + d.c_before);
  }
}

template <class E, class T = Computed<E>>
void gru_line(E* __restrict gates,
              E* __restrict h,
              const E* __restrict x,
              const E* __restrict state,
              const E* __restrict h_before,
              Index gap,
              Index n) {
  E *to_z = gates + gap, *to_n = to_z + gap, *to_m = to_n + gap;
  const E *x_z = x + gap, *x_n = x_z + gap;
  const E *state_z = state + gap, *m = state_z + gap;
  for (Index j = 0; j < n; ++j) {
    const fn::GruStep<T> step(static_cast<T>(x[j]) + static_cast<T>(state[j]),
                              static_cast<T>(x_z[j]) + static_cast<T>(state_z[j]),
                              static_cast<T>(x_n[j]), static_cast<T>(m[j]),
                              static_cast<T>(h_before[j]));
    gates[j] = static_cast<E>(step.r);
    to_z[j] = static_cast<E>(step.z);
    to_n[j] = static_cast<E>(step.n);
    to_m[j] = m[j];
    h[j] = static_cast<E>(step.h);
  }
}

template <class E, class T = Computed<E>>
void gru_grad_line(E* __restrict dx,
                   E* __restrict dstate,
                   E* __restrict dh_before,
                   const E* __restrict dh,
                   const E* __restrict gates,
                   const E* __restrict h_before,
                   Index gap,
                   Index n) {
  E *dx_z = dx + gap, *dx_n = dx_z + gap, *dstate_z = dstate + gap, *dm = dstate_z + gap;
  const E *z = gates + gap, *g = z + gap, *m = g + gap;
  for (Index j = 0; j < n; ++j) {
    const fn::GruGrads<T> d(static_cast<T>(dh[j]), static_cast<T>(gates[j]), static_cast<T>(z[j]),
                            static_cast<T>(g[j]), static_cast<T>(m[j]),
                            static_cast<T>(h_before[j]));
    dx[j] = dstate[j] = static_cast<E>(d.r);
    dx_z[j] = dstate_z[j] = static_cast<E>(d.z);
    dx_n[j] = static_cast<E>(d.n);
    dm[j] = static_cast<E>(d.m);
    dh_before[j] = static_cast<E>(static_cast<T>(dh_before[j]) + d.h_before);
  }
}

}  // namespace

// Bytes: every operand once, 44 H in f32 for each sequence. Five elementary functions an element.
void lstm(const Exec&, InOut gates, Out h, Out c, In c_before) {
  visit_floating(h.dtype, [&](auto type) {
    using E = typename decltype(type)::type;
    const Rows<E> g = rows_of<E>(gates), to_h = rows_of<E>(h), to_c = rows_of<E>(c);
    const Rows<const E> before = rows_of<const E>(c_before);
    const Index gap = h.layout->sizes[1];
    for_each_line(h, [&](Index row, Index col, Index n) {
      E* i = g(row, col);
      lstm_line(i, i + gap, i + 2 * gap, i + 3 * gap, to_h(row, col), to_c(row, col),
                before(row, col), n);
    });
  });
}

// Bytes: every operand once, dc_before twice, 56 H in f32 for each sequence.
void lstm_grad(
    const Exec&, Out dgates, InOut dc_before, In dh, In dc, In gates, In c, In c_before) {
  visit_floating(dh.dtype, [&](auto type) {
    using E = typename decltype(type)::type;
    const Rows<E> to = rows_of<E>(dgates), to_c = rows_of<E>(dc_before);
    const Rows<const E> from_h = rows_of<const E>(dh), from_c = rows_of<const E>(dc),
                        g = rows_of<const E>(gates), cell = rows_of<const E>(c),
                        before = rows_of<const E>(c_before);
    for_each_line(dh, [&](Index row, Index col, Index n) {
      lstm_grad_line(to(row, col), to_c(row, col), from_h(row, col), from_c(row, col), g(row, col),
                     cell(row, col), before(row, col), dh.layout->sizes[1], n);
    });
  });
}

// Bytes: every operand once, 48 H in f32 for each sequence. Three elementary functions an element.
void gru(const Exec&, Out gates, Out h, In x, In state, In h_before) {
  visit_floating(h.dtype, [&](auto type) {
    using E = typename decltype(type)::type;
    const Rows<E> to = rows_of<E>(gates), to_h = rows_of<E>(h);
    const Rows<const E> of_x = rows_of<const E>(x), of_state = rows_of<const E>(state),
                        before = rows_of<const E>(h_before);
    for_each_line(h, [&](Index row, Index col, Index n) {
      gru_line(to(row, col), to_h(row, col), of_x(row, col), of_state(row, col), before(row, col),
               h.layout->sizes[1], n);
    });
  });
}

// Bytes: every operand once, dh_before twice, 56 H in f32 for each sequence.
void gru_grad(const Exec&, Out dx, Out dstate, InOut dh_before, In dh, In gates, In h_before) {
  visit_floating(dh.dtype, [&](auto type) {
    using E = typename decltype(type)::type;
    const Rows<E> to_x = rows_of<E>(dx), to_state = rows_of<E>(dstate),
                  to_h = rows_of<E>(dh_before);
    const Rows<const E> from = rows_of<const E>(dh), g = rows_of<const E>(gates),
                        before = rows_of<const E>(h_before);
    for_each_line(dh, [&](Index row, Index col, Index n) {
      gru_grad_line(to_x(row, col), to_state(row, col), to_h(row, col), from(row, col), g(row, col),
                    before(row, col), dh.layout->sizes[1], n);
    });
  });
}

}  // namespace TAPER_ISA
}  // namespace taper::cpu
