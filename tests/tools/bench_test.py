#!/usr/bin/env python3
"""Runs groups of taper_bench for one tiny round: bench_test.py PROGRAM. What they measure is not looked at."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())


class Bench(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_bench(self, *arguments):
        done = subprocess.run([PROGRAM, *arguments, "--tiny", "--rounds", "1"], cwd=self.folder, timeout=120,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def rows(self, group, *arguments):
        """The JSON of a run by name, and what it printed."""
        printed = self.run_bench(group, "--json", "rows.json", "--svg", "rows.svg", *arguments)
        self.assert_picture("rows.svg")
        rows = json.loads((self.folder / "rows.json").read_text())
        keys = {"name", "threads", "ours", "peer", "peer_name", "limit", "unit", "ratio", "goal", "met"}
        for row in rows:
            self.assertEqual(set(row), keys)
            self.assertIn(row["name"], printed)
        return {row["name"]: row for row in rows}, printed

    def assert_picture(self, name, *texts):
        root = xml.parse(self.folder / name).getroot()
        self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
        drawn = " ".join(text for text in root.itertext())
        self.assertNotIn("nan", drawn.replace("without arithmetic", "").split())
        for text in texts:
            self.assertIn(text, drawn)

    def test_gemm(self):
        rows, printed = self.rows("gemm", "--threads", "1,2")
        self.assertIn("gemm, 1 thread,", printed)
        self.assertIn("gemm, 2 threads,", printed)
        for name in ("64x64x64 nn", "128x128x128 nn", "8x256x784 nt", "16x16x16 tn x4", "64x64x64 nn bf16"):
            self.assertGreater(rows[name]["ours"], 0, name)
        square = rows["128x128x128 nn"]
        if square["peer_name"] == "limit":  # not on machines whose peak is not known
            self.assertAlmostEqual(square["goal"], 1 / 0.75)
            self.assertEqual(square["met"], square["ratio"] <= square["goal"])

    def test_kernels(self):
        rows, _ = self.rows("kernels", "--growth", "growth.svg")
        for name in ("add", "copy, transposed", "softmax, middle dim", "batch_norm", "normal"):
            self.assertGreater(rows[name]["ours"], 0, name)
            self.assertEqual(rows[name]["peer_name"], "limit")
        self.assert_picture("growth.svg", "softmax, middle dim", "transpose")

    def test_train(self):
        rows, _ = self.rows("train", "--roofline", "roofs.svg")
        steps = ("MLP 64", "MLP 512", "CNN NCHW", "CNN channels_last", "GPT", "Fashion-MNIST epoch")
        for name in steps:
            self.assertGreater(rows[name]["ours"], 0, name)
            self.assertGreater(rows[name]["limit"], 0, name)
        better = rows["CNN, better layout"]["ours"]
        self.assertEqual(better, min(rows["CNN NCHW"]["ours"], rows["CNN channels_last"]["ours"]))
        above = rows["MLP 64 above its GEMMs"]["ours"]
        self.assertAlmostEqual(above, rows["MLP 64"]["ours"] - rows["MLP 64"]["limit"])
        self.assert_picture("roofs.svg", "MLP, batch 64", "GPT", "FLOP/byte")

    def test_an_unknown_group_is_an_error(self):
        done = subprocess.run([PROGRAM, "gem"], capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("gem", done.stderr + done.stdout)


if __name__ == "__main__":
    unittest.main()
