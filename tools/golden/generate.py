# Writes all golden data: python3 tools/golden/generate.py [FOLDER]; needs python3-torch 1.13 (and g++ with libtorch-dev for printing).
import json
import os
import sys

import torch_setup
import edge
import gpt
import opinfo
import optimizers
import own_samples
import printing
import promotion
import recurrent


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "..", "..", "tests", "golden", "data")
    os.makedirs(folder, exist_ok=True)
    counts = {}
    own_samples.dump(folder, counts)
    opinfo.dump(folder, counts)
    opinfo.dump_errors(folder)
    for part in (promotion, gpt, optimizers, recurrent, edge, printing):
        part.dump(folder, counts)
    with open(os.path.join(folder, "counts.json"), "w") as f:
        json.dump({"torch": torch_setup.torch.__version__, "samples": dict(sorted(counts.items()))}, f, indent=0)
        f.write("\n")
    total = sum(os.path.getsize(os.path.join(folder, n)) for n in os.listdir(folder))
    print(f"{len(counts)} ops and tables, {sum(counts.values())} samples, {total / 2**20:.2f} MiB")


if __name__ == "__main__":
    main()
