# LSTM, GRU and RNN modules in double, padded and packed: outputs, last states, every gradient.
import itertools
import math

from record import Group, cotangent, cotangent_values
from torch_setup import torch

INPUT, HIDDEN, TIME, BATCH = 3, 2, 4, 3
LENGTHS = [[4, 2, 1], [3, 3, 3], [1, 4, 2]]


def values(salt, *shape):
    """Multiples of 2^-14 in [-1, 1)."""
    noise = (cotangent_values(math.prod(shape), salt) * 2**14).round() / 2**14
    return noise.reshape(shape).requires_grad_()


def run(group, name, options, lengths, batched, given):
    module = getattr(torch.nn, name)(INPUT, HIDDEN, **options).double()
    params = dict(module.named_parameters())
    for salt, p in enumerate(params.values()):
        p.data.copy_(values(salt, *p.shape))
    first = options.get("batch_first", False)
    x = values(50, *((BATCH, TIME) if first else (TIME, BATCH)) if batched else (TIME,), INPUT)
    layers = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    states = [values(51 + i, layers, *(BATCH,) if batched else (), HIDDEN) for i in range(2 if name == "LSTM" else 1)]
    inputs = {"x": x} | ({f"h{i}": s for i, s in enumerate(states)} if given else {})
    hx = (tuple(states) if name == "LSTM" else states[0]) if given else None
    if lengths is None:
        y, last = module(x, hx)
    else:
        pack = torch.nn.utils.rnn.pack_padded_sequence(x, torch.tensor(lengths), first, enforce_sorted=False)
        y, last = module(pack, hx)
        y, _ = torch.nn.utils.rnn.pad_packed_sequence(y, first, padding_value=0.5)
    outputs = [y, *(last if name == "LSTM" else (last,))]
    wanted = inputs | params
    grads = torch.autograd.grad(outputs, wanted.values(), [cotangent(t, i) for i, t in enumerate(outputs)])
    dense = lambda t: group.tensor(t, False)
    group.add({
        "module": name,
        "options": options,
        "lengths": lengths,
        "inputs": {n: dense(t) for n, t in inputs.items()},
        "params": {n: dense(t) for n, t in params.items()},
        "outputs": [dense(t) for t in outputs],
        "grads": {n: dense(t) for n, t in zip(wanted, grads)},
    })


def dump(folder, counts):
    group = Group("recurrent")
    for name in ("LSTM", "GRU", "RNN"):
        sets = itertools.product((1, 2), (False, True), (False, True), (False, True))
        for i, (layers, both, bias, first) in enumerate(sets):
            options = {"num_layers": layers, "bidirectional": both, "bias": bias, "batch_first": first}
            if name == "RNN":
                options["nonlinearity"] = ("tanh", "relu")[i % 2]
            run(group, name, options, None, True, i % 3 != 0)
            run(group, name, options, LENGTHS[i % 3], True, i % 2 == 0)
        for both, given in itertools.product((False, True), (False, True)):
            run(group, name, {"bidirectional": both, "batch_first": both}, None, False, given)
    group.write(folder)
    counts["recurrent"] = len(group.lines)
