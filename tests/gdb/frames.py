#!/usr/bin/env python3
"""What gdb shows in the middle of backward: at most four frames of ours from the user's to an op's derivative, and the
page map of memory. frames.py PROGRAM.

Exits with 77 (skipped) where gdb is missing or may not trace.
"""
import re
import shutil
import subprocess
import sys

MOST = 4
# The op's backward, and what it calls of its own op (the rule of a row of the elementwise table).
RULE = re.compile(r"taper::ops::\S*(Mul|BinaryOp)\S*::(gradients|backward)")

gdb = shutil.which("gdb")
if gdb is None:
    print("skipped: no gdb")
    sys.exit(77)
commands = ["set pagination off", "set breakpoint pending on", "set print frame-arguments none",
            "break taper::ops::rows::Mul::gradients", "run", "backtrace",
            'printf "%s\\n", ((const char* (*)()) taper_mem_map)()']
call = [gdb, "-nx", "-batch"]
for command in commands:
    call += ["-ex", command]
out = subprocess.run(call + [sys.argv[1]], capture_output=True, text=True, timeout=300)
text = out.stdout + out.stderr
if "Cannot PTRACE" in text or "Operation not permitted" in text or "ptrace:" in text:
    print("skipped: gdb may not trace here\n" + text)
    sys.exit(77)
frames = re.findall(r"^#\d+\s+(?:0x[0-9a-f]+ in )?(.*)$", text, re.M)
print("\n".join(frames))
user = next((i for i, f in enumerate(frames) if f.startswith("main")), None)
if user is None:
    sys.exit("no frame of main: did the breakpoint stop?\n" + text)
ours = [f for f in frames[:user] if not RULE.search(f)]
print(f"{len(ours)} frames between the user's and the rule")
if not all("at " in f or "from " in f for f in frames):
    sys.exit("a frame without a place")
if not re.search(r"frames\.cpp:7", frames[user]):
    sys.exit("the user's frame does not name its line")
if len(ours) > MOST:
    sys.exit(f"more than {MOST}")
if "Couldn't write extended state status" in text:
    print("the map is passed over: gdb cannot call functions on this machine")
elif not re.search(r"^\s*0 B \[[^\]]+\].*of stream 0", text, re.M) or "reserved" not in text:
    sys.exit("taper_mem_map() shows no map\n" + text)
