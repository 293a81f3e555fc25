"""Runs gdb with Taper's scripts over commands, and gives what it says to each."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools/debugger/taper-gdb.py"


class Skipped(Exception):
    """gdb is missing, or may not trace."""


def run(commands, program, core=None, scripts=SCRIPT, **environment):
    """[(command, what gdb printed)]. Raises Skipped."""
    gdb = shutil.which("gdb")
    if gdb is None:
        raise Skipped("skipped: no gdb")
    call = [gdb, "-nx", "-batch"]
    setup = ["set pagination off", "set confirm off", "set width 0", "set breakpoint pending on",
             "set debuginfod enabled off", f"source {scripts}"]
    for command in setup if scripts else setup[:-1]:
        call += ["-ex", command]
    for number, command in enumerate(commands):
        call += ["-ex", f"echo \\n<{number}>\\n", "-ex", command]
    call += [str(program)] + ([str(core)] if core else [])
    out = subprocess.run(call, text=True, timeout=300, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
    if re.search(r"Cannot PTRACE|Operation not permitted|ptrace:", out):
        raise Skipped(f"skipped: gdb may not trace here\n{out}")
    if "import" in out and "Python scripting is not supported" in out:
        raise Skipped("skipped: this gdb has no Python")
    parts = re.split(r"^<\d+>\n", out, flags=re.M)
    if len(parts) != len(commands) + 1:
        sys.exit(f"gdb ended early:\n{out}")
    return [(command, part.strip()) for command, part in zip(commands, parts[1:])]


def without_place(answer):
    """What does not hang on the machine: no addresses, threads, or folders."""
    answer = re.sub(r"^(\[(Thread|New Thread|Inferior).*|Using host libthread_db.*|(Function|Make) .*)\n?", "", answer, flags=re.M)
    answer = re.sub(r"0x[0-9a-f]+ in ", "", answer)
    answer = re.sub(r"^(Breakpoint \d+) at 0x[0-9a-f]+", r"\1", answer, flags=re.M)
    folders = "|".join(sorted(entry.name for entry in ROOT.iterdir() if entry.is_dir() and entry.name[0] != "."))
    return re.sub(rf"(?<= at )\S*/(?=(?:{folders})/)", "", answer).strip()  # a compiler cache may rewrite what stands before


def check(name, said, wanted):
    """Compares answers with patterns, command by command; a None wants nothing."""
    wrong = 0
    for (command, answer), patterns in zip(said, wanted):
        for pattern in [patterns] if isinstance(patterns, str) else patterns or []:
            if not re.search(pattern, answer, re.M):
                wrong += 1
                print(f"{name}: ({command}) does not say /{pattern}/ but\n{answer}\n")
        if "Traceback" in answer or "Python Exception" in answer:
            wrong += 1
            print(f"{name}: ({command}) shows Python's own trouble:\n{answer}\n")
    return wrong
