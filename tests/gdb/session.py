#!/usr/bin/env python3
"""Taper's commands, printers and frames in gdb: session.py O0_PROGRAM O2_PROGRAM LIBRARY.

A session at -O0 with every command, also used wrongly; one at -O2; one with the library stripped; one on a core dump.
Exits with 77 (skipped) where gdb is missing or may not trace.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

import gdb_run

o0, o2, library = map(pathlib.Path, sys.argv[1:])
source = (pathlib.Path(__file__).parent / "session.cpp").read_text().splitlines()


def line(text):
    """Of the program: where that stands."""
    return "session.cpp:" + str(1 + next(i for i, of in enumerate(source) if text in of))


RELU_LINE, SUM_LINE, MUL_LINE = line(".relu()"), line(".detach()"), line("made * scale")
BACKWARD = rf"<<backward of #\d+ relu, recorded at {RELU_LINE}, saved 32 B>>"
FRAMES = [rf"^#0 +{BACKWARD}", rf"^#4 .*train .*{line('loss.backward')}"]
RELU = [rf"^#\d+ relu, recorded at {RELU_LINE} in forward; node 7", rf"input 0: #\d+ linear at {RELU_LINE} in fc1",
        r"saved 0: f32 \(2, 4\), 32 B, of its own output 0: min 0, max 3.96729, mean 1.55; 0.9512, ",
        r"gradient of output 0: f32 \(2, 4\) on cpu: min "]
TAPE = [r"^\d+ entries alive:$", r"^ +entry +op +recorded at +scope +saved +from$",
        rf"^=> +#\d+ +relu +{RELU_LINE} +32 B +#\d+$",
        rf"^ +#\d+ +linear +{RELU_LINE} +fc1 +24 B +fc1.weight, fc1.bias$"]
MEM = [r"^\d+ entries alive hold \d+ B in \d+ storages", r"^ +24 B  fc1$", r"\(no module\)"]
X = r"= f32 \(2, 3\) on cpu: min 0, max 5, mean 2.5; 0, 1, 2, 3, 4, 5$"

live = [
    ("taper tape", "taper tape: the program does not run"),
    ("help taper", [r"taper break relu", r"taper why-none EXPR"]),
    ("taper break relu", None),
    ("run", RELU),
    ("backtrace", FRAMES),
    ("taper where", RELU),
    ("taper tape", TAPE),
    ("taper tape 2", r"entries alive, the latest 2:$"),
    ("taper saved", r"saved 0: f32 \(2, 4\), 32 B"),
    ("taper grad", r"gradient of output 0"),
    ("taper mem", MEM),
    ("taper back", rf"^#\d+ linear, recorded at {SUM_LINE} in forward, scope fc2; node 6"),
    ("taper next", RELU),
    ("taper next", rf"^#\d+ linear, recorded at {RELU_LINE} in forward, scope fc1; node 8"),
    ("frame function train", None),
    ("print batch.x", X),
    ("print batch.turned", r"f32 \(3, 2\) strides \(1, 3\) on cpu: .* 0, 3, 1, 4, 2, 5$"),
    ("print batch.odd", r"f32 \(4\) on cpu: min 1, max 3, mean 2, 1 NaN, 1 infinite; 1, nan, 3, inf$"),
    ("print batch.none", r"= undefined$"),
    ("print batch.big", r"strides \(1, 2000\) on cpu: min 1, max 1, mean 1 of 4,096 of 4,000,000 elements; 1, 1, "),
    ("print batch.meta", r"f32 \(2, 3\) on meta: elements on meta cannot be read"),
    ("print scale", r"f32 \(2\) on cpu, leaf requiring grad: "),
    ("print *batch.target.impl_.p_->storage.p_", rf"16 B on cpu, version 1; add_? at {line('add_')} in main made version 1$"),
    ("print batch.target.impl_.p_->storage", r"16 B on cpu, version 1; "),
    ("print net->fc1->weight", r"f32 \(4, 3\) on cpu, leaf fc1.weight: min "),
    ("print net", [r"NetImpl = \{", r"bias = f32 \(4\) on cpu, leaf fc1.bias"]),
    ("taper why-none net->unused->weight", "no recorded op ever took it"),
    ("taper why-none net->lost->weight", rf"cut by detach\(\) at {SUM_LINE} in forward"),
    ("taper why-none net->fc1->weight", rf"was last used by #\d+ linear at {RELU_LINE} in fc1, which has not run"),
    ("taper why-none batch.x", "batch.x does not require grad: nothing that made it does"),
    ("taper why-none batch.none", "it holds no tensor"),
    ("taper why-none", "taper why-none: of which tensor?"),
    ("taper why-none batch", r"taper why-none: batch is no taper::Tensor but"),
    ("taper why-none nothing", 'taper why-none: nothing: No symbol "nothing"'),
    ("taper grad scale", "^scale was last used by|^f32"),
    ("taper saved #999999", "taper saved: there is no entry #999999"),
    ("taper saved relu", "taper saved: 'relu' is no entry; say #17"),
    ("taper tape x", "taper tape: 'x' is no number"),
    ("taper where now", "taper where: takes no words"),
    ("taper next 2", "taper next: takes no words"),
    ("taper back 2", "taper back: takes no words"),
    ("taper mem all", "taper mem: takes no words"),
    ("taper grad 1 +", "taper grad: 1 \\+: "),
    ("taper break", "taper break: where\\? Say train.cpp:42"),
    ("taper break session.cpp:x", "taper break: 'session.cpp:x' is no line"),
    ("taper break a-b", "taper break: 'a-b' is no place"),
    ("taper nonsense", "There is no 'taper nonsense'; see help taper"),
    ("continue", "exited normally"),
    ("taper next", "taper next: the program does not run"),
]
optimised = [
    (f"taper break {RELU_LINE}", None),
    ("run", RELU),
    ("backtrace", [FRAMES[0], r"^#4 .*train "]),
    ("taper tape", TAPE),
    ("taper back", "scope fc2; node 6"),
    ("taper back", "add, recorded at .*; node 5"),
    ("taper next", "scope fc2; node 6"),
    ("taper saved #999999", "taper saved: there is no entry #999999"),
    ("taper mem", MEM),
    ("continue", RELU),
    ("continue", "scope fc1; node 8"),
    ("continue", "exited normally"),
]
# `step` passes over what wraps the arguments.
step = [
    (f"break {MUL_LINE}", None),
    ("run", "net\\(batch.x\\)|made \\* scale"),
    ("step", r"^taper::operator\*"),
    ("finish", None),
    ("next", None),
    ("print out", rf"= f32 \(2, 2\) on cpu, #\d+ mul at {MUL_LINE}: "),
]
post_mortem = [
    ("backtrace", FRAMES),
    ("taper where", RELU),
    ("taper tape", TAPE),
    ("taper saved", r"saved 0: f32 \(2, 4\), 32 B"),
    ("taper grad", r"gradient of output 0"),
    ("taper mem", MEM),
    ("frame function train", None),
    ("print batch.x", X),
    ("taper why-none net->unused->weight", "no recorded op ever took it"),
    ("taper next", "taper next: .*process|taper next: .*run"),
]


def session(name, steps, program, core=None, **environment):
    commands, wanted = zip(*steps)
    wrong = gdb_run.check(name, gdb_run.run(commands, program, core, **environment), wanted)
    print(f"{name}: {len(steps)} commands, {wrong} wrong")
    return wrong


def all_of_them():
    wrong = session("-O0", live, o0) + session("step", step, o0) + session("-O2", optimised, o2)
    with tempfile.TemporaryDirectory() as folder:
        stripped = pathlib.Path(folder) / "libtaper.so.0"
        shutil.copy(library, stripped)
        subprocess.run(["strip", stripped], check=True)
        wrong += session("stripped", optimised, o2, LD_LIBRARY_PATH=folder)
        core = pathlib.Path(folder) / "core"
        making = [("taper break relu", None), ("run", None), (f"generate-core-file {core}", "Saved corefile")]
        wrong += session("making a core", making, o0)
        wrong += session("core", post_mortem, o0, core)
    return wrong


try:
    sys.exit(1 if all_of_them() else 0)
except gdb_run.Skipped as skipped:
    print(skipped)
    sys.exit(77)
