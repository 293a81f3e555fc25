#!/usr/bin/env python3
"""Refuses weak functions that a kernel object defines outside its instruction set's namespace: weak_symbols.py BUILD_DIR.

The linker keeps one of several equal weak symbols. If an inline function compiled with AVX-512 is the one it keeps,
the baseline path crashes on the machines it exists for. Cure: always_inline, or a name inside the namespace.
Weak data (nm's V and u) is the same whichever copy is kept, and may stay.
"""
import pathlib
import re
import subprocess
import sys

build = pathlib.Path(sys.argv[1])
objects = sorted(build.glob("cpu/CMakeFiles/taper_kernels_*.dir/**/*.o"))
bad = []
for path in objects:
    isa = re.search(r"taper_kernels_(\w+)\.dir", path.as_posix())[1]
    listing = subprocess.run(["nm", "-C", "--defined-only", path], check=True, capture_output=True, text=True).stdout
    for line in listing.splitlines():
        match = re.match(r"[0-9a-f]+ W (.+)", line)
        inside = match and re.search(rf"(?<!\w){isa}::|^_Z\w*3cpu{len(isa)}{isa}", match[1])  # nm leaves some mangled
        if match and not inside:
            bad.append(f"{path.name} ({isa}): weak {match[1][:200]}")
print("\n".join(bad) or f"{len(objects)} kernel objects")
sys.exit(bool(bad))
