#!/usr/bin/env python3
"""Runs what trains with --device: devices_test.py FOLDER_OF_PROGRAMS.

On emulated devices each must print, but for times, what it prints on the CPU; without one it must say so.
"""
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile
import unittest

PROGRAMS = pathlib.Path(sys.argv.pop(1)).resolve()
TIMES = re.compile(r"\d+(\.\d+)? ?(s\b|samples/s|ms\b)|/tmp/\S+")

IMAGES = tempfile.TemporaryDirectory()

# Each trains for a few steps; cnn and mlp exit with 1, as they have not learned much by then.
EXAMPLES = {
    "train": [IMAGES.name],
    "mlp": ["--data", "glyphs", "--epochs", "1", "--limit", "256"],
    "cnn": ["--data", "glyphs", "--epochs", "1", "--limit", "64"],
    "char_gpt": ["--steps", "1", "--sample", "2"],
}


def write_images():
    """Noise, in the files of MNIST."""
    noise = random.Random(1)
    for prefix, count in ("train", 128), ("t10k", 50):
        pixels, labels = noise.randbytes(count * 28 * 28), bytes(i % 10 for i in range(count))
        folder = pathlib.Path(IMAGES.name)
        (folder / f"{prefix}-images-idx3-ubyte").write_bytes(struct.pack(">4i", 0x803, count, 28, 28) + pixels)
        (folder / f"{prefix}-labels-idx1-ubyte").write_bytes(struct.pack(">2i", 0x801, count) + labels)


def run(program, *arguments, devices=None):
    environment = dict(os.environ)
    if devices is not None:
        environment["TAPER_EMULATED_DEVICES"] = str(devices)
    done = subprocess.run([PROGRAMS / program, *arguments], capture_output=True, text=True, timeout=300, env=environment)
    return done.returncode, TIMES.sub("#", done.stdout), TIMES.sub("#", done.stderr)


class Examples(unittest.TestCase):
    def test_train_alike_on_the_cpu_and_on_cuda(self):
        for name, arguments in EXAMPLES.items():
            with self.subTest(name):
                cpu, cuda = (run(f"examples/{name}", *arguments, "--device", device) for device in ("cpu", "cuda"))
                self.assertRegex(cpu[1], r"loss|nats")
                self.assertEqual(cpu, cuda)

    def test_say_what_is_wrong_with_a_device(self):
        for name, arguments in EXAMPLES.items():
            for device, devices, message in (("cuda", 0, "there is no device cuda:0; this machine has 0"),
                                             ("cuda:2", 2, "there is no device cuda:2; this machine has 2"),
                                             ("gpu", None, "gpu")):
                with self.subTest(f"{name} --device {device}"):
                    code, _, err = run(f"examples/{name}", *arguments, "--device", device, devices=devices)
                    self.assertEqual(code, 1)
                    self.assertTrue(err.startswith(f"{name}: "), err)
                    self.assertIn(message, err)


class Demo(unittest.TestCase):
    def setUp(self):
        self.runs = tempfile.TemporaryDirectory()
        self.addCleanup(self.runs.cleanup)

    def demo(self, device, *more, devices=None, name=None):
        return run("taper", "run", "demo", "--glyphs", "--limit", "64", "--batch", "16", "--epochs", "1", "--runs",
                   self.runs.name, "--name", name or device, "--device", device, *more, devices=devices)

    def log(self, name):
        text = (pathlib.Path(self.runs.name) / name / "log.jsonl").read_text()
        return re.sub(r'"samples_per_second":[^,}]*', "", text)

    def test_trains_alike_on_the_cpu_and_on_cuda(self):
        for device in "cpu", "cuda":
            self.assertEqual(self.demo(device)[0], 0)
        self.assertEqual(self.log("cpu"), self.log("cuda"))
        models = [(pathlib.Path(self.runs.name) / name / "model.safetensors").read_bytes() for name in ("cpu", "cuda")]
        self.assertEqual(*models)

    def test_goes_on_on_another_device(self):
        self.assertEqual(self.demo("cpu")[0], 0)
        self.assertEqual(self.demo("cuda", "--max-steps", "2", name="moves")[0], 75)
        self.assertEqual(self.demo("cpu", "--resume", name="moves")[0], 0)
        self.assertEqual(self.log("cpu"), self.log("moves"))

    def test_says_what_is_wrong_with_a_device(self):
        code, _, err = self.demo("cuda", devices=0)
        self.assertEqual(code, 1)
        self.assertIn("there is no device cuda:0; this machine has 0", err)


write_images()
unittest.main()
