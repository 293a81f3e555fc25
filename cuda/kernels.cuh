// What the CUDA column is made of: one function for each slot that it serves, by file.
#pragma once

#include "taper/core/kernels.h"

namespace taper::cuda {

// copy.cu
void copy(const Exec&, Out, In);
void fill(const Exec&, Out, Scalar);
void arange(const Exec&, Out, Scalar start, Scalar step);

// elementwise*.cu. F is a functor of core/functors.h; those with two parameters are templates of
// the type that they compute in.
template <class F> void unary(const Exec&, Out, In);
template <class F> void binary(const Exec&, Out, In, In);
template <template <class> class F> void unary2(const Exec&, Out, In, double, double);
template <template <class> class F> void binary2(const Exec&, Out, In, In, double, double);
void where(const Exec&, Out, In condition, In a, In b);

// reduce.cu
void sum(const Exec&, Out, In);
void prod(const Exec&, Out, In);
void amax(const Exec&, Out, In);
void amin(const Exec&, Out, In);
void var_mean(const Exec&, Out var, Out mean, In, double correction);

// reduce_arg.cu
void argmax(const Exec&, Out, In, int dim);
void argmin(const Exec&, Out, In, int dim);

// scan.cu
void cumsum(const Exec&, Out, In, int dim);
void cumprod(const Exec&, Out, In, int dim);

// sort.cu
void sort(const Exec&, Out values, Out indices, In, int dim, bool descending);

// finite.cu
void first_nonfinite(const Exec&, Out index, In);

// softmax.cu
void softmax(const Exec&, Out, In, int dim);
void log_softmax(const Exec&, Out, In, int dim);
void softmax_grad(const Exec&, Out, In grad, In y, int dim);
void log_softmax_grad(const Exec&, Out, In grad, In y, int dim);

// attention.cu, attention_grad.cu
void attention(const Exec&, Out y, Out stats, In q, In k, In v, In mask, bool causal, double scale);
void attention_grad(const Exec&,
                    Out dq,
                    Out dk,
                    Out dv,
                    In grad,
                    In q,
                    In k,
                    In v,
                    In y,
                    In stats,
                    In mask,
                    bool causal,
                    double scale);

// recurrent.cu
void lstm(const Exec&, InOut gates, Out h, Out c, In c_before);
void lstm_grad(const Exec&, Out dgates, InOut dc_before, In dh, In dc, In gates, In c, In c_before);
void gru(const Exec&, Out gates, Out h, In x, In state, In h_before);
void gru_grad(const Exec&, Out dx, Out dstate, InOut dh_before, In dh, In gates, In h_before);

// gemm.cu
void matmul(const Exec&, Out, In a, In b, In bias, Activation);

// norm.cu
void layer_norm(const Exec&, Out y, Out mean, Out rstd, In x, In weight, In bias, double eps);
void layer_norm_grad(
    const Exec&, Out dx, Out dweight, Out dbias, In grad, In x, In mean, In rstd, In weight);

// conv.cu
void conv2d(const Exec&, Out y, In x, In w, In bias, const Window2d&);
void conv2d_grad_input(const Exec&, Out dx, In grad, In w, const Window2d&);
void conv2d_grad_weight(const Exec&, Out dw, In grad, In x, const Window2d&);

// pool.cu
void max_pool2d(const Exec&, Out y, Out indices, In x, const Window2d&);
void max_pool2d_grad(const Exec&, Out dx, In grad, In indices);
void avg_pool2d(const Exec&, Out y, In x, const Window2d&);
void avg_pool2d_grad(const Exec&, Out dx, In grad, const Window2d&);

// optim.cu
void adam(const Exec&, ArrayRef<AdamParam>, const AdamHyper&);
void sgd(const Exec&, ArrayRef<SgdParam>, const SgdHyper&);

// index.cu
void gather(const Exec&, Out, In x, In index, int dim);
void scatter(const Exec&, InOut, In index, In src, int dim);
void scatter_add(const Exec&, InOut, In index, In src, int dim);
void index_select(const Exec&, Out, In x, In index, int dim);
void index_add(const Exec&, InOut, In index, In src, int dim);
void index(const Exec&, Out, In x, InList indices);
void index_put(const Exec&, InOut x, In src, InList indices, bool accumulate);
void count_nonzero(const Exec&, Out count, In);
void nonzero(const Exec&, Out rows, In);

// random.cu
void uniform(const Exec&, Out, Count seed, Count offset, double a, double b);
void normal(const Exec&, Out, Count seed, Count offset, double mean, double std);
void bernoulli(const Exec&, Out, Count seed, Count offset, double p, double);
void randint(const Exec&, Out, Count seed, Count offset, double a, double b);

}  // namespace taper::cuda
