#!/usr/bin/env python3
"""Checks what nvcc made of the CUDA column: wide loads and stores where elements lie densely, no kernel that spills.

usage: device_code.py libtaper.so|x.cu.o...   Needs cuobjdump, from $CUOBJDUMP, the PATH or beside nvcc; exits 77 without it.
"""
import os
import re
import shutil
import subprocess
import sys

# Kernels over packs of 16 bytes: the functor, what is written, what is read.
PACKED = re.compile(r"(?:unary|binary)_kernel<taper::fn::portable::(.+), ([\w: ]+), ([\w: ]+)>\(taper::cuda::Rows")
MUST_HAVE = ("Add", "Mul", "Relu")  # in f32; looked for by name, so that a kernel that is renamed is missed
# Argument reduction of the f64 functions keeps an array of digits, which is indexed at run time.
MAY_HAVE_STACK = re.compile(r"portable::(Sin|Cos|Tan)\b")


def cuobjdump():
    beside = os.path.join(os.path.dirname(os.path.realpath(shutil.which("nvcc") or "nvcc")), "cuobjdump")
    for path in (os.environ.get("CUOBJDUMP"), shutil.which("cuobjdump"), beside):
        if path and os.access(path, os.X_OK):
            return path
    print("no cuobjdump: the device code is not looked at")
    sys.exit(77)


def dump(tool, option, file):
    run = subprocess.run([tool, option, file], capture_output=True, text=True)
    if run.returncode != 0:  # it needs nvdisasm beside it
        print(f"{tool} {option} fails: {run.stderr.strip()}; the device code is not looked at")
        sys.exit(77)
    text = run.stdout
    return subprocess.run(["c++filt"], input=text, check=True, capture_output=True, text=True).stdout


def wrong_width(name, code):
    """Why the kernel is not as wide as it should be, or None."""
    found = PACKED.search(name)
    if not found or found.group(2) != found.group(3):
        return None  # no elementwise kernel, or one that reads and writes different sizes
    missing = [op for op in ("LDG.E.128", "STG.E.128") if op not in code]
    return "has no " + " and no ".join(missing) if missing else None


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    tool = cuobjdump()
    errors, packed, kernels = [], set(), 0
    for file in sys.argv[1:]:
        for part in dump(tool, "-sass", file).split("Function : ")[1:]:
            name, code = part.split("\n", 1)
            if reason := wrong_width(name, code):
                errors.append(f"{name.strip()}: {reason}")
            if (found := PACKED.search(name)) and found.groups()[1:] == ("float", "float"):
                packed.add(found.group(1))
        for name, stack in re.findall(r"Function (.+):\n\s*REG:\d+ STACK:(\d+)", dump(tool, "-res-usage", file)):
            kernels += 1
            if stack != "0" and not MAY_HAVE_STACK.search(name):
                errors.append(f"{name}: keeps {stack} bytes of each thread in memory")
    errors += [f"no kernel for {functor} of f32 was found" for functor in MUST_HAVE if functor not in packed]
    if kernels == 0:
        errors.append("no kernel was found")
    print(*errors, sep="\n")
    print(f"{kernels} kernels, {len(errors)} errors")
    sys.exit(bool(errors))


if __name__ == "__main__":
    main()
