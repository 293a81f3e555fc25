"""Taper in lldb: summaries of tensors, storages and entries, and `taper tape|where|saved|mem`, from memory alone.
Load it with `command script import taper_lldb.py`."""
import os
import sys

import lldb

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import taper_text as text  # noqa: E402
from taper_memory import Entry, Leaf, Storage, Taper, TensorImpl, Trouble  # noqa: E402

known = {}


def taper(target):
    """Taper in a target's process."""
    process = target.GetProcess()
    found = target.FindSymbols("taper_debug_v1", lldb.eSymbolTypeData)
    if not process.IsValid() or found.GetSize() == 0:
        raise Trouble("the program does not run, or has no Taper")
    root = found.GetContextAtIndex(0).GetSymbol().GetStartAddress().GetLoadAddress(target)
    key = (process.GetUniqueID(), root)
    if key not in known:
        def read(address, count):
            error = lldb.SBError()
            data = target.GetProcess().ReadMemory(address, count, error)
            if not error.Success():
                raise Trouble(f"cannot read memory at {address:#x}")
            return data
        made = Taper(read, root)
        known.clear()
        known[key] = made
    return known[key]


def summary(tell):
    """A summary function for lldb, which says why it cannot."""
    def of(value, _):
        try:
            value = value.GetNonSyntheticValue()
            if value.GetType().IsReferenceType():
                value = value.Dereference()
            return tell(taper(value.GetTarget()), value)
        except Trouble as trouble:
            return f"<{trouble}>"
    return of


def tell_tensor(taper, value):
    handle = value.GetLoadAddress()
    if handle not in (0, lldb.LLDB_INVALID_ADDRESS):
        return text.tensor_text(taper.tensor(handle))
    impl = value.GetChildMemberWithName("impl_").GetChildMemberWithName("p_").GetValueAsUnsigned()
    return text.tensor_text(TensorImpl(taper, impl) if impl else None)


tensor_summary = summary(tell_tensor)
storage_summary = summary(lambda taper, value: text.storage_text(Storage(taper, value.GetLoadAddress())))
entry_summary = summary(lambda taper, value: str(Entry(taper, value.GetLoadAddress())))
leaf_summary = summary(lambda taper, value: str(Leaf(taper, value.GetLoadAddress())))


def running(target):
    of = taper(target)
    thread = target.GetProcess().GetSelectedThread().GetThreadID()
    return next((p for p in of.passes() if p.thread == thread and p.entry), None)


def command(debugger, words, result, _):
    """taper tape [N] | where | saved | mem"""
    word, _, rest = words.strip().partition(" ")
    target = debugger.GetSelectedTarget()
    try:
        of = taper(target)
        here = running(target)
        if word in ("where", "saved") and here is None:
            raise Trouble("this thread runs no backward's rule now")
        if word == "tape" and (not rest or rest.isdigit()):
            lines = text.tape_lines(of, int(rest or 20), here and here.entry)
        elif word == "where" and not rest:
            lines = text.where_lines(here)
        elif word == "saved" and not rest:
            lines = [str(here.entry), *text.saved_lines(here.entry)]
        elif word == "mem" and not rest:
            lines = text.memory_lines(of)
        else:
            raise Trouble("taper tape [N] | where | saved | mem")
        result.AppendMessage("\n".join(lines))
    except Trouble as trouble:
        result.SetError(f"taper {word}: {trouble}")


def __lldb_init_module(debugger, _):
    for kind in ("Tensor", "Storage", "Entry", "Leaf"):
        debugger.HandleCommand(
            f"type summary add --no-value --python-function taper_lldb.{kind.lower()}_summary --category taper taper::{kind}")
    debugger.HandleCommand("type category enable taper")
    debugger.HandleCommand("command script add --function taper_lldb.command taper")
