# Dumps the OpInfo samples of the ops that Taper has or plans, a bounded number each, in double and in integers.
import zlib

from record import Group, Unsupported, encode
from samples import leaves, record_sample
from torch_setup import op_database, reset_seed, torch

ELEMENTWISE = """
add sub mul div true_divide floor_divide pow neg positive abs exp exp2 log log1p log2 log10 expm1 sqrt rsqrt sin cos
tan tanh sigmoid erf erfc reciprocal sign floor ceil round trunc frac clamp clamp_min clamp_max minimum maximum fmod
remainder atan atan2 asin acos sinh cosh asinh acosh atanh where masked_fill eq ne lt le gt ge logical_and logical_or
logical_not logical_xor bitwise_and bitwise_or bitwise_xor bitwise_not isnan isinf isfinite lerp addcmul addcdiv xlogy
logaddexp hypot nan_to_num rsub __radd__ __rsub__ __rmul__ __rdiv__ __rpow__ fmax fmin logit
"""
REDUCTIONS = """
sum mean prod var std var_mean std_mean amax amin max min argmax argmin any all norm linalg.vector_norm logsumexp
cumsum cumprod softmax log_softmax count_nonzero cummax cummin
"""
MATMUL = "matmul mm bmm mv dot addmm addmv addr addbmm baddbmm einsum outer inner tensordot __rmatmul__"
SHAPES = """
t transpose permute view view_as reshape reshape_as flatten squeeze unsqueeze expand expand_as broadcast_to repeat tile
narrow select slice __getitem__ split split_with_sizes chunk unbind cat stack hstack vstack diagonal diag diag_embed
tril triu flip roll unfold movedim gather scatter scatter_add index_select index_put index_fill index_add index_copy
masked_select masked_scatter take take_along_dim topk sort argsort as_strided clone contiguous to double float half
bfloat16 int long byte bool full_like zeros_like ones_like new_full new_zeros new_ones eye linspace arange zeros ones
repeat_interleave sum_to_size meshgrid nonzero unflatten ravel T mT kthvalue median
"""
NN = """
relu leaky_relu elu celu selu gelu silu mish softplus softsign logsigmoid hardtanh hardsigmoid hardswish relu6 prelu
tanhshrink softshrink hardshrink threshold glu softmin normalize layer_norm batch_norm group_norm instance_norm
embedding linear bilinear conv1d conv2d conv_transpose2d max_pool1d max_pool2d avg_pool1d avg_pool2d
adaptive_avg_pool1d adaptive_avg_pool2d cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss kl_div
binary_cross_entropy binary_cross_entropy_with_logits one_hot pad cosine_similarity pixel_shuffle unfold
"""

GROUPS = {
    "elementwise": ELEMENTWISE.split(),
    "reductions": REDUCTIONS.split(),
    "matmul": MATMUL.split(),
    "shapes": SHAPES.split(),
    "nn": ["nn.functional." + n for n in NN.split()],
}

# Variants left out, each with its reason.
EXCLUDED = {
    "norm.nuc": "needs a singular value decomposition",
    "nn.functional.silu.complex": "complex",
    "nn.functional.batch_norm.without_cudnn": "the same samples as batch_norm",
    "addmm.decomposed": "the same samples as addmm",
    "nn.functional.softmin.with_dtype": "the same rule as softmax.with_dtype",
}

SAMPLES = 26  # from sample_inputs
STRIDED = 7  # of those, again with non-contiguous inputs
REFERENCE = 14  # from reference_inputs: broadcasting, extremal values, odd strides; without gradients
INTEGER = 6
LIMIT = 1400  # elements of a sample, inputs and outputs together
LARGE = {"bmm": 2500, "baddbmm": 2500, "where": 2500, "nn.functional.adaptive_avg_pool2d": 2000, "nn.functional.glu": 2000}
FEW = {"to": 4, "double": 3, "diag_embed": 10}  # many samples of the same thing
# Ops whose result depends on the order of nearly equal numbers keep all 52 bits; the others have theirs cut.
EXACT = {"sort", "argsort", "topk", "kthvalue", "median", "cummax", "cummin", "argmax", "argmin", "max", "min"}
# Which of equal elements these pick is not specified, and integer samples are full of equal elements.
PICK_AMONG_EQUALS = {"topk", "kthvalue", "median"}
# PyTorch convolves and pools integers; a network's ops in Taper take floating types alone.
FLOATING_ONLY = {
    "nn.functional." + n
    for n in "conv1d conv2d conv_transpose2d avg_pool1d avg_pool2d linear bilinear".split()
}


def full_name(op):
    return op.name + ("." + op.variant_test_name if op.variant_test_name else "")


def spread(items, n):
    """At most n of the items, evenly spaced, first and last among them."""
    if len(items) <= n:
        return items
    return [items[round(i * (len(items) - 1) / (n - 1))] for i in range(n)]


def shorten(sample):
    """Cuts float inputs to 20 bits of mantissa, in place: random digits beyond are only bytes that do not compress."""
    for t in leaves([sample.input, sample.args, list(sample.kwargs.values())]):
        if t.dtype == torch.float64 and len(t.storage()):
            flat = torch.empty(0, dtype=t.dtype).set_(t.detach().storage(), 0, (len(t.storage()),), (1,))
            flat.view(torch.int64).bitwise_and_(-(2**32))


def small(sample):
    return sum(len(t.storage()) for t in leaves([sample.input, sample.args, list(sample.kwargs.values())])) <= LIMIT


def draw(make, n):
    try:
        return spread([s for s in make() if small(s)], n)
    except (RuntimeError, NotImplementedError, AssertionError, TypeError):
        return []


def is_strided_candidate(sample):
    return any(t.numel() > 1 for t in leaves([sample.input, sample.args]))


def collect(op):
    """(sample, kind) pairs of one op; kind tells how the sample was made."""
    found = []
    if torch.float64 in op.dtypes:
        grad = op.supports_autograd
        wanted = FEW.get(op.name, SAMPLES)
        plain = draw(lambda: op.sample_inputs("cpu", torch.float64, requires_grad=grad), wanted)
        found += [(s, "") for s in plain]
        strided = spread([s for s in plain if is_strided_candidate(s)], STRIDED)
        found += [(s.noncontiguous(), "strided") for s in strided]
        if op.reference_inputs_func is not None:
            found += [(s, "reference") for s in draw(lambda: op.reference_inputs("cpu", torch.float64), REFERENCE)]
    for dtype in (torch.int64, torch.bool):
        if dtype in op.dtypes and op.name not in PICK_AMONG_EQUALS | FLOATING_ONLY:
            found += [(s, "integer") for s in draw(lambda: op.sample_inputs("cpu", dtype), INTEGER)]
    return found


def plain_index(index):
    """An index as a tuple in which lists have become tensors: C++ has no index by list."""
    nested = isinstance(index, list) and any(isinstance(i, (slice, list, type(Ellipsis))) for i in index)
    parts = index if isinstance(index, tuple) or nested else (index,)
    return tuple(torch.tensor(list(i)) if isinstance(i, (list, tuple)) else i for i in parts)


def arguments(op, sample):
    if op.name == "__getitem__":
        return [sample.input, plain_index(sample.args[0])]
    return [sample.input, *sample.args]


def dump_op(group, op):
    """Records the op's samples; returns how many were kept and why others were not."""
    reset_seed(zlib.crc32(full_name(op).encode()) % 10000)
    kept, dropped = 0, {}
    limit = LARGE.get(op.name, LIMIT)
    for sample, kind in collect(op):
        try:
            if op.name not in EXACT:
                shorten(sample)
            args = arguments(op, sample)
            record_sample(group, op.name, op.variant_test_name, op, args, sample.kwargs, limit, kind)
            kept += 1
        except (Unsupported, RuntimeError, IndexError, ValueError, TypeError, NotImplementedError) as e:
            reason = f"{type(e).__name__}: {str(e)[:60]}"
            dropped[reason] = dropped.get(reason, 0) + 1
    return kept, dropped


def by_name():
    found = {}
    for op in op_database():
        if full_name(op) not in EXCLUDED:
            found.setdefault(op.name, []).append(op)
    return found


def dump(folder, counts):
    """Writes one group per family; counts gets the number of samples of each op."""
    known = by_name()
    for name, ops in GROUPS.items():
        group = Group("ops_" + name)
        for op in [op for wanted in ops for op in known[wanted]]:
            kept, dropped = dump_op(group, op)
            counts[full_name(op)] = counts.get(full_name(op), 0) + kept
            if kept == 0:
                print(f"  {full_name(op)}: nothing kept, {dropped}")
        group.write(folder)


def record_error(group, op, sample):
    """A line for a call that must throw; silently leaves out what does not throw in PyTorch or has no place here."""
    inputs = []
    if not isinstance(sample.input, (torch.Tensor, list, tuple)):
        return  # a number in place of the tensor: C++ has no such call
    try:
        args = [encode(a, inputs) for a in arguments(op, sample)]
        kwargs = {k: encode(v, inputs) for k, v in sample.kwargs.items()}
        records = [group.tensor(t) for t in inputs]
    except Unsupported:
        return
    if "out" in kwargs or sum(len(t.storage()) for t in inputs) > LIMIT:
        return
    try:
        op(sample.input, *sample.args, **sample.kwargs)
    except Exception:  # any exception is the point
        line = {"op": op.name, "args": args, "inputs": records, "throws": True}
        if op.variant_test_name:
            line["variant"] = op.variant_test_name
        if kwargs:
            line["kwargs"] = kwargs
        group.add(line)


def dump_errors(folder):
    """The calls that must be refused, from error_inputs of the same ops."""
    group = Group("errors")
    known = by_name()
    for op in [op for ops in GROUPS.values() for wanted in ops for op in known[wanted]]:
        reset_seed(1)
        if op.error_inputs_func is not None:
            for error in op.error_inputs("cpu"):
                shorten(error.sample_input)
                record_error(group, op, error.sample_input)
    group.write(folder)
