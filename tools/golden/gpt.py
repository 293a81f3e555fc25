# A four-layer GPT in double: parameters, logits, loss, every gradient, and the parameters after each of ten AdamW steps.
import math

from record import Group, cotangent_values
from torch_setup import torch

F = torch.nn.functional
VOCAB, TIME, WIDTH, HEADS, LAYERS, BATCH, STEPS = 65, 16, 32, 4, 4, 2, 10
ADAMW = {"lr": 1e-3, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1}


def shapes():
    """Name -> shape, in the order in which the parameters stand in the file. Linear weights are (out, in)."""
    found = {"token.weight": (VOCAB, WIDTH), "position.weight": (TIME, WIDTH)}
    for i in range(LAYERS):
        for name, shape in {
            "norm1.weight": (WIDTH,),
            "norm1.bias": (WIDTH,),
            "qkv.weight": (3 * WIDTH, WIDTH),
            "qkv.bias": (3 * WIDTH,),
            "proj.weight": (WIDTH, WIDTH),
            "proj.bias": (WIDTH,),
            "norm2.weight": (WIDTH,),
            "norm2.bias": (WIDTH,),
            "up.weight": (4 * WIDTH, WIDTH),
            "up.bias": (4 * WIDTH,),
            "down.weight": (WIDTH, 4 * WIDTH),
            "down.bias": (WIDTH,),
        }.items():
            found[f"block{i}.{name}"] = shape
    return found | {"norm.weight": (WIDTH,), "norm.bias": (WIDTH,), "head.weight": (VOCAB, WIDTH)}


def initial(name, shape, salt):
    """Multiples of 2^-14 with a spread of 0.1; norm weights near one."""
    noise = (cotangent_values(math.prod(shape), salt) * 0.1 * 2**14).round() / 2**14
    return (noise + ("norm" in name and name.endswith("weight"))).reshape(shape).requires_grad_()


def block(p, name, x):
    b, t, c = x.shape
    h = F.layer_norm(x, (c,), p[name + "norm1.weight"], p[name + "norm1.bias"])
    qkv = F.linear(h, p[name + "qkv.weight"], p[name + "qkv.bias"])
    q, k, v = (s.view(b, t, HEADS, c // HEADS).transpose(1, 2) for s in qkv.split(c, 2))
    scores = q @ k.transpose(-2, -1) / math.sqrt(c // HEADS)
    scores = scores.masked_fill(~torch.ones(t, t, dtype=torch.bool).tril(), -math.inf)
    mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c)
    x = x + F.linear(mixed, p[name + "proj.weight"], p[name + "proj.bias"])
    h = F.layer_norm(x, (c,), p[name + "norm2.weight"], p[name + "norm2.bias"])
    h = F.gelu(F.linear(h, p[name + "up.weight"], p[name + "up.bias"]))
    return x + F.linear(h, p[name + "down.weight"], p[name + "down.bias"])


def logits_of(p, ids):
    x = F.embedding(ids, p["token.weight"]) + p["position.weight"]
    for i in range(LAYERS):
        x = block(p, f"block{i}.", x)
    return F.linear(F.layer_norm(x, (WIDTH,), p["norm.weight"], p["norm.bias"]), p["head.weight"])


def digest(t):
    """Sum, sum of squares, first and last value: enough to name the first step and parameter that go astray."""
    flat = t.detach().flatten()
    return [flat.sum().item(), flat.square().sum().item(), flat[0].item(), flat[-1].item()]


def dump(folder, counts):
    group = Group("gpt")
    params = {name: initial(name, shape, i) for i, (name, shape) in enumerate(shapes().items())}
    text = (torch.arange(BATCH * (TIME + 1)) * 37 + 11) % VOCAB
    text = text.reshape(BATCH, TIME + 1)
    ids, targets = text[:, :-1].contiguous(), text[:, 1:].contiguous()
    group.add({
        "config": {"vocab": VOCAB, "time": TIME, "width": WIDTH, "heads": HEADS, "layers": LAYERS},
        "adamw": ADAMW,
        "ids": group.tensor(ids, False),
        "targets": group.tensor(targets, False),
        "params": {n: group.tensor(p, False) for n, p in params.items()},
    })
    optimizer = torch.optim.AdamW(params.values(), foreach=False, **ADAMW)
    for step in range(STEPS + 1):
        optimizer.zero_grad()
        logits = logits_of(params, ids)
        loss = F.cross_entropy(logits.reshape(-1, VOCAB), targets.reshape(-1))
        loss.backward()
        line = {"step": step, "loss": loss.item(), "digest": {n: digest(p) for n, p in params.items()}}
        if step == 0:
            line["logits"] = group.tensor(logits, False)
            line["grads"] = {n: group.tensor(p.grad, False) for n, p in params.items()}
        if step == STEPS:
            line["params"] = {n: group.tensor(p, False) for n, p in params.items()}
        group.add(line)
        optimizer.step()
    group.write(folder)
    counts["gpt"] = STEPS + 1
