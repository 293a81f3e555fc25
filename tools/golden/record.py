# Turns calls on tensors into JSON lines plus one blob of raw bytes: exact dtype, sizes, strides, offset and storage.
import gzip
import hashlib
import json
import math
import os

from torch_setup import torch

DTYPES = {
    torch.float64: "f64",
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.bool: "bool",
}
MOST_DIMS = 8


class Unsupported(Exception):
    """The value has no place in the golden format (complex numbers, functions, generators)."""


def storage_bytes(t):
    """The whole storage under t, as bytes in memory order."""
    flat = torch.empty(0, dtype=t.dtype).set_(t.detach().storage(), 0, (len(t.storage()),), (1,))
    if t.dtype == torch.bfloat16:
        flat = flat.view(torch.int16)
    return flat.numpy().tobytes()


def cotangent_values(n, salt):
    """n numbers in [-1, 1), each a multiple of 2^-31: exact in double, and recomputed by the runner, so never stored."""
    k = torch.arange(n, dtype=torch.int64)
    mixed = ((k + 1) * 2654435761 + (salt + 1) * 3242174889) % 2**32
    return mixed.double() / 2**31 - 1


def cotangent(t, salt):
    return cotangent_values(t.numel(), salt).reshape(t.shape).to(t.dtype)


class Group:
    """One pair of files: NAME.jsonl.gz, a header line and one line per sample, and NAME.bin.gz, the bytes they point to."""

    def __init__(self, name):
        self.name = name
        self.lines = []
        self.blob = bytearray()
        self.known = {}

    def put(self, data):
        """Byte offset of data in the blob. Equal contents are stored once. Offsets are multiples of 8."""
        key = hashlib.sha256(data).digest()
        if key not in self.known:
            self.known[key] = len(self.blob)
            self.blob += data + bytes(-len(data) % 8)
        return self.known[key]

    def tensor(self, t, whole_storage=True):
        """A tensor's record; with whole_storage the strided view is kept, else the values in logical order."""
        if t.is_sparse or t.is_quantized or t.dtype not in DTYPES:
            raise Unsupported(str(t.dtype))
        if t.dim() > MOST_DIMS:
            raise Unsupported("too many dims")
        if not whole_storage:
            dense = t.detach().contiguous().clone()
            return {"dtype": DTYPES[t.dtype], "shape": list(t.shape), "at": self.put(storage_bytes(dense))}
        return {
            "dtype": DTYPES[t.dtype],
            "shape": list(t.shape),
            "strides": list(t.stride()),
            "offset": t.storage_offset(),
            "len": len(t.storage()),
            "at": self.put(storage_bytes(t)),
            "grad": bool(t.requires_grad),
        }

    def add(self, line):
        self.lines.append(line)

    def write(self, folder):
        head = {"group": self.name, "samples": len(self.lines), "bytes": len(self.blob), "format": 1}
        text = "\n".join(json.dumps(x, separators=(",", ":"), allow_nan=False) for x in [head] + self.lines) + "\n"
        sizes = []
        for suffix, data in (("jsonl", text.encode()), ("bin", bytes(self.blob))):
            path = os.path.join(folder, f"{self.name}.{suffix}.gz")
            with open(path, "wb") as f:  # no name and no time inside: the same data gives the same file
                with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=f, mtime=0) as z:
                    z.write(data)
            sizes.append(os.path.getsize(path))
        print(f"{self.name:12} {len(self.lines):6} lines {len(self.blob):9} raw {sizes[0]:8} + {sizes[1]:8} bytes compressed")


def number(x):
    """JSON has no nan and inf."""
    if isinstance(x, float) and not math.isfinite(x):
        return {"f": "nan" if math.isnan(x) else "inf" if x > 0 else "-inf"}
    return x


def encode(x, tensors):
    """A Python argument as JSON; tensors are appended to the list and referred to by position."""
    if isinstance(x, torch.Tensor):
        tensors.append(x)
        return {"t": len(tensors) - 1}
    if x is None or isinstance(x, (bool, int, str)):
        return x
    if isinstance(x, float):
        return number(x)
    if isinstance(x, (list, tuple)):
        return [encode(y, tensors) for y in x]
    if isinstance(x, slice):
        return {"slice": [encode(y, tensors) for y in (x.start, x.stop, x.step)]}
    if x is Ellipsis:
        return {"ellipsis": True}
    if isinstance(x, torch.dtype):
        if x not in DTYPES:
            raise Unsupported(str(x))
        return {"dtype": DTYPES[x]}
    if isinstance(x, torch.memory_format):
        return {"memory_format": str(x).split(".")[-1]}
    if isinstance(x, torch.device) and x.type == "cpu":
        return None
    raise Unsupported(type(x).__name__)
