#!/usr/bin/env python3
"""Taper's summaries and commands in lldb: lldb_session.py PROGRAM. Exits with 77 (skipped) where lldb is missing or may not trace."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

script = pathlib.Path(__file__).resolve().parents[2] / "tools/debugger/taper_lldb.py"
lldb = shutil.which("lldb") or shutil.which("lldb-14")
if lldb is None:
    print("skipped: no lldb")
    sys.exit(77)
commands = [f"command script import {script}", "breakpoint set --name taper::Backward::run_entry", "run", "taper where",
            "taper tape", "taper mem", "up 4",
            "frame variable scale", "frame variable batch.x", "taper nonsense"]
call = [lldb, "--no-lldbinit", "--batch"]
for command in commands:
    call += ["--one-line", command]
# Debian's lldb looks for its Python module in the wrong folder.
modules = sorted(str(p.parent) for p in pathlib.Path("/usr/lib").glob("llvm-*/lib/python3*/*-packages/lldb"))
environment = {**os.environ, "PYTHONPATH": ":".join([*modules, "/usr/lib/python3/dist-packages"])}
out = subprocess.run(call + [sys.argv[1]], text=True, env=environment, timeout=300, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                     stderr=subprocess.STDOUT).stdout
if "stop reason = breakpoint" not in out:
    print(f"skipped: lldb may not trace here\n{out}")
    sys.exit(77)
wanted = [r"#\d+ div, recorded at session.cpp:\d+ in train; node 0 of this backward", r"^=> +#\d+ +div +session.cpp:\d+",
          r"entries alive hold", r"taper nonsense: taper tape \[N\]", r"scale = f32 \(2\) on cpu, leaf requiring grad: min 2",
          r"batch.x = f32 \(2, 3\) on cpu: min 0, max 5, mean 2.5; 0, 1, 2, 3, 4, 5"]
missing = [w for w in wanted if not re.search(w, out, re.M)]
if missing:
    sys.exit(f"lldb does not say {missing} but\n{out}")
print(f"lldb says all {len(wanted)}")
