#!/usr/bin/env python3
"""A current PyTorch's side of the groups train and kernels: torch_peer.py GROUP.

Reads a row's name from each line and writes "name<TAB>seconds", "nan" for a row that it does not know; the names are
those of benchmarks/train.cpp and benchmarks/kernels.cpp.
"""
import gzip
import math
import os
import pathlib
import struct
import sys
import time

import torch
from torch import nn
import torch.nn.functional as F

KERNELS = {
    "add": lambda o: o.x + o.y,
    "mul": lambda o: o.x * o.y,
    "div": lambda o: o.x / o.y,
    "add a row": lambda o: o.x + o.row,
    "relu": lambda o: torch.relu(o.x),
    "where": lambda o: torch.where(o.mask, o.x, o.y),
    "sum of all": lambda o: o.x.sum(),
    "sum, last dim": lambda o: o.x.sum(-1),
    "sum, first dim": lambda o: o.x.sum(0),
    "clone": lambda o: o.x.clone(),
    "copy to bf16": lambda o: o.x.to(torch.bfloat16),
    "copy, first two of 3 dims swapped": lambda o: o.volume.transpose(0, 1).contiguous(),
    "copy, transposed": lambda o: o.x.t().contiguous(),
    "exp": lambda o: torch.exp(o.x),
    "sigmoid": lambda o: torch.sigmoid(o.x),
    "tanh": lambda o: torch.tanh(o.x),
    "gelu": lambda o: F.gelu(o.x),
    "gelu, by tanh": lambda o: F.gelu(o.x, approximate="tanh"),
    "softmax, last dim": lambda o: torch.softmax(o.x, -1),
    "softmax, first dim": lambda o: torch.softmax(o.x, 0),
    "softmax, middle dim": lambda o: torch.softmax(o.volume, 1),
    "layer_norm": lambda o: F.layer_norm(o.x, o.x.shape[1:], o.row, o.row),
    "layer_norm of 256": lambda o: F.layer_norm(o.narrow, o.narrow.shape[1:], o.short_row, o.short_row),
    "batch_norm": lambda o: F.batch_norm(o.volume, None, None, o.channels, o.channels, True),
    "group_norm": lambda o: F.group_norm(o.volume, 2, o.channels, o.channels),
    "var, last dim": lambda o: torch.var(o.x, -1),
    "var, first dim": lambda o: torch.var(o.x, 0),
    "dropout": lambda o: F.dropout(o.x, 0.1, True),
    "uniform": lambda o: torch.rand(o.x.shape),
    "normal": lambda o: torch.randn(o.x.shape),
    "argmax, last dim": lambda o: o.x.argmax(1),
    "cumsum, last dim": lambda o: torch.cumsum(o.x, 1),
}


class Operands:
    def __init__(self, size):
        count = size // 4
        log = count.bit_length() - 1
        columns = 1 << log // 2
        rows = count // columns
        b = 1 << (log - log // 2) // 2
        width = min(256, count)
        self.x, self.y = torch.randn(rows, columns), torch.rand(rows, columns) + 0.5
        self.volume, self.narrow = self.x.view(rows // b, b, columns), self.x.view(-1, width)
        self.row, self.short_row, self.channels = torch.randn(columns), torch.randn(width), torch.randn(b)
        self.mask = self.x > 0


def mlp():
    return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))


def cnn():
    return nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(64 * 7 * 7, 128), nn.ReLU(), nn.Linear(128, 10))


LETTERS, WIDTH, BLOCKS, HEADS, CONTEXT, BATCH = 512, 256, 4, 4, 128, 8


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.register_buffer("mask", torch.full((CONTEXT, CONTEXT), -1e9).triu(1))

    def attend(self, q, k, v):
        if hasattr(F, "scaled_dot_product_attention"):
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]) + self.mask, -1) @ v

    def forward(self, x):
        head = WIDTH // HEADS
        qkv = self.qkv(self.norm1(x)).view(-1, CONTEXT, 3, HEADS, head).permute(2, 0, 3, 1, 4)
        x = x + self.out(self.attend(*qkv).transpose(1, 2).reshape(-1, CONTEXT, WIDTH))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.place = nn.Embedding(LETTERS, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(BLOCKS)))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, LETTERS, bias=False)

    def forward(self, ids):
        return self.head(self.norm(self.blocks(self.token(ids) + self.place(torch.arange(CONTEXT)))))


def training(model):
    adam = torch.optim.Adam(model.parameters(), 1e-3)

    def step(x, y):
        adam.zero_grad()
        F.cross_entropy(model(x).flatten(0, -2), y).backward()
        adam.step()

    return step


def step_of(model, x, y):
    step = training(model)
    return lambda: step(x, y)


def mlp_step(batch):
    return step_of(mlp(), torch.rand(batch, 784), torch.randint(10, (batch,)))


def cnn_step(memory_format):
    return step_of(cnn().to(memory_format=memory_format),
                   torch.rand(64, 1, 28, 28).contiguous(memory_format=memory_format), torch.randint(10, (64,)))


def gpt_step():
    return step_of(Gpt(), torch.randint(LETTERS, (BATCH, CONTEXT)), torch.randint(LETTERS, (BATCH * CONTEXT,)))


def read_idx(path):
    data = gzip.decompress(path.read_bytes())
    sizes = struct.unpack_from(f">{data[3]}i", data, 4)
    return torch.frombuffer(bytearray(data[4 + 4 * len(sizes):]), dtype=torch.uint8).view(sizes)


def fashion_mnist_epoch():
    """Batches by index_select, which is quicker than a DataLoader."""
    root = pathlib.Path(os.environ.get("TAPER_DATA", "/usr/share/datasets/fashion-mnist"))
    if not root.exists():
        return None
    x = read_idx(root / "train-images-idx3-ubyte.gz").view(-1, 784).float().div_(255)
    y = read_idx(root / "train-labels-idx1-ubyte.gz").long()
    step = training(mlp())

    def epoch():
        order = torch.randperm(len(x))
        for i in range(0, len(x) - 63, 64):
            rows = order[i:i + 64]
            step(x.index_select(0, rows), y.index_select(0, rows))

    return epoch


STEPS = {
    "MLP 64": lambda: mlp_step(64),
    "MLP 512": lambda: mlp_step(512),
    "CNN NCHW": lambda: cnn_step(torch.contiguous_format),
    "CNN channels_last": lambda: cnn_step(torch.channels_last),
    "GPT": gpt_step,
    "Fashion-MNIST epoch": fashion_mnist_epoch,
}


def times(call, least_calls, seconds):
    took = []
    while len(took) < least_calls or sum(took) < seconds:
        start = time.perf_counter()
        call()
        took.append(time.perf_counter() - start)
    return took


class Train:
    """Models stay, and are warm, from turn to turn."""

    def __init__(self):
        self.steps = {}

    def seconds(self, row):
        if row not in self.steps and row in STEPS:
            self.steps[row] = STEPS[row]()
            if not row.endswith("epoch"):
                times(self.steps[row], 5, 0)
        step = self.steps.get(row)
        return min(times(step, 1, 0.25)) if step else math.nan


class Kernels:
    def __init__(self):
        self.size, self.operands = 0, None

    def seconds(self, row):
        name, _, size = row.partition(" @ ")
        size = int(size or 64 << 20)
        if name not in KERNELS:
            return math.nan
        if size != self.size:
            self.size, self.operands = size, None
            self.operands = Operands(size)
        with torch.no_grad():
            call = lambda: KERNELS[name](self.operands)
            call()
            return min(times(call, 3, 0.02))


def main():
    group = Train() if sys.argv[1:] == ["train"] else Kernels()
    for line in sys.stdin:
        row = line.rstrip("\n")
        print(f"{row}\t{group.seconds(row):.9g}", flush=True)


if __name__ == "__main__":
    main()
