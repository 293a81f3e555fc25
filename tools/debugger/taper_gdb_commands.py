"""The gdb commands `taper ...`. They read memory, and write three words of taper_debug_v1 that backward obeys between two
nodes: see Backward::obey_debugger."""
import re
import struct

import gdb

import taper_text as text
from taper_gdb import RUN_ENTRY, address_of, impl_of, pass_of_thread, taper
from taper_memory import Trouble


def write(member, value):
    root, (offset, size) = taper().root.address, taper().fields[member]
    gdb.selected_inferior().write_memory(root + offset, struct.pack("<q" if size == 8 else "<I", value))


def remember():
    """Passes keep their way back from now on."""
    write("DebugRoot.remember", 1)
    write("DebugRoot.attention", 1)


def show(lines):
    gdb.write("\n".join(lines) + "\n")


def current():
    of = pass_of_thread()
    if of is None:
        raise Trouble("this thread runs no backward's rule now; `taper break` stops in one")
    return of


def entry_named(word):
    if not re.fullmatch(r"#?\d+", word):
        raise Trouble(f"'{word}' is no entry; say #17")
    number = int(word.lstrip("#"))
    for entry in taper().entries():
        if entry.index == number:
            return entry
    raise Trouble(f"there is no entry #{number}, or it is gone; `taper tape` shows those alive")


def tensor_named(expression):
    try:
        value = gdb.parse_and_eval(expression)
    except gdb.error as error:
        raise Trouble(f"{expression}: {error}") from None
    kind = value.type.strip_typedefs()
    if kind.code in (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF):
        value, kind = value.referenced_value(), kind.target()
    if kind.code == gdb.TYPE_CODE_PTR and kind.target().strip_typedefs().unqualified().name == "taper::Tensor":
        value, kind = value.dereference(), kind.target()
    if kind.strip_typedefs().unqualified().name != "taper::Tensor":
        raise Trouble(f"{expression} is no taper::Tensor but {kind}")
    return impl_of(value)


# --- Where to stop ---------------------------------------------------------------------------------------------

class Place:
    """What `taper break` was told: a line, an entry, an op or a module."""

    def __init__(self, words):
        self.words, self.line, self.number = words, None, None
        if re.fullmatch(r"#\d+", words):
            self.number = int(words[1:])
        elif ":" in words:
            path, _, line = words.rpartition(":")
            if not path or not line.isdigit():
                raise Trouble(f"'{words}' is no line; say train.cpp:42")
            self.path, self.line = path, int(line)
        elif not re.fullmatch(r"[\w.]+", words):
            raise Trouble(f"'{words}' is no place; say train.cpp:42, #17, an op (relu) or a module (encoder.3)")

    def holds(self, entry):
        if self.number is not None:
            return entry.index == self.number
        if self.line is not None:
            path = entry.loc.path
            return entry.loc.line == self.line and (path == self.path or path.endswith("/" + self.path))
        scope = entry.scope
        return entry.op == self.words or scope == self.words or scope.startswith(self.words + ".")


class EntryBreakpoint(gdb.Breakpoint):
    """Stops before an entry's rule runs, unless it runs again on the way to another place. Reads memory alone: a call in
    stop() ends gdb 13."""

    def __init__(self, holds, **options):
        super().__init__(RUN_ENTRY, **options)
        self.holds = holds

    def stop(self):
        try:
            of = pass_of_thread()
            return of is not None and not of.seeking and self.holds(of.entry)
        except Trouble as trouble:
            gdb.write(f"taper: {trouble}\n")
            return True


class Keeper(gdb.Breakpoint):
    """Asks each backward, as it is made, to keep its way back."""

    def __init__(self):
        super().__init__("taper::Backward::Backward", internal=True)

    def stop(self):
        try:
            remember()
        except Trouble as trouble:
            gdb.write(f"taper: {trouble}\n")
        return False


keeper = []  # the only one


def run_to_next_entry():
    """Goes on to the next entry; false when backward ended before one."""
    reached = []

    def holds(entry):
        reached.append(entry)
        return True

    stop = EntryBreakpoint(holds, internal=True)
    stop.silent = True
    stop.thread = gdb.selected_thread().num
    try:
        gdb.execute("continue", to_string=True)
    finally:
        if stop.is_valid():
            stop.delete()
    return bool(reached)


def show_where():
    of = pass_of_thread()
    if of is not None:
        show(text.where_lines(of))


def on_stop(event):
    if isinstance(event, gdb.BreakpointEvent) and any(
            isinstance(b, EntryBreakpoint) and b.visible for b in event.breakpoints):
        try:
            show_where()
        except Trouble as trouble:
            gdb.write(f"taper: {trouble}\n")


gdb.events.stop.connect(on_stop)


# --- The commands ----------------------------------------------------------------------------------------------

class Taper(gdb.Command):
    """Look at Taper's tape and backward passes.

  taper tape [N]        the N latest entries of the tape (20)
  taper where           the entry that runs backwards: its line, inputs, saved tensors, gradients
  taper break PLACE     stop before the backward of: train.cpp:42, #17, an op (relu), a module (encoder.3)
  taper next            on to the next entry
  taper back            back to the entry before
  taper grad [EXPR]     the gradients that came to this entry; or the gradient of a tensor
  taper saved [#N]      what this entry saved, or that one
  taper why-none EXPR   why a tensor has no gradient
  taper mem             what the tape holds, by module

For example:

  (gdb) taper break relu
  (gdb) run
  (gdb) taper where
  (gdb) taper back

`print` shows tensors, `backtrace` the forward line of what runs backwards. All but next and back works on core dumps too.
From `taper break` on, passes keep what `taper back` needs: entries hold what they saved until their pass ends."""

    def __init__(self):
        super().__init__("taper", gdb.COMMAND_DATA, gdb.COMPLETE_NONE, True)

    def invoke(self, words, from_tty):
        if words:
            raise gdb.GdbError(f"There is no 'taper {words}'; see help taper.")
        gdb.write(self.__doc__ + "\n")


def command(name, usage, complete=gdb.COMPLETE_NONE):
    """Makes a function of its words a command; its trouble one line."""
    def make(function):
        def invoke(self, words, from_tty):
            try:
                function(words.strip())
            except Trouble as trouble:
                raise gdb.GdbError(f"{name}: {trouble}") from None
            except gdb.error as error:
                raise gdb.GdbError(f"{name}: {error}") from None
        kind = type(name, (gdb.Command,), {"__doc__": f"{usage}\n{function.__doc__}", "invoke": invoke})
        kind(name, gdb.COMMAND_DATA, complete)
        return function
    return make


def no_words(words):
    if words:
        raise Trouble(f"takes no words, got '{words}'")


Taper()


@command("taper tape", "taper tape [N]")
def tape(words):
    """The N latest entries of the tape, 20 if not said; => marks the one that runs backwards."""
    if words and not (words.isdigit() and int(words)):
        raise Trouble(f"'{words}' is no number of entries")
    show(text.tape_lines(taper(), int(words or 20), pass_of_thread() and pass_of_thread().entry))


@command("taper where", "taper where")
def where(words):
    """The entry that runs backwards: its line, its inputs, what it saved, the gradients that came."""
    no_words(words)
    show(text.where_lines(current()))


@command("taper break", "taper break FILE:LINE | #N | OP | MODULE")
def break_at(words):
    """Stop before the backward of the entries of a line, a number, an op or a module."""
    if not words:
        raise Trouble("where? Say train.cpp:42, #17, an op (relu) or a module (encoder.3)")
    place = Place(words)
    EntryBreakpoint(place.holds).silent = True  # on_stop() tells more than gdb would
    if not keeper:
        keeper.append(Keeper())
    entries = taper().entries() if gdb.selected_thread() else []
    if entries and not any(place.holds(e) for e in entries):
        gdb.write(f"None of the {len(entries)} entries alive is that yet.\n")


@command("taper next", "taper next")
def next_entry(words):
    """Run on to the next entry of backward."""
    no_words(words)
    current()
    if run_to_next_entry():
        show_where()
    else:
        show(["backward ended, or something else stopped the program, before another entry ran"])


@command("taper back", "taper back")
def back(words):
    """Go back to the entry that ran before this one. Rules run again; hooks, and what leaves added up, do not."""
    no_words(words)
    of = current()
    start = of.position
    if not of.remembers:
        remember()
        raise Trouble("this backward kept no way back; from the next node on it does. `taper break` before it begins keeps all")
    for position in range(start - 1, of.first - 1, -1):
        write("DebugRoot.seek_to", position)
        write("DebugRoot.attention", 1)
        stopped = run_to_next_entry()
        if taper().number(taper().root.at("DebugRoot.seek_to"), 8) != (1 << 64) - 1:
            write("DebugRoot.seek_to", -1)
            raise Trouble("the pass did not look: it does not run in finish(); use its own back()")
        if not stopped:
            raise Trouble("something else stopped the program on the way")
        if current().position < start:
            show_where()
            return
    raise Trouble(f"no entry ran before this one since the pass keeps its way (node {of.first})")


@command("taper grad", "taper grad [EXPR]", gdb.COMPLETE_EXPRESSION)
def grad(words):
    """The gradients that came to the outputs of the entry that runs; or the gradient of a tensor."""
    if not words:
        show([str(current().entry), *text.gradient_lines(current())])
        return
    tensor = tensor_named(words)
    leaf = tensor.leaf if tensor else None
    found = leaf.grad if leaf else None
    show([text.tensor_text(found)] if found else text.why_none_lines(taper(), words, tensor))


@command("taper saved", "taper saved [#N]")
def saved(words):
    """What the entry that runs has saved for its rule, or entry #N; and who wrote to it since."""
    entry = entry_named(words) if words else current().entry
    show([str(entry), *text.saved_lines(entry)])


@command("taper why-none", "taper why-none EXPR", gdb.COMPLETE_EXPRESSION)
def why_none(words):
    """Why a tensor has no gradient: EXPR is a taper::Tensor, as model->fc->weight."""
    if not words:
        raise Trouble("of which tensor? Say an expression, as model->fc->weight")
    show(text.why_none_lines(taper(), words, tensor_named(words)))


@command("taper mem", "taper mem")
def mem(words):
    """What the tape holds, by module. For the pages of memory: print ((const char* (*)()) taper_mem_map)()"""
    no_words(words)
    show(text.memory_lines(taper()))
