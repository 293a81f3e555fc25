# Builds print_cases.cpp against LibTorch and stores what it prints, one JSON line per tensor: recipe and text.
import os
import subprocess
import tempfile


def build(source, program):
    subprocess.run(
        ["g++", "-std=c++17", "-O0", "-w", source, "-o", program, "-I/usr/include/torch/csrc/api/include"]
        + ["-ltorch", "-ltorch_cpu", "-lc10"],
        check=True,
    )


def dump(folder, counts):
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "print_cases.cpp")
    with tempfile.TemporaryDirectory() as scratch:
        program = os.path.join(scratch, "print_cases")
        build(source, program)
        lines = subprocess.run([program], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    with open(os.path.join(folder, "printing.jsonl"), "wb") as f:
        f.write(lines)
    counts["printing"] = len(lines.splitlines())
