# Samples that OpInfo lacks: attention, slicing and assignment, casts, dropout without chance, norms of every order.
import itertools
import math

from record import Group, cotangent_values
from samples import record_sample
from torch_setup import torch

F = torch.nn.functional
LIMIT = 4000
f64 = torch.float64


def values(*shape, salt=0, grad=True, scale=2.0):
    """A tensor of fixed pseudo-random numbers in [-scale, scale) with few mantissa bits."""
    n = math.prod(shape)
    coarse = (cotangent_values(n, salt) * 2**14).round() / 2**14
    return (coarse * scale).reshape(shape).clone().requires_grad_(grad)


def attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False):
    """softmax(q k^T / sqrt(d) + mask) v, written out; a boolean mask keeps where true."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if is_causal:
        keep = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril()
        scores = scores.masked_fill(~keep, -math.inf)
    if attn_mask is not None:
        if attn_mask.dtype == torch.bool:
            scores = scores.masked_fill(~attn_mask, -math.inf)
        else:
            scores = scores + attn_mask
    return scores.softmax(-1) @ v


def attention_samples(add):
    shapes = [(2, 3, 4), (1, 1, 1), (5, 4), (2, 3, 5, 4), (2, 2, 7, 8), (3, 1, 4)]
    for i, shape in enumerate(shapes):
        for causal in (False, True):
            qkv = [values(*shape, salt=10 * i + j) for j in range(3)]
            add("nn.functional.scaled_dot_product_attention", attention, qkv, {"is_causal": causal})
    query, memory = (2, 3, 4), (2, 5, 4)
    boolean = torch.arange(15).reshape(3, 5) % 4 != 1
    for mask in (boolean, boolean.expand(2, 3, 5), values(3, 5, salt=7), values(2, 3, 5, salt=8)):
        args = [values(*query, salt=1), values(*memory, salt=2), values(*memory, salt=3), mask]
        add("nn.functional.scaled_dot_product_attention", attention, args, {})
    strided = [values(2, 5, 3, 4, salt=20 + j).transpose(1, 2) for j in range(3)]  # (B, T, H, C) seen as (B, H, T, C)
    strided = [t.detach().requires_grad_() for t in strided]
    add("nn.functional.scaled_dot_product_attention", attention, strided, {"is_causal": True})


INDEX_PATTERNS = [
    (0,),
    (-1,),
    (slice(1, None),),
    (slice(None, -1), slice(0, 4, 2)),
    (Ellipsis, 1),
    (Ellipsis, None),
    (None, 1, Ellipsis, slice(None, None, 3)),
    (slice(5, 9),),
    (slice(-100, 2),),
    (slice(2, 1),),
    (torch.tensor([1, 0, 1]),),
    (torch.tensor([[1, 0], [0, -1]]),),
    (slice(None), torch.tensor([2, 2, 0])),
    (torch.tensor([0, 1]), torch.tensor([2, 0])),
    (torch.tensor([0, 1]), slice(None), torch.tensor([3, 0])),
    (slice(None), torch.tensor([[0], [2]]), torch.tensor([1, 3])),
    (torch.tensor([True, False]),),
    (slice(None), torch.tensor([True, False, True])),
    (torch.tensor([True, False]), torch.tensor([1])),
    (1, torch.tensor([0, 2]), slice(1, 3)),
    (torch.tensor([], dtype=torch.int64),),
    (None, torch.tensor([1, 1]), None, Ellipsis),
]


def assign(x, index, value):
    y = x.clone()
    y[tuple(index)] = value
    return y


def index_samples(add):
    mask = torch.arange(24).reshape(2, 3, 4) % 5 == 0
    for i, pattern in enumerate(INDEX_PATTERNS + [(mask,), (mask[:, :, 0],)]):
        x = values(2, 3, 4, salt=i)
        add("__getitem__", lambda t, index: t[tuple(index)], [x, list(pattern)], {})
        turned = values(4, 3, 2, salt=i).detach().permute(2, 1, 0).requires_grad_()
        add("__getitem__", lambda t, index: t[tuple(index)], [turned, list(pattern)], {}, "strided")
        picked = x.detach()[pattern]
        repeated = any(isinstance(p, torch.Tensor) and p.dtype == torch.int64 for p in pattern)
        if not repeated:  # the winner among repeated positions is not defined
            add("setitem", assign, [x, list(pattern), values(*picked.shape, salt=100 + i)], {})
        add("setitem", assign, [x, list(pattern), 2.5], {})


def cast_samples(add):
    fractions = torch.tensor([0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.7, 3.99, 100.25, 1 / 3, 127.0, 200.75], dtype=f64)
    halves = torch.tensor([65504.0, 65519.9, 65520.0, 1e-8, 6e-8, 3e-8, 2049.0, 2051.0, math.inf, -math.inf, math.nan], dtype=f64)
    bfloats = torch.tensor([1.00390625, 1.01171875, 3.3895e38, 3.4e38, 1e-40, 257.0, 259.0, -1 / 3, math.nan], dtype=f64)
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.bool):
        add("to", torch.Tensor.to, [fractions.clone().requires_grad_(), dtype], {})
    add("to", torch.Tensor.to, [fractions.abs(), torch.uint8], {})
    for source, dtype in itertools.product((halves, bfloats), (torch.float32, torch.float16, torch.bfloat16)):
        add("to", torch.Tensor.to, [source, dtype], {})
        add("to", lambda x, d: x.float().to(d), [source, dtype], {}, "through f32")
    whole = torch.tensor([0, 1, -1, 255, 256, -129, 2**31, 2**53 + 1, -(2**63)])
    for dtype in (torch.float64, torch.float32, torch.float16, torch.int32, torch.uint8, torch.bool):
        add("to", torch.Tensor.to, [whole, dtype], {})


def small_samples(add):
    for shape in ((), (5,), (2, 3), (0, 2)):
        add("square", torch.square, [values(*shape, salt=1)], {})
        add("nn.functional.dropout", F.dropout, [values(*shape, salt=2)], {"p": 0.5, "training": False})
        add("nn.functional.dropout", F.dropout, [values(*shape, salt=3)], {"p": 0.0, "training": True})
        add("nn.functional.dropout", F.dropout, [values(*shape, salt=4)], {"p": 1.0, "training": True})
    for p, dims in itertools.product((0, 1, 1.5, 2, 3, math.inf, -math.inf), (None, [0], [1], [-1, 0])):
        for keep in (False, True) if dims else (False,):
            x = values(3, 4, salt=5)
            args = [x, p] if dims is None else [x, p, dims, keep]
            add("norm", torch.Tensor.norm, args, {})
    for low, high in ((-0.5, 0.75), (None, 0.5), (0, None), (1, -1), (-math.inf, math.inf)):
        add("clamp", torch.clamp, [values(2, 5, salt=6), low, high], {})
        add("clamp", torch.clamp, [torch.arange(-3, 4), low, high], {}, "integer")
    condition = torch.tensor([[True, False, True]])
    choose = lambda x, c, y: torch.where(c, x, y)  # the order of OpInfo: self, condition, other
    add("where", choose, [values(2, 3, salt=1), condition, 3.5], {})
    add("where", choose, [-1.5, condition, values(2, 1, salt=2)], {})
    add("kron", torch.kron, [values(2, 3, salt=1), values(3, 2, salt=2)], {})
    add("kron", torch.kron, [values(2, salt=1), values(3, 1, 2, salt=2)], {})
    add("bmm", torch.bmm, [values(2, 3, 4, salt=1), values(2, 4, 5, salt=2)], {})
    add("bmm", torch.bmm, [values(2, 3, 0, salt=1), values(2, 0, 5, salt=2)], {})
    turned = values(2, 4, 3, salt=1).detach().transpose(1, 2).requires_grad_()
    add("bmm", torch.bmm, [turned, values(2, 4, 5, salt=2)], {}, "strided")
    for beta in (0.0, 0.3, 1.0):
        args = [values(2, 4, salt=1), values(2, 4, salt=2)]
        add("nn.functional.smooth_l1_loss", F.smooth_l1_loss, args, {"beta": beta})
    for step, keep in itertools.product((1, 2), (1, 3)):
        add("unfold", torch.Tensor.unfold, [values(2, 5, salt=keep), 1, keep, step], {})


def pool_samples(add):
    x = values(2, 3, 6, 5, salt=9)
    for kernel, stride, padding in ((2, None, 0), ([3, 2], 1, [1, 0]), (3, 2, 1), ([2, 3], [1, 2], [1, 1])):
        add("nn.functional.max_pool2d", F.max_pool2d, [x, kernel, stride, padding], {})
        add("nn.functional.avg_pool2d", F.avg_pool2d, [x, kernel, stride, padding], {})
        add("nn.functional.avg_pool2d", F.avg_pool2d, [x, kernel, stride, padding], {"count_include_pad": False})
    for size in (1, 2, [3, 2], [None, 4], [6, 5]):
        add("nn.functional.adaptive_avg_pool2d", F.adaptive_avg_pool2d, [x, size], {})
    weight, bias = values(4, 3, 3, 2, salt=1), values(4, salt=2)
    for stride, padding, dilation in ((1, 0, 1), (2, 1, 1), ([1, 2], [2, 0], [2, 1])):
        add("nn.functional.conv2d", F.conv2d, [x, weight, bias, stride, padding, dilation], {})
    grouped = values(6, 1, 3, 3, salt=3)
    add("nn.functional.conv2d", F.conv2d, [x, grouped, None, 1, 1, 1, 3], {})
    wide = values(2, 6, 5, 3, salt=4).detach().permute(0, 3, 1, 2).requires_grad_()  # channels last in memory
    add("nn.functional.conv2d", F.conv2d, [wide, weight, bias], {}, "strided")


def dump(folder, counts):
    group = Group("ops_own")

    def add(name, call, args, kwargs, kind=""):
        record_sample(group, name, "", call, args, kwargs, LIMIT, kind)
        counts[name] = counts.get(name, 0) + 1

    for section in (attention_samples, index_samples, cast_samples, small_samples, pool_samples):
        section(add)
    group.write(folder)
