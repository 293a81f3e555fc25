# The edge table: ties, zeros, infinities, empties and refusals, with the right value where PyTorch 1.13 gives another.
import json
import os

from own_samples import attention
from record import DTYPES, encode, number
from samples import gradients, leaves
from torch_setup import torch

F = torch.nn.functional
nan, inf = float("nan"), float("inf")


def t(data, grad=True, dtype=torch.float64):
    return torch.tensor(data, dtype=dtype).requires_grad_(grad and dtype == torch.float64)


def ints(data):
    return torch.tensor(data)


def inline(x):
    """A tensor's record with its values in the text, so that the table can be read."""
    if x is None:
        return None
    return {"dtype": DTYPES[x.dtype], "shape": list(x.shape), "values": [number(v) for v in x.detach().flatten().tolist()]}


class Table:
    def __init__(self):
        self.rows = []

    def row(self, note, op, call, *args, right=None, grads=None, check_grads=True, **kwargs):
        """Asks PyTorch; right and grads replace its answer. Gradients are for a cotangent of ones."""
        inputs = []
        coded = [encode(a, inputs) for a in args]
        line = {"note": note, "op": op, "args": coded}
        if kwargs:
            line["kwargs"] = {k: encode(v, inputs) for k, v in kwargs.items()}
        line["inputs"] = [inline(x) | {"grad": x.requires_grad} for x in inputs]
        outputs = leaves(call(*args, **kwargs))
        found = []
        if check_grads and grads is None:
            found = gradients(outputs, inputs, lambda o, _: torch.ones_like(o))
        line["outputs"] = [inline(o) for o in (right or outputs)]
        if grads is not None or any(g is not None for g in found):
            line["grads"] = [inline(g) for g in (grads or found)]
        if right or grads:
            line["differs"] = True
        self.rows.append(line)

    def throws(self, note, op, call, *args, **kwargs):
        inputs = []
        line = {"note": note, "op": op, "args": [encode(a, inputs) for a in args], "throws": True}
        if kwargs:
            line["kwargs"] = {k: encode(v, inputs) for k, v in kwargs.items()}
        line["inputs"] = [inline(x) | {"grad": x.requires_grad} for x in inputs]
        try:
            call(*args, **kwargs)
        except Exception:
            self.rows.append(line)
        else:
            raise AssertionError(f"{note}: did not throw")


def zeros_and_ties(e):
    T = torch.Tensor
    e.row("norm has gradient 0 at 0", "norm", T.norm, t([0.0, 0.0]))
    e.row("std of constants has gradient 0", "std", T.std, t([1.0, 1.0, 1.0]))
    e.row("std of one element is nan, and so is its gradient", "std", T.std, t([1.0]), grads=[t([nan])])
    e.row("var of one element is nan, and so is its gradient", "var", T.var, t([1.0]), grads=[t([nan])])
    e.row("prod with one zero", "prod", T.prod, t([4.0, 0.0]))
    e.row("prod with two zeros", "prod", T.prod, t([0.0, 0.0, 3.0]))
    e.row("cumprod with a zero", "cumprod", T.cumprod, t([2.0, 0.0, 3.0]), 0)
    for exponent in (0.0, 2.0, 0.5, 1.0, -1.0):
        e.row(f"0 to the power of {exponent}", "pow", torch.pow, t([0.0]), t([exponent]))
    e.row("negative base, whole exponent", "pow", torch.pow, t([-2.0, -2.0]), 3.0)
    e.row("negative base, fractional exponent", "pow", torch.pow, t([-2.0]), t([0.5]), check_grads=False)
    e.row("abs at 0", "abs", T.abs, t([0.0]))
    e.row("relu at 0", "nn.functional.relu", F.relu, t([0.0]))
    e.row("full max shares among ties", "max", torch.max, t([1.0, 3.0, 3.0]))
    e.row("full min shares among ties", "min", torch.min, t([1.0, 1.0, 3.0]))
    e.row("max along a dim gives all to one", "max", torch.max, t([1.0, 3.0, 3.0]), 0)
    e.row("amax shares among ties", "amax", torch.amax, t([1.0, 3.0, 3.0]), 0)
    e.row("maximum shares among ties", "maximum", torch.maximum, t([3.0]), t([3.0]))
    e.row("minimum shares among ties", "minimum", torch.minimum, t([3.0]), t([3.0]))
    e.row("clamp has gradient 1 at both ends", "clamp", torch.clamp, t([0.0, 0.5, 1.0, 2.0]), 0, 1)
    e.row("max_pool gives a tie to the first", "nn.functional.max_pool2d", F.max_pool2d, t([[[[2.0, 2.0], [2.0, 2.0]]]]), 2)
    e.row("atan2 at the origin", "atan2", torch.atan2, t([0.0]), t([0.0]))
    e.row("xlogy at the origin", "xlogy", torch.xlogy, t([0.0]), t([0.0]))
    e.row("xlogy of 0 and nan", "xlogy", torch.xlogy, t([0.0]), t([nan]), check_grads=False)
    e.row("division by zero", "div", torch.div, t([1.0, -1.0, 0.0]), 0.0, check_grads=False)


def infinities(e):
    T = torch.Tensor
    e.row("softmax of a row of -inf is nan", "softmax", torch.softmax, t([-inf, -inf]), -1, check_grads=False)
    e.row("softmax with one -inf", "softmax", torch.softmax, t([1.0, -inf]), -1)
    e.row("log_softmax with -inf", "log_softmax", torch.log_softmax, t([1.0, -inf]), -1)
    e.row("logsumexp of -inf only: gradient 0", "logsumexp", torch.logsumexp, t([-inf, -inf]), 0, grads=[t([0.0, 0.0])])
    e.row("logsumexp with inf", "logsumexp", torch.logsumexp, t([inf, 1.0]), 0, check_grads=False)
    e.row("softmax of large numbers", "softmax", torch.softmax, t([1000.0, 1001.0]), 0)
    e.row("sigmoid far out", "sigmoid", torch.sigmoid, t([-1000.0, 1000.0]))
    e.row("logsigmoid far out", "nn.functional.logsigmoid", F.logsigmoid, t([-1000.0, 1000.0]))
    e.row("softplus far out", "nn.functional.softplus", F.softplus, t([-1000.0, 1000.0]))
    e.row("tanh far out", "tanh", torch.tanh, t([-1000.0, 1000.0]))
    e.row("gelu far out", "nn.functional.gelu", F.gelu, t([-100.0, 100.0]))
    e.row("silu far out", "nn.functional.silu", F.silu, t([-1000.0, 1000.0]))
    e.row("log1p of a tiny number", "log1p", torch.log1p, t([1e-20]))
    e.row("expm1 of a tiny number", "expm1", torch.expm1, t([1e-20]))
    e.row("bce of certain and wrong", "nn.functional.binary_cross_entropy", F.binary_cross_entropy, t([0.0]), t([1.0], False))
    with_logits = F.binary_cross_entropy_with_logits
    name = "nn.functional.binary_cross_entropy_with_logits"
    e.row("bce with logits far out", name, with_logits, t([-1000.0, 1000.0]), t([1.0, 1.0], False), reduction="none")
    q, mask = t([[[1.0, 2.0]]]), torch.tensor([[False, False]])
    k, v = t([[[1.0, 0.0], [0.0, 1.0]]]), t([[[1.0, 2.0], [3.0, 4.0]]])
    zero = [torch.zeros_like(x) for x in (q, k, v)] + [None]
    name = "nn.functional.scaled_dot_product_attention"
    e.row("a fully masked row of attention is 0", name, attention, q, k, v, mask, right=[t([[[0.0, 0.0]]])], grads=zero)
    e.row("max keeps nan", "max", torch.max, t([1.0, nan, 2.0], False))
    e.row("max along a dim keeps nan and its index", "max", torch.max, t([1.0, nan, 2.0], False), 0)
    e.row("argmax finds nan", "argmax", torch.argmax, t([1.0, nan, 2.0], False))
    e.row("argmin finds nan", "argmin", torch.argmin, t([1.0, nan, 0.0], False))
    e.row("maximum keeps nan", "maximum", torch.maximum, t([nan, 1.0], False), t([1.0, nan], False))
    e.row("fmax drops nan", "fmax", torch.fmax, t([nan, 1.0], False), t([1.0, nan], False))
    e.row("sort puts nan last", "sort", torch.sort, t([1.0, nan, -inf, inf], False))
    e.row("descending sort puts nan first", "sort", torch.sort, t([1.0, nan, -inf, inf], False), 0, True)
    e.row("topk counts nan as largest", "topk", torch.topk, t([1.0, nan, 2.0], False), 2)
    e.row("clamp keeps nan", "clamp", torch.clamp, t([nan], False), 0, 1)
    e.row("relu keeps nan", "nn.functional.relu", F.relu, t([nan], False))
    e.row("max_pool keeps nan", "nn.functional.max_pool2d", F.max_pool2d, t([[[[1.0, nan], [0.0, 2.0]]]], False), 2)
    e.row("sign of 0 and infinities", "sign", T.sign, t([0.0, -inf, inf], False))
    e.row("isfinite", "isfinite", torch.isfinite, t([0.0, nan, inf, -inf], False))
    e.row("eq with nan", "eq", torch.eq, t([nan], False), t([nan], False))


def empties(e):
    T = torch.Tensor
    empty = torch.zeros(0, dtype=torch.float64)
    rows = torch.zeros(0, 3, dtype=torch.float64)
    for name in ("sum", "mean", "prod", "var", "norm"):
        e.row(f"{name} of nothing", name, getattr(T, name), empty)
    e.row("any of nothing", "any", torch.any, torch.zeros(0, dtype=torch.bool))
    e.row("all of nothing", "all", torch.all, torch.zeros(0, dtype=torch.bool))
    e.row("max over a full dim of an empty tensor", "max", torch.max, rows, 1)
    e.row("sum over an empty dim", "sum", T.sum, rows, [0])
    e.row("logsumexp over an empty dim", "logsumexp", torch.logsumexp, rows, 0)
    e.row("softmax over an empty dim", "softmax", torch.softmax, rows, 0)
    e.row("matmul with inner size 0", "matmul", torch.matmul, torch.zeros(2, 0).double(), rows)
    e.row("reshape of an empty tensor infers", "reshape", torch.reshape, rows, [3, -1])
    e.row("conv2d of an empty batch", "nn.functional.conv2d", F.conv2d, torch.zeros(0, 3, 4, 4).double(), torch.ones(2, 3, 3, 3).double())
    e.row("cat skips a flat empty tensor", "cat", torch.cat, [rows.new_zeros(0), torch.ones(2, 3).double()], 0)
    e.row("linspace of one step", "linspace", torch.linspace, 3.0, 9.0, 1, dtype=torch.float64)
    e.row("linspace of no step", "linspace", torch.linspace, 3.0, 9.0, 0, dtype=torch.float64)
    e.throws("amax over an empty dim", "amax", torch.amax, rows, 0)
    e.throws("max of nothing", "max", torch.max, empty)
    e.throws("argmax of nothing", "argmax", torch.argmax, empty)
    e.throws("reshape to -1 beside 0 is ambiguous", "reshape", torch.reshape, rows, [-1, 0])
    e.throws("arange with step 0", "arange", torch.arange, 0, 3, 0)


def losses(e):
    logits = t([[1.0, -2.0, 0.5], [0.25, 3.0, -1.0]])
    name, call = "nn.functional.cross_entropy", F.cross_entropy
    ignored = ints([-100, -100])
    zero = [torch.zeros_like(logits), None]
    e.row("mean over ignored targets only is nan, gradient 0", name, call, logits, ignored, grads=zero)
    e.row("sum over ignored targets only", name, call, logits, ignored, reduction="sum")
    e.row("each of ignored targets", name, call, logits, ignored, reduction="none")
    e.row("ignore_index 255", name, call, logits, ints([255, 1]), ignore_index=255, reduction="none")
    e.row("a class that is ignored stays in the denominator", name, call, logits, ints([0, 1]), ignore_index=0)
    e.row("no rows at all", name, call, torch.zeros(0, 3).double(), ints([]).long())
    e.row("large logits", name, call, t([[1000.0, -1000.0]]), ints([1]))
    e.throws("a target outside the classes", name, call, logits, ints([-4, 0]))
    e.throws("a target past the classes", name, call, logits, ints([0, 3]))
    weight = t([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]])
    name, call = "nn.functional.embedding", F.embedding
    e.row("padding_idx gets no gradient", name, call, ints([1, 1, 2]), weight, padding_idx=1)
    e.row("repeated indices add up", name, call, ints([1, 1, 2]), weight)
    e.throws("an index past the table", name, call, ints([4]), weight)
    e.throws("batch_norm of one value per channel", "nn.functional.batch_norm", F.batch_norm, t([[1.0, 2.0]]), None, None, training=True)
    e.throws("index_select out of range", "index_select", torch.index_select, weight, 0, ints([4]))
    e.throws("gather out of range", "gather", torch.gather, weight, 0, ints([[4, 0]]))
    e.throws("indexing out of range", "__getitem__", lambda x, i: x[tuple(i)], weight, [ints([4])])
    e.throws("one_hot out of range", "nn.functional.one_hot", F.one_hot, ints([3]), 3)


def whole_numbers(e):
    e.row("floor division rounds down", "floor_divide", torch.floor_divide, ints([-7, 7, -7, 7]), ints([2, 2, -2, -2]))
    e.row("remainder has the divisor's sign", "remainder", torch.remainder, ints([-7, 7, -7, 7]), ints([2, 2, -2, -2]))
    e.row("fmod has the dividend's sign", "fmod", torch.fmod, ints([-7, 7, -7, 7]), ints([2, 2, -2, -2]))
    e.row("float remainder", "remainder", torch.remainder, t([-7.5, 7.5, -0.5], False), t([2.0, -2.0, 1.0], False))
    e.row("float floor division by 0", "floor_divide", torch.floor_divide, t([1.0, -1.0, 0.0], False), 0.0)
    e.row("whole division gives float", "div", torch.div, ints([1, -1, 0]), ints([0, 0, 0]))
    e.row("rounding goes to even", "round", torch.round, t([0.5, 1.5, 2.5, -0.5, -1.5], False))
    e.row("whole power", "pow", torch.pow, ints([-2, 2, 0]), 3)
    e.row("bool sum counts", "sum", torch.sum, torch.tensor([True, True, False]))
    e.row("u8 sum widens", "sum", torch.sum, torch.full((2,), 200, dtype=torch.uint8))
    e.row("u8 addition wraps", "add", torch.add, torch.tensor([200], dtype=torch.uint8), torch.tensor([100], dtype=torch.uint8))
    e.throws("whole division by 0", "floor_divide", torch.floor_divide, ints([1]), ints([0]))
    e.throws("whole remainder by 0", "remainder", torch.remainder, ints([1]), ints([0]))
    e.throws("whole base, negative whole exponent", "pow", torch.pow, ints([2]), -1)
    e.throws("bool subtraction", "sub", torch.sub, torch.tensor([True]), torch.tensor([True]))
    e.throws("negative strides", "as_strided", torch.as_strided, t([0.0, 1.0], False), [2], [-1], 1)
    e.throws("strides past the storage", "as_strided", torch.as_strided, t([0.0, 1.0], False), [2], [2], 0)


def dump(folder, counts):
    table = Table()
    for section in (zeros_and_ties, infinities, empties, losses, whole_numbers):
        section(table)
    with open(os.path.join(folder, "edge.json"), "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(r, separators=(",", ":"), allow_nan=False) for r in table.rows) + "\n]\n")
    counts["edge"] = len(table.rows)
