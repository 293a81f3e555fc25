"""Reads Taper's objects from the memory of a process or a core dump, by the table that the library keeps of where things
lie (autograd/lens/debug_root.h). Knows no debugger, needs no debug information, calls nothing."""
import struct

SIGNED = {"SavedTensor.output", "DebugRoot.seek_to", "DebugPass.thread", "Layout.offset", "Layout.ndim", "DTypeInfo.bits"}


class Trouble(Exception):
    """What a user should read, in one line."""


class Object:
    """Something of Taper's at an address; its members by the names of the table: entry.get("Entry.scope")."""

    def __init__(self, taper, address):
        self.taper, self.address = taper, address

    def at(self, member):
        return self.address + self.taper.fields[member][0]

    def get(self, member):
        offset, size = self.taper.fields[member]
        return self.taper.number(self.address + offset, size, member in SIGNED)

    def text(self, member):
        return self.taper.text(self.get(member))

    def items(self, member, kind, of):
        """The elements of a list, whose type's size the table has."""
        data, step = self.get(member + ".data"), self.taper.fields[kind][1]
        return [of(self.taper, data + i * step) for i in range(self.get(member + ".size"))]


class Loc(Object):
    @property
    def line(self):
        return self.get("SourceLoc.line")

    @property
    def path(self):
        return self.text("SourceLoc.file")

    def __str__(self):
        if self.line == 0:
            return "an unknown line"
        return f"{self.path.rsplit('/', 1)[-1]}:{self.line}"

    def full(self):
        function = self.text("SourceLoc.function") if self.line else ""
        return f"{self} in {function}" if function else str(self)


def shape(sizes):
    return "(" + ", ".join(str(n) for n in sizes) + ")"


class Layout(Object):
    def __init__(self, taper, address):
        super().__init__(taper, address)
        dims = self.get("Layout.ndim")
        if not 0 <= dims <= 8:
            raise Trouble(f"no tensor lies there: {dims} dims")
        self.offset = self.get("Layout.offset")
        self.sizes = taper.numbers(self.at("Layout.sizes"), dims)
        self.strides = taper.numbers(self.at("Layout.strides"), dims)
        self.numel = 1
        for n in self.sizes:
            self.numel *= n

    def is_contiguous(self):
        expected = 1
        for n, stride in zip(reversed(self.sizes), reversed(self.strides)):
            if n != 1 and stride != expected:
                return self.numel == 0
            expected *= n
        return True


class Mutation(Object):
    version = property(lambda self: self.get("Mutation.version"))
    op = property(lambda self: self.text("Mutation.op"))
    loc = property(lambda self: Loc(self.taper, self.at("Mutation.loc")))


class Storage(Object):
    data = property(lambda self: self.get("Storage.data"))
    bytes = property(lambda self: self.get("Storage.bytes"))
    version = property(lambda self: self.get("Storage.version"))
    device = property(lambda self: self.taper.device(self.at("Storage.device")))

    def writers(self):
        """The latest writes, newest first."""
        vector = self.get("Storage.writers")
        return [Mutation(self.taper, p) for p in reversed(self.taper.vector(vector, "Mutation"))] if vector else []


class Cut(Object):
    """Where the path of a gradient ended (autograd/lens/cuts.h)."""

    def loc(self, member):
        return Loc(self.taper, self.at(member))

    def __str__(self):
        op, at = self.text("Cut.op"), self.loc("Cut.loc").full()
        guard = f"switched on at {self.loc('Cut.guard').full()}, in force at {op} at {at}"
        kinds = [f"detach() at {at}", f"no_grad, {guard}", f"inference mode, {guard}",
                 f"{op} at {at}, which has no derivative", f"item() at {at}, which made a C++ number of it",
                 f"requires_grad_(false) at {at}"]
        kind, scope = self.get("Cut.kind"), self.taper.scope(self.get("Cut.scope"))
        text = kinds[kind] if kind < len(kinds) else f"{op} at {at}"
        return text + (f", scope {scope}" if scope else "")


class Elements:
    """What tensors and saved tensors have in common: typed elements of a storage."""

    @property
    def layout(self):
        return Layout(self.taper, self.at(self.KIND + ".layout"))

    @property
    def storage(self):
        storage = self.get(self.KIND + ".storage")
        return Storage(self.taper, storage) if storage else None

    @property
    def dtype(self):
        return self.taper.dtype(self.get(self.KIND + ".dtype"))


class TensorImpl(Object, Elements):
    KIND = "TensorImpl"
    device = property(lambda self: self.taper.device(self.at("TensorImpl.device")))

    @property
    def edge(self):
        """Where its gradient flows, or None."""
        meta = self.get("TensorImpl.meta")
        return Edge(self.taper, Object(self.taper, meta).at("AutogradMeta.edge")) if meta else None

    @property
    def node(self):
        return self.edge.node if self.edge else None

    @property
    def leaf(self):
        meta = self.get("TensorImpl.meta")
        leaf = Object(self.taper, meta).get("AutogradMeta.leaf") if meta else 0
        return Leaf(self.taper, leaf) if leaf else None


class Edge(Object):
    slot = property(lambda self: self.get("Edge.slot"))
    cut = property(lambda self: self.get("Edge.cut"))

    @property
    def node(self):
        return self.taper.node(self.get("Edge.node"))


class Spec(Object):
    @property
    def sizes(self):
        return self.taper.numbers(self.get("TensorSpec.sizes.data"), self.get("TensorSpec.sizes.size"))

    def __str__(self):
        return f"{self.taper.dtype(self.get('TensorSpec.dtype'))[0]} {shape(self.sizes)}"


class Node(Object):
    index = property(lambda self: self.get("Node.index"))


class Leaf(Node):
    is_leaf = True
    spec = property(lambda self: Spec(self.taper, self.at("Leaf.spec")))
    last_use = property(lambda self: self.get("Leaf.last_use"))

    @property
    def grad(self):
        return self.taper.tensor(self.at("Leaf.grad"))

    def __str__(self):
        name = self.taper.string(self.at("Leaf.name"))
        scope = self.taper.scope(self.get("Leaf.scope"))
        if not name:
            return f"a leaf {shape(self.spec.sizes)}"
        return f"{scope}.{name}" if scope else name


class Saved(Object, Elements):
    KIND = "SavedTensor"
    output = property(lambda self: self.get("SavedTensor.output"))
    edge = property(lambda self: Edge(self.taper, self.at("SavedTensor.edge")))
    version = property(lambda self: self.get("SavedTensor.version"))


class Entry(Node):
    is_leaf = False
    op = property(lambda self: self.text("Entry.name"))
    loc = property(lambda self: Loc(self.taper, self.at("Entry.loc")))
    scope = property(lambda self: self.taper.scope(self.get("Entry.scope")))
    inputs = property(lambda self: self.items("Entry.inputs", "Edge", Edge))
    outputs = property(lambda self: self.items("Entry.outputs", "TensorSpec", Spec))
    saved = property(lambda self: self.items("Entry.saved", "SavedTensor", Saved))
    saved_bytes = property(lambda self: self.get("Entry.saved_bytes"))
    consumed = property(lambda self: self.get("Entry.consumed") != 0)
    consumed_at = property(lambda self: Loc(self.taper, self.at("Entry.consumed_at")))

    def __str__(self):
        return f"#{self.index} {self.op} at {self.loc}" + (f" in {self.scope}" if self.scope else "")


class Pass(Object):
    """A Backward."""
    thread = property(lambda self: self.get("DebugPass.thread"))
    position = property(lambda self: self.get("DebugPass.position"))
    first = property(lambda self: self.get("DebugPass.first"))
    seeking = property(lambda self: self.get("DebugPass.seeking") != 0)
    remembers = property(lambda self: self.get("DebugPass.remembers") != 0)

    @property
    def entry(self):
        """Whose rule runs now, or None."""
        entry = self.get("DebugPass.entry")
        return Entry(self.taper, entry) if entry else None

    def grads(self):
        """The gradients that came to the entry's outputs; None where none did."""
        data, step = self.get("DebugPass.grads"), self.taper.fields["Tensor"][1]
        return [self.taper.tensor(data + i * step) for i in range(self.get("DebugPass.num_grads"))]


class Taper:
    """All of it. `read(address, count)` gives bytes, or raises; `root` is the address of taper_debug_v1."""

    def __init__(self, read, root):
        self.read = read
        magic = read(root, 8)
        if magic != b"TAPERDBG":
            raise Trouble("taper_debug_v1 holds something else; is this library of another version?")
        version = self.number(root + 8, 4)
        if version != 1:
            raise Trouble(f"this script reads version 1 of taper_debug_v1, the program has version {version}")
        table, count = self.number(root + 16, 8), self.number(root + 24, 8)
        raw = read(table, 16 * count)
        rows = struct.iter_unpack("<QII", raw)
        self.fields = {self.text(name): (offset, size) for name, offset, size in rows}
        if "DebugRoot.passes" not in self.fields:
            raise Trouble("Taper has not started yet; run the program first")
        self.root = Object(self, root)
        info, step = self.root.get("DebugRoot.dtypes"), self.fields["DTypeInfo"][1]
        infos = [Object(self, info + i * step) for i in range(self.root.get("DebugRoot.num_dtypes"))]
        self.dtypes = [(i.text("DTypeInfo.name"), i.get("DTypeInfo.bits") // 8) for i in infos]
        names = self.root.get("DebugRoot.devices")
        self.devices = [self.text(self.number(names + 8 * i, 8)) for i in range(self.root.get("DebugRoot.num_devices"))]

    def number(self, address, size, signed=False):
        return int.from_bytes(self.read(address, size), "little", signed=signed)

    def numbers(self, address, count):
        return list(struct.unpack(f"<{count}q", self.read(address, 8 * count))) if count else []

    def text(self, address):
        """What stands there up to a zero byte."""
        out = b""
        while address and b"\0" not in out and len(out) < 4096:
            # Never across a page that may not be there.
            out += self.read(address + len(out), 64 - (address + len(out)) % 64)
        return out.split(b"\0")[0].decode(errors="replace")

    def string(self, address):
        """A std::string."""
        s = Object(self, address)
        return self.read(s.get("string.data"), s.get("string.size")).decode(errors="replace") if s.get("string.size") else ""

    def vector(self, address, kind):
        """The addresses of the elements of a std::vector."""
        v = Object(self, address)
        return list(range(v.get("vector.begin"), v.get("vector.end"), self.fields[kind][1] if kind else 8))

    def dtype(self, number):
        if number >= len(self.dtypes):
            raise Trouble(f"no tensor lies there: dtype {number}")
        return self.dtypes[number]

    def device(self, address):
        device = Object(self, address)
        name = self.devices[device.get("Device.type") % len(self.devices)]
        return f"cuda:{device.get('Device.index')}" if name == "cuda" else name

    def scope(self, number):
        vector = self.number(self.root.get("DebugRoot.scopes"), 8)
        names = self.vector(vector, None) if vector else []
        return self.string(self.number(names[number], 8)) if number < len(names) else ""

    def node(self, address):
        if address == 0:
            return None
        leaf = Node(self, address).get("Node.is_leaf")
        return Leaf(self, address) if leaf else Entry(self, address)

    def tensor(self, handle):
        """The TensorImpl of the taper::Tensor at an address; None when it is undefined."""
        impl = Object(self, handle).get("Tensor.impl")
        return TensorImpl(self, impl) if impl else None

    def passes(self):
        """The newest first."""
        at, found = self.root.get("DebugRoot.passes"), []
        while at:
            found.append(Pass(self, at))
            at = found[-1].get("DebugPass.next")
        return found

    def entries(self):
        """Those alive, by rising index."""
        slab, found = self.number(self.root.get("DebugRoot.slabs"), 8), []
        places, size = self.fields["Slab.places"]
        step, live, index = self.fields["Place"][1], self.fields["Place.live"][0], self.fields["Node.index"][0]
        while slab:
            raw = self.read(slab + places, size)
            for at in range(0, size, step):
                if raw[at + live]:
                    number = int.from_bytes(raw[at + index:at + index + 8], "little")
                    found.append((number, Entry(self, slab + places + at)))
            slab = Object(self, slab).get("Slab.next")
        return [entry for _, entry in sorted(found, key=lambda pair: pair[0])]

    def cut(self, number):
        """None when it is no longer kept."""
        ring, count = self.number(self.root.get("DebugRoot.cuts"), 8), self.root.get("DebugRoot.num_cuts")
        if not ring:
            return None
        cut = Cut(self, ring + number % count * self.fields["Cut"][1])
        return cut if number and cut.get("Cut.id") == number else None

    def next_index(self):
        return self.number(self.root.get("DebugRoot.next_index"), 8)

    def numbers32(self, address, count):
        return list(struct.unpack(f"<{count}I", self.read(address, 4 * count)))
