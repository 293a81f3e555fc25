// The list of every op. Tests are made from it by the compiler: an op without samples in
// tests/contract/samples.h does not compile.
#pragma once
#include "taper/autograd/ops/advanced_index.h"
#include "taper/autograd/ops/attention.h"
#include "taper/autograd/ops/binary.h"
#include "taper/autograd/ops/conv.h"
#include "taper/autograd/ops/extremes.h"
#include "taper/autograd/ops/gather_scatter.h"
#include "taper/autograd/ops/loss.h"
#include "taper/autograd/ops/matmul.h"
#include "taper/autograd/ops/norm.h"
#include "taper/autograd/ops/pad.h"
#include "taper/autograd/ops/pool.h"
#include "taper/autograd/ops/random.h"
#include "taper/autograd/ops/recurrent.h"
#include "taper/autograd/ops/reduce.h"
#include "taper/autograd/ops/scan_sort.h"
#include "taper/autograd/ops/shape.h"
#include "taper/autograd/ops/softmax.h"
#include "taper/autograd/ops/statistics.h"
#include "taper/autograd/ops/unary.h"

namespace taper::ops {

template <class... Ops> struct OpList {};

using UnaryOps = OpList<Neg,
                        Abs,
                        Sign,
                        Square,
                        Reciprocal,
                        Exp,
                        Expm1,
                        Log,
                        Log1p,
                        Sqrt,
                        Rsqrt,
                        Sin,
                        Cos,
                        Tan,
                        Asin,
                        Acos,
                        Atan,
                        Sinh,
                        Cosh,
                        Tanh,
                        Erf,
                        Floor,
                        Ceil,
                        Round,
                        Trunc,
                        Sigmoid,
                        Relu,
                        Silu,
                        Gelu,
                        GeluTanh,
                        LogSigmoid,
                        LeakyRelu,
                        Elu,
                        Softplus,
                        Clamp>;
using BinaryOps = OpList<Add,
                         Sub,
                         Mul,
                         Div,
                         FloorDivide,
                         Remainder,
                         Fmod,
                         Pow,
                         Maximum,
                         Minimum,
                         Atan2,
                         Eq,
                         Ne,
                         Lt,
                         Le,
                         Gt,
                         Ge,
                         LogicalAnd,
                         LogicalOr,
                         LogicalXor>;
using OtherOps = OpList<Bitwise,
                        Not,
                        Where,
                        MaskedFill,  // logic
                        Sum,
                        Prod,
                        VarMean,
                        Std,
                        Norm,
                        LogSumExp,
                        Extreme,
                        ExtremeAlong,
                        ArgExtreme,
                        AnyAll,
                        Cumsum,
                        Cumprod,
                        Sort,
                        TopK,  // reductions
                        View,
                        Permute,
                        Expand,
                        Window,
                        StridedPart,
                        Embed,
                        ReplacePart,
                        Copy,
                        CopyInto,
                        Fill,
                        Cat,
                        Flip,
                        Pad,  // shapes
                        Index,
                        IndexPut,
                        Nonzero,
                        Gather,
                        Scatter,
                        IndexSelect,
                        IndexAdd,
                        Embedding,  // indexing
                        Matmul,
                        AddMatmul,
                        Linear,  // products
                        Softmax,
                        LogSoftmax,
                        Attention,
                        Lstm,
                        Gru,
                        LayerNorm,
                        BatchNorm,
                        NllLoss,
                        Huber,
                        BinaryCrossEntropy,
                        Conv2d,
                        Conv2dGradInput,
                        Conv2dGradWeight,
                        MaxPool2d,
                        MaxPool2dGrad,
                        AvgPool2d,
                        AvgPool2dGrad,
                        RandomFill,
                        Dropout>;  // networks

}  // namespace taper::ops
