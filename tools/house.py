#!/usr/bin/env python3
"""Checks the rules of the house: who may include whom, how long a file may be, where macros may live, what is named where.

Run from the root of the tree; looks at every file that git would take. Prints what is wrong and fails, or warns.
"""
import pathlib
import re
import subprocess
import sys

# Folder -> folders it may include besides itself. Read downwards it is the order of the tree.
MAY_INCLUDE = {
    "core/base": set(),
    "allocator": {"core/base"},
    "core": {"core/base", "allocator"},
    "cpu": {"core", "core/base", "allocator"},
    "cuda": {"core", "core/base", "allocator"},
    "autograd": {"core", "core/base"},
    "nn": {"core", "core/base", "autograd"},
    "optim": {"core", "core/base", "autograd"},
    "data": {"core", "core/base", "autograd"},
    "distributed": {"core", "core/base", "allocator", "autograd", "nn", "optim", "data"},
    "serving": {"core", "core/base", "allocator", "autograd", "nn", "data"},
}
PUBLIC = {"core", "core/base", "allocator", "autograd", "nn", "optim", "data", "distributed", "serving"}
MAY_INCLUDE |= {
    "taper.h": PUBLIC,
    "torch_compat": PUBLIC | {"taper.h"},
    "examples": {"taper.h"},  # proves that the public surface is enough
    "benchmarks": PUBLIC | {"taper.h"},
    "tools": PUBLIC | {"taper.h"},
    "tests": PUBLIC | {"taper.h", "cpu", "cuda", "tools"},
}
# One file -> more that it alone may include.
MAY_ALSO = [(r"distributed/nccl_.*", {"cuda"})]
# A third party's headers -> the files that may see them.
OUTSIDERS = [
    (r"cuda|cublas|cooperative_groups|cub/|thrust/|nvtx3/|mma\.h", r"cuda/|distributed/nccl_|tests/cuda/|benchmarks/gpu_peers\.cpp"),
    (r"nccl\.h", r"distributed/nccl_"),
    (r"dnnl|omp\.h", r"benchmarks/"),
    (r"cblas|lapacke", r"cpu/gemm_blas\.cpp|tests/reference/|benchmarks/"),
    (r"spdlog/|fmt/", r"core/base/log\.cpp"),
    (r"gtest/|gmock/", r"tests/"),
    (r"benchmark/", r"benchmarks/"),
    (r"boost/context", r"cuda/emulated/"),
    (r"boost/(beast|asio)", r"serving/"),
    (r"nlohmann/", r"[a-z_/]+\.cpp"),
    (r"zlib\.h", r"data/[a-z_]+\.cpp|tests/|benchmarks/peers/"),
    (r"CLI/", r"tools/|benchmarks/"),
    (r"torch/", r"torch_compat/|tests/consumer/|tests/ports/|tools/golden/|benchmarks/"),
]
# Headers too heavy, or not parsed by every compiler of ours, for a public header.
HEAVY = {"algorithm", "filesystem", "random", "iostream", "functional", "ranges", "source_location", "regex"}

SOFT_LINES, HARD_LINES = 400, 600
LONG_BY_RIGHT = {"core/tensor.h"}  # the list of what a Tensor can do; splitting it would hide it
OF_THE_CPU = {"dispatch", "gemm_blas", "lines", "loops", "move", "parallel"}  # files that know one machine
OF_CUDA = {"index_walk", "radix_sort"}
UNSUPPORTED = set()  # slots that a column may lack
MOST_MACROS = 12
MACROS_OF_OTHERS = ("cuda/emulated/", "torch_compat/", "tests/consumer/", "tests/core/math_bits_")  # they stand in for others' headers
HIDDEN_MACHINE = r"(?<![\w.])/(?:work|farm|home|root|Users)/|/tmp/\w+\.\w{4,}"
CODE = {".h", ".cpp", ".cu", ".cuh"}

errors, warnings, macros = [], [], {}


def layer(name):
    """The folder whose rules a file of ours follows."""
    if name.startswith("core/base/"):
        return "core/base"
    return name.split("/")[0]


def check_includes(name, number, quote, target):
    where, own = f"{name}:{number}", layer(name)
    public_header = own in PUBLIC | {"taper.h"} and name.endswith(".h")
    if quote == "<":
        for pattern, homes in OUTSIDERS:
            if re.match(pattern, target) and not re.match(homes, name):
                errors.append(f"{where}: <{target}> is not for this file")
        if public_header and target in HEAVY:
            errors.append(f"{where}: <{target}> is too heavy for a public header")
        if target.startswith("taper/") and not name.startswith("tests/consumer/"):
            errors.append(f'{where}: ours go in quotes: "{target}"')
        return
    if not target.startswith("taper/"):
        errors.append(f'{where}: "{target}" must be written from the top: "taper/..."')
        return
    target = target.removeprefix("taper/")
    to = layer(target)
    allowed = MAY_INCLUDE[own] | {own}
    for pattern, more in MAY_ALSO:
        if re.match(pattern, name):
            allowed = allowed | more
    if to not in allowed:
        errors.append(f"{where}: {own} may not include {to} ({target})")
    if not pathlib.Path(target).exists():
        errors.append(f"{where}: there is no {target}")


def check_code(path):
    name, lines = path.as_posix(), path.read_text().splitlines()
    if not lines or not re.match(r"// \S.*\w", lines[0]):
        errors.append(f"{name}:1: the first line must be a // sentence that says what the file knows")
    if len(lines) > HARD_LINES and name not in LONG_BY_RIGHT:
        errors.append(f"{name}: {len(lines)} lines (at most {HARD_LINES}); split it by what it knows")
    elif len(lines) > SOFT_LINES and name not in LONG_BY_RIGHT:
        warnings.append(f"{name}: {len(lines)} lines (more than {SOFT_LINES} is a reason to look)")
    if path.suffix in {".h", ".cuh"} and "#pragma once" not in lines:
        errors.append(f"{name}: no #pragma once")
    first = None
    for number, line in enumerate(lines, 1):
        if match := re.match(r"\s*#\s*define\s+(\w+)", line):
            if not name.startswith(MACROS_OF_OTHERS):
                macros.setdefault(match[1], f"{name}:{number}")
        if match := re.match(r'\s*#\s*include\s+([<"])([^>"]+)[>"]', line):
            first = first or match[2]
            check_includes(name, number, *match.groups())
    own_header = path.with_suffix(".h")
    if path.suffix in {".cpp", ".cu"} and own_header.exists() and first != f"taper/{own_header.as_posix()}":
        errors.append(f'{name}: must include its own header first ("taper/{own_header.as_posix()}")')


def check_columns(names):
    """The CPU and the CUDA column have the same files, but for those that know one machine, and lack no slot."""
    columns = {}
    for folder, suffix in (("cpu", ".cpp"), ("cuda", ".cu")):
        columns[folder] = {pathlib.Path(n).stem for n in names if re.fullmatch(rf"{folder}/[^/]+{re.escape(suffix)}", n)}
    columns["cpu"] -= OF_THE_CPU
    columns["cuda"] -= OF_CUDA
    for name in sorted(columns["cpu"] ^ columns["cuda"]):
        errors.append(f"cpu/{name}.cpp and cuda/{name}.cu: one is there without the other")
    for name in names:
        if not re.fullmatch(r"(cpu|cuda)/[^/]+\.(h|cpp|cu|cuh)", name):
            continue
        for slot in re.findall(r'unsupported<"(\w+)">', pathlib.Path(name).read_text()):
            if slot not in UNSUPPORTED:
                errors.append(f"{name}: the slot {slot} is unsupported and not on the list of those that may be")


def check_ops(names):
    """Every final Op class is named in the list that the tests enumerate."""
    listing = pathlib.Path("autograd/ops/all_ops.h")
    if not listing.exists():
        return
    listed = set(re.findall(r"\w+", re.sub(r"//.*", "", listing.read_text())))
    for name in names:
        if not re.fullmatch(r"autograd/ops/\w+\.(h|cpp)", name):
            continue
        # Templates over rows are listed by their rows.
        text = re.sub(r"template\s*<class Row>\s*class\s+\w+", "", pathlib.Path(name).read_text())
        for kind in re.findall(r"(?:class|struct)\s+(\w+)\s+final\s*:[^{;]*\b\w*Op\b", text):
            if kind not in listed:
                errors.append(f"{name}: op {kind} is not named in all_ops.h")


def check_text(path):
    try:
        text = path.read_text()
    except UnicodeDecodeError:
        return  # data
    for number, line in enumerate(text.splitlines(), 1):
        if re.search(HIDDEN_MACHINE, line):
            errors.append(f"{path}:{number}: a path of one machine")


def main():
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], check=True,
                            capture_output=True, text=True).stdout.split("\0")
    names = sorted({n for n in listed if n and pathlib.Path(n).is_file()})
    for name in names:
        path = pathlib.Path(name)
        check_text(path)
        if path.suffix in CODE and layer(name) in MAY_INCLUDE and not name.startswith("cuda/emulated/"):
            check_code(path)
        if re.fullmatch(r"cuda/[^./]+", name):
            errors.append(f"{name}: the toolkit owns <cuda/...> without an extension")
    if "core" in pathlib.Path(".gitignore").read_text().split():
        errors.append(".gitignore: a bare `core` line hides the folder")
    for macro, where in macros.items():
        if not macro.startswith("TAPER_"):
            errors.append(f"{where}: macro {macro} does not start with TAPER_")
    if len(macros) > MOST_MACROS:
        errors.append(f"{len(macros)} macros (at most {MOST_MACROS}): " + ", ".join(sorted(macros)))
    check_columns(names)
    check_ops(names)
    for line in warnings:
        print("warning:", line)
    print("\n".join(errors) or f"house in order: {len(names)} files, {len(macros)} macros, {len(warnings)} warnings")
    sys.exit(bool(errors))


main()
