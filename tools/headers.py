#!/usr/bin/env python3
"""Compiles every header of ours alone and weighs the umbrella header: headers.py BUILD_DIR.

A header that compiles only after another is a trap for the next file; one that drags in half of the standard library
is paid for in every build of every user.
"""
import concurrent.futures
import os
import pathlib
import subprocess
import sys

UMBRELLA_LINES = 100_000  # what the preprocessor may hand on for `#include "taper/taper.h"`
ELSEWHERE = ("cuda/emulated/", "torch_compat/", "tests/compile_fail/")  # stand-ins that follow others' rules

include = pathlib.Path(sys.argv[1]) / "include"
compiler = os.environ.get("CXX", "g++")
base = [compiler, "-x", "c++", "-std=c++20", f"-I{include}", "-DTAPER_ISA=baseline", "-DTAPER_HAVE_BASELINE=1"]
emulated = ["-Icuda/emulated", "-DTAPER_CUDA_EMULATED=1"]


def failure(name):
    flags = emulated if name.startswith("cuda/") else []
    run = subprocess.run(base + flags + ["-Wall", "-Wextra", "-fsyntax-only", "-"],
                         input=f'#include "taper/{name}"\n', text=True, capture_output=True)
    return f"{name} does not compile alone:\n{run.stderr[:1500]}" if run.returncode else None


listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.h", "*.cuh"],
                        check=True, capture_output=True, text=True).stdout.split()
# Where there is an x.cpp the build has tried x.h already: house.py sees to it that it is included first.
headers = sorted({h for h in listed if not h.startswith(ELSEWHERE) and pathlib.Path(h).exists()
                  and not pathlib.Path(h).with_suffix(".cpp").exists()})
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    bad = [text for text in pool.map(failure, headers) if text]

weight = "no taper.h yet"
if pathlib.Path("taper.h").exists():
    text = subprocess.run(base + ["-E", "-"], input='#include "taper/taper.h"\n', text=True, capture_output=True).stdout
    lines = text.count("\n")
    weight = f"taper.h is {lines} preprocessed lines"
    if lines > UMBRELLA_LINES:
        bad.append(f"{weight}, at most {UMBRELLA_LINES}")
print("\n".join(bad) or f"{len(headers)} headers without a .cpp; {weight}")
sys.exit(bool(bad))
