# The result dtype of every pair of our dtypes, as tensors, 0-dim tensors and Python scalars, and what must be refused.
import itertools
import json
import os

from record import DTYPES
from torch_setup import torch

OURS = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool]
SCALARS = {"bool": True, "int": 2, "float": 1.5}

BINARY = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "floor_divide": torch.floor_divide,
    "remainder": torch.remainder,
    "pow": torch.pow,
    "eq": torch.eq,
    "lt": torch.lt,
    "logical_and": torch.logical_and,
    "maximum": torch.maximum,
    "add_": lambda a, b: a.add_(b),
    "mul_": lambda a, b: a.mul_(b),
    "div_": lambda a, b: a.div_(b),
}
TENSORS_ONLY = {"maximum", "logical_and"}
UNARY = {
    "neg": torch.neg,
    "abs": torch.abs,
    "exp": torch.exp,
    "sqrt": torch.sqrt,
    "sigmoid": torch.sigmoid,
    "floor": torch.floor,
    "sign": torch.sign,
    "logical_not": torch.logical_not,
    "sum": torch.sum,
    "prod": torch.prod,
    "cumsum": lambda x: torch.cumsum(x, 0),
    "mean": torch.mean,
    "var": torch.var,
    "amax": torch.amax,
    "max": torch.max,
    "argmax": torch.argmax,
    "any": torch.any,
    "softmax": lambda x: torch.softmax(x, 0),
    "relu": torch.relu,
    "reciprocal": torch.reciprocal,
    "ones_like": torch.ones_like,
    "cat_f32": lambda x: torch.cat([x, torch.ones(1)]),
    "where_scalar": lambda x: torch.where(x == 0, x, torch.ones((), dtype=torch.float64)),
}


def operand(kind, dtype):
    return torch.ones((2,) if kind == "tensor" else (), dtype=dtype)


def result(call, *args):
    """A dtype, "throws", or None where PyTorch merely lacks a kernel and so says nothing about the rule."""
    try:
        return DTYPES[call(*args).dtype]
    except (RuntimeError, TypeError, NotImplementedError) as e:
        return None if "not implemented for" in str(e) else "throws"


def binary_rows():
    """[op, left kind, left dtype, right kind, right dtype or null, result dtype, "throws" or null]"""
    for (name, call), left_kind, left in itertools.product(BINARY.items(), ("tensor", "scalar tensor"), OURS):
        for right_kind, right in itertools.product(("tensor", "scalar tensor"), OURS):
            found = result(call, operand(left_kind, left), operand(right_kind, right))
            yield [name, left_kind, DTYPES[left], right_kind, DTYPES[right], found]
        if name in TENSORS_ONLY:
            continue
        for kind, scalar in SCALARS.items():
            yield [name, left_kind, DTYPES[left], kind, None, result(call, operand(left_kind, left), scalar)]


def dump(folder, counts):
    table = {
        "binary": list(binary_rows()),
        "unary": [[n, DTYPES[d], result(call, operand("tensor", d))] for n, call in UNARY.items() for d in OURS],
        "promote_types": [[DTYPES[a], DTYPES[b], DTYPES[torch.promote_types(a, b)]] for a in OURS for b in OURS],
    }
    with open(os.path.join(folder, "promotion.json"), "w") as f:
        parts = [f'"{k}":[\n' + ",\n".join(json.dumps(r, separators=(",", ":")) for r in v) + "\n]" for k, v in table.items()]
        f.write("{" + ",\n".join(parts) + "}\n")
    counts["promotion"] = sum(map(len, table.values()))
