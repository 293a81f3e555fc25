"""Taper in gdb: printers of tensors and entries, backtraces that name the forward line, `step` that lands in the op.
What it shows it reads from memory, through taper_memory, so that core dumps show the same."""
import re

import gdb
import gdb.printing
import gdb.xmethod
from gdb.FrameDecorator import FrameDecorator

import taper_text as text
from taper_memory import Entry, Leaf, Storage, Taper, TensorImpl, Trouble

known = {}


def taper():
    """Taper in the current inferior."""
    inferior = gdb.selected_inferior()
    if not gdb.selected_thread():
        raise Trouble("the program does not run; start it, or open a core dump")
    try:
        root = int(gdb.parse_and_eval("(unsigned long) &taper_debug_v1"))
    except gdb.error:
        raise Trouble("the program has no Taper: there is no taper_debug_v1") from None
    key = (inferior.num, inferior.pid, root)
    if key not in known:
        def read(address, count):
            try:
                return gdb.selected_inferior().read_memory(address, count).tobytes()
            except gdb.MemoryError:
                raise Trouble(f"cannot read memory at {address:#x}") from None
        made = Taper(read, root)
        known.clear()
        known[key] = made
    return known[key]


def pass_of_thread(level=0):
    """The innermost pass of the selected thread that runs an entry; `level` 1: the one around it."""
    passes = taper().passes()
    lwp = gdb.selected_thread().ptid[1]
    running = [p for p in passes if p.thread == lwp and p.entry]
    return running[level] if level < len(running) else None


def address_of(value):
    """Where a C++ object lies."""
    if value.type.strip_typedefs().code in (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF):
        value = value.referenced_value()
    return int(value.address) if value.address is not None else None


def impl_of(value):
    """The TensorImpl of a value of type taper::Tensor, which may be in registers."""
    handle = address_of(value)
    if handle is not None:
        return taper().tensor(handle)
    impl = int(value["impl_"]["p_"])
    return TensorImpl(taper(), impl) if impl else None


# --- Printers --------------------------------------------------------------------------------------------------

class Printer:
    """Shows a value as one line of text, or says why it cannot."""

    def __init__(self, tell):
        self.tell = tell

    def __call__(self, value):
        return self.Shown(self.tell, value)

    class Shown:
        def __init__(self, tell, value):
            self.tell, self.value = tell, value

        def to_string(self):
            try:
                return self.tell(self.value)
            except Trouble as trouble:
                return f"<{trouble}>"


def tell_ref(value):
    at = int(value["p_"])
    kind = value.type.strip_typedefs().template_argument(0).name
    if at == 0:
        return "null"
    if kind in ("taper::Entry", "taper::Leaf", "taper::Node"):
        return str(taper().node(at))
    if kind == "taper::Storage":
        return text.storage_text(Storage(taper(), at))
    if kind == "taper::TensorImpl":
        return text.tensor_text(TensorImpl(taper(), at))
    return f"{kind} at {at:#x}"


def held(holder):
    """The pointer to a holder's module, of its own type and not of a typedef within std::shared_ptr."""
    module = holder["impl_"]["_M_ptr"]
    return module.cast(module.type.target().strip_typedefs().pointer())


class HolderPrinter:
    """A module holder: the tensors, modules and options of the module that it holds."""

    def __init__(self, value):
        self.module = held(value)

    def to_string(self):
        return self.module.type.target().name if int(self.module) else "empty"

    def children(self):
        if int(self.module) == 0:
            return
        module = self.module.dereference()
        for field in module.type.fields():
            if not field.is_base_class and hasattr(field, "bitpos"):  # no static one
                yield field.name, module[field]


def printers():
    all_of_ours = gdb.printing.RegexpCollectionPrettyPrinter("taper")
    all_of_ours.add_printer("Tensor", r"^taper::Tensor$", Printer(lambda v: text.tensor_text(impl_of(v))))
    all_of_ours.add_printer("Storage", r"^taper::Storage$",
                            Printer(lambda v: text.storage_text(Storage(taper(), address_of(v)))))
    all_of_ours.add_printer("Entry", r"^taper::Entry$", Printer(lambda v: str(Entry(taper(), address_of(v)))))
    all_of_ours.add_printer("Leaf", r"^taper::Leaf$", Printer(lambda v: str(Leaf(taper(), address_of(v)))))
    all_of_ours.add_printer("Ref", r"^taper::Ref<.*>$", Printer(tell_ref))
    return all_of_ours


def holder_of(kind):
    """Whether a type is nn::ModuleHolder<...>, or derived from it as TAPER_MODULE does."""
    if kind.code != gdb.TYPE_CODE_STRUCT:
        return False
    return (kind.tag or "").startswith("taper::nn::ModuleHolder<") or any(
        f.is_base_class and holder_of(f.type.strip_typedefs()) for f in kind.fields())


def holder_printer(value):
    return HolderPrinter(value) if holder_of(value.type.strip_typedefs().unqualified()) else None


class HolderArrow(gdb.xmethod.XMethodMatcher):
    """`print fc->weight` of a module holder without a call, so that it works on core dumps."""

    class Worker(gdb.xmethod.XMethodWorker):
        def get_arg_types(self):
            return None

        def get_result_type(self, holder):
            return held(holder).type

        def __call__(self, holder):
            return held(holder)

    def __init__(self):
        super().__init__("taper holder")
        self.methods = [gdb.xmethod.XMethod("arrow")]

    def match(self, class_type, method):
        return self.Worker() if method == "operator->" and holder_of(class_type.strip_typedefs()) else None


# --- Frames ----------------------------------------------------------------------------------------------------

RUN_ENTRY = "taper::Backward::run_entry"
# Between the user's call and the op, or its rule, there are these.
INTERNAL = re.compile(r"taper::(Backward::(?!run_entry)|Tensor::backward|backward|grad|apply|apply_n|apply_inplace|Recorder::"
                      r"|\(anonymous namespace\)::)")


class PlainFrame(FrameDecorator):
    """A frame as gdb shows it by itself: its function without the types of its parameters."""

    def function(self):
        return self.inferior_frame().name() or super().function()


class BackwardFrame(PlainFrame):
    """run_entry, told by the forward line that it belongs to."""

    def __init__(self, frame, of):
        super().__init__(frame)
        self.of = of

    def function(self):
        e = self.of.entry
        scope = f" in {e.scope}" if e.scope else ""
        return f"<<backward of #{e.index} {e.op}, recorded at {e.loc}{scope}, saved {text.size_text(e.saved_bytes)}>>"

    def address(self):
        return None

    def frame_args(self):
        return None

    def frame_locals(self):
        return None

    def filename(self):
        return None

    def line(self):
        return None


class Frames:
    """The frame filter."""

    def __init__(self):
        self.name, self.priority, self.enabled = "taper", 100, True
        gdb.frame_filters[self.name] = self

    def filter(self, frames):
        seen = 0
        for frame in frames:
            name = frame.inferior_frame().name() or ""
            if name.startswith(RUN_ENTRY):
                try:
                    of = pass_of_thread(seen)
                except Trouble:
                    of = None
                seen += 1
                yield BackwardFrame(frame, of) if of else PlainFrame(frame)
            elif frame.inferior_frame().level() == 0 or not INTERNAL.match(name):
                yield PlainFrame(frame)


# What wraps the arguments of every call: `step` passes over it.
WRAPPERS = (r"^taper::(TensorArg|TensorList|IndexArg|TensorIndex|Call|CallSite|SourceLoc|Scope|ModuleScope|Ref<.*>|"
            r"ArrayRef<.*>|SmallVector<.*>|Scalar|Tensor::Tensor|Tensor::~Tensor|Tensor::impl|Tensor::defined|"
            r"nn::ModuleHolder<.*>::(operator->|get|ptr|operator\*))\b")


def install():
    """Once a gdb, however often it loads the script."""
    if "taper" in gdb.frame_filters:
        return
    gdb.printing.register_pretty_printer(None, printers())
    gdb.pretty_printers.append(holder_printer)
    gdb.xmethod.register_xmethod_matcher(None, HolderArrow())
    Frames()
    quoted = WRAPPERS.replace("\\", "\\\\")
    gdb.execute(f"skip -rfunction {quoted}", to_string=True)
    import taper_gdb_commands  # noqa: F401  defines them


install()
