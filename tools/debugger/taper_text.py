"""Tells Taper's objects in words: a tensor with its statistics, an entry, what it saved, why a gradient is missing."""
import itertools
import math
import struct

from taper_memory import Trouble, shape

MOST = 1 << 16  # elements that statistics look at; a backtrace shows many tensors
FORMATS = {"f64": "d", "f32": "f", "f16": "e", "i64": "q", "i32": "i", "u8": "B", "bool": "?"}
SHOWN = 6


def size_text(count):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024


def number_text(x):
    return f"{x:.6g}" if isinstance(x, float) else str(x).lower() if isinstance(x, bool) else str(x)


def decode(name, raw):
    if name == "bf16":  # the upper half of an f32
        halves = struct.unpack(f"<{len(raw) // 2}H", raw)
        return struct.unpack(f"<{len(halves)}f", struct.pack(f"<{len(halves)}I", *(h << 16 for h in halves)))
    if name not in FORMATS:
        raise Trouble(f"elements of {name} cannot be shown")
    code = FORMATS[name]
    return struct.unpack(f"<{len(raw) // struct.calcsize(code)}{code}", raw)


def place_of(layout, index):
    """Of the element of that number in row-major order, in elements from the storage's begin."""
    at = layout.offset
    for n, stride in zip(reversed(layout.sizes), reversed(layout.strides)):
        at += index % n * stride
        index //= n
    return at


def run_of(tensor, begin, end):
    """Elements begin to end of row-major order."""
    layout, data, (name, size) = tensor.layout, tensor.storage.data, tensor.dtype
    read = tensor.taper.read
    if layout.is_contiguous():
        return decode(name, read(data + (layout.offset + begin) * size, (end - begin) * size))
    places = [place_of(layout, i) for i in range(begin, end)]
    low, high = min(places), max(places) + 1
    if high - low > 64 * len(places) + 4096:  # far apart: one by one, but not all
        places = places[::max(1, len(places) // 64)]
        return tuple(decode(name, read(data + p * size, size))[0] for p in places)
    window = decode(name, read(data + low * size, (high - low) * size))
    return tuple(window[p - low] for p in places)


def values_of(tensor):
    """(all elements or a sample of them, whether all)."""
    numel = tensor.layout.numel
    if numel <= MOST:
        values = run_of(tensor, 0, numel) if numel else ()
        return values, len(values) == numel
    runs, length = 64, MOST // 64
    starts = [i * (numel - length) // (runs - 1) for i in range(runs)]
    return tuple(itertools.chain.from_iterable(run_of(tensor, s, s + length) for s in starts)), False


def statistics(values):
    finite = [v for v in values if math.isfinite(v)]
    parts = []
    if finite:
        low, high, mean = min(finite), max(finite), math.fsum(finite) / len(finite)
        if abs(mean) < 1e-6 * (high - low):  # nothing but rounding
            mean = 0
        parts.append(f"min {number_text(low)}, max {number_text(high)}, mean {mean:.4g}")
    nans = sum(1 for v in values if v != v)
    infs = len(values) - len(finite) - nans
    parts += [f"{nans} NaN"] if nans else []
    parts += [f"{infs} infinite"] if infs else []
    return ", ".join(parts)


def elements_text(tensor, device):
    """What stands in it, where the debugger can read it."""
    storage, numel = tensor.storage, tensor.layout.numel
    if device != "cpu":
        return f"elements on {device} cannot be read from here"
    if storage is None or numel == 0:
        return "no elements"
    values, whole = values_of(tensor)
    first = ", ".join(number_text(v) for v in values[:SHOWN]) + (", ..." if numel > SHOWN else "")
    if numel == 1 or tensor.dtype[0] == "bool":
        return first
    of = "" if whole else f" of {len(values):,} of {numel:,} elements"
    return f"{statistics(values)}{of}; {first}"


def kind_text(tensor):
    layout = tensor.layout
    text = f"{tensor.dtype[0]} {shape(layout.sizes)}"
    return text if layout.is_contiguous() else f"{text} strides {shape(layout.strides)}"


def history_text(tensor):
    node = tensor.node
    if node is None:
        return ""
    if not node.is_leaf:
        return f", {node}"
    name = str(node)
    return ", leaf requiring grad" if name.startswith("a leaf") else f", leaf {name}"


def tensor_text(tensor):
    """A TensorImpl in one line."""
    if tensor is None:
        return "undefined"
    return f"{kind_text(tensor)} on {tensor.device}{history_text(tensor)}: {elements_text(tensor, tensor.device)}"


def storage_text(storage):
    text = f"{size_text(storage.bytes)} on {storage.device}, version {storage.version}"
    return text + "".join(f"; {m.op} at {m.loc.full()} made version {m.version}" for m in storage.writers())


def origin_text(edge):
    node = edge.node
    if node is not None:
        return str(node)
    cut = edge.taper.cut(edge.cut)
    return f"no gradient wanted, cut by {cut}" if cut else "no gradient wanted"


def saved_lines(entry):
    if entry.consumed:
        return [f"  {entry} gave back what it saved when it ran backwards at {entry.consumed_at.full()}"]
    lines = []
    for number, s in enumerate(entry.saved):
        owner = f"its own output {s.output}" if s.output >= 0 else str(s.edge.node) if s.edge.node else "data"
        lines.append(f"  saved {number}: {kind_text(s)}, {size_text(s.storage.bytes)}, of {owner}: "
                     f"{elements_text(s, s.storage.device)}")
        if s.storage.version != s.version:
            writers = [f"{m.op} at {m.loc.full()}" for m in s.storage.writers() if m.version > s.version]
            lines.append("    WRITTEN SINCE by " + "; ".join(writers))
    return lines or [f"  {entry} saved nothing"]


def gradient_lines(of):
    return [f"  gradient of output {i}: " + (tensor_text(g) if g else "none came") for i, g in enumerate(of.grads())]


def where_lines(of):
    """The entry that a pass runs now."""
    entry = of.entry
    scope = f", scope {entry.scope}" if entry.scope else ""
    lines = [f"#{entry.index} {entry.op}, recorded at {entry.loc.full()}{scope}; node {of.position} of this backward"]
    for i, edge in enumerate(entry.inputs):
        lines.append(f"  input {i}: {origin_text(edge)}")
    return lines + saved_lines(entry) + gradient_lines(of)


def tape_lines(taper, most, running):
    entries = taper.entries()
    if not entries:
        return ["no entry is alive: nothing was recorded, or backward ran and its loss is gone"]
    shown = entries[-most:]
    rows = []
    for e in shown:
        inputs = [f"#{x.node.index}" if not x.node.is_leaf else str(x.node) for x in e.inputs if x.node]
        state = "ran" if e.consumed else size_text(e.saved_bytes)
        rows.append(["=>" if running and running.address == e.address else "", f"#{e.index}", e.op, str(e.loc), e.scope,
                     state, ", ".join(inputs)])
    head = ["", "entry", "op", "recorded at", "scope", "saved", "from"]
    widths = [max(len(r[c]) for r in [head, *rows]) for c in range(len(head))]
    of = "" if len(shown) == len(entries) else f", the latest {len(shown)}"
    lines = [f"{len(entries)} entries alive{of}:"]
    for r in [head, *rows]:
        lines.append(" ".join(cell.ljust(width) for cell, width in zip(r, widths)).rstrip())
    return lines


def memory_lines(taper):
    """What the tape holds, storages counted once, by scope."""
    entries, seen, scopes = taper.entries(), set(), {}
    for e in entries:
        for s in [] if e.consumed else e.saved:
            if s.storage.address not in seen:
                seen.add(s.storage.address)
                scopes[e.scope] = scopes.get(e.scope, 0) + s.storage.bytes
    lines = [f"{len(entries)} entries alive hold {size_text(sum(scopes.values()))} in {len(seen)} storages, counted once"]
    for scope, count in sorted(scopes.items(), key=lambda pair: -pair[1]):
        lines.append(f"  {size_text(count):>12}  {scope or '(no module)'}")
    return lines


def why_none_lines(taper, what, tensor):
    """Why this tensor's grad() is undefined."""
    if tensor is None:
        return [f"{what} is undefined: it holds no tensor"]
    leaf, node = tensor.leaf, tensor.node
    if leaf and leaf.grad:
        return [f"{what} has a gradient: {tensor_text(leaf.grad)}"]
    if node is None:
        cut = taper.cut(tensor.get("TensorImpl.cut"))
        why = (f"the path of its gradient was cut by {cut}" if cut else
               "nothing that made it does, and nobody called requires_grad_() on it")
        return [f"{what} does not require grad: {why}"]
    if not node.is_leaf:
        return [f"{what} is no leaf but made by {node}: its gradient flows on and is not kept; call retain_grad() on it "
                "before backward"]
    cuts = [taper.cut(number) for number in reversed(taper.numbers32(node.at("Leaf.cuts"), 4))]
    lines = [f"{what}: a path from it was cut by {cut}" for cut in cuts if cut]
    if node.last_use == 0:
        lines.append(f"{what} requires grad, but no recorded op ever took it: it is not used, or only under a NoGradGuard")
    else:
        user = next((e for e in taper.entries() if e.index == node.last_use), None)
        if user is None:
            lines.append(f"{what} was last used by entry #{node.last_use}, which is gone: nothing that needs a gradient was "
                         "made of its result, or zero_grad() came after backward")
        elif user.consumed:
            lines.append(f"{what} was last used by {user}, which ran backwards at {user.consumed_at.full()}: zero_grad() "
                         "came after it, or that pass has not reached the leaf yet")
        else:
            lines.append(f"{what} was last used by {user}, which has not run backwards: no backward reached it yet")
    return lines
