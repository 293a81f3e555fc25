#!/usr/bin/env python3
"""Runs the taper command as a user does: taper_test.py PROGRAM.

What a run stopped and resumed leaves behind must equal, to the byte, what a run without a stop leaves.
"""
import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
STEPS = 40  # of an epoch
SMALL = ["--glyphs", "--limit", str(STEPS * 32), "--batch", "32", "--threads", "1"]
STOPPED = 75


def taper(*arguments, cwd=None):
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=120, cwd=cwd)
    return done.returncode, done.stdout, done.stderr


class Info(unittest.TestCase):
    def test_json(self):
        code, out, err = taper("info", "--json")
        self.assertEqual((code, err), (0, ""))
        self.assertGreaterEqual(json.loads(out)["threads"], 1)

    def test_text_says_the_same(self):
        words = [line.split()[0] for line in taper("info")[1].splitlines()]
        self.assertEqual(words, list(json.loads(taper("info", "--json")[1])))

    def test_help(self):
        for words, expected in (["--help"], "info"), (["run", "--help"], "demo"), (["run", "demo", "--help"], "--resume"):
            code, out, err = taper(*words)
            self.assertEqual((code, err), (0, ""))
            self.assertIn(expected, out)


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def demo(self, *arguments):
        return taper("run", "demo", *SMALL, *arguments, cwd=self.folder)

    def log(self, name):
        lines = (self.folder / "runs" / name / "log.jsonl").read_text().splitlines()
        # How fast it went is all that may differ.
        return [re.sub(r'"samples_per_second":[^,}]*', "", line) for line in lines]

    def model(self, name):
        return (self.folder / "runs" / name / "model.safetensors").read_bytes()

    def sane(self, text):
        self.assertNotRegex(text, r"(?i)\b(inf|nan)\b")
        for percent in re.findall(r"(?:acc|train|test|accuracy)\s+([\d.]+) %", text):
            self.assertLessEqual(float(percent), 100, text)


class Resume(Folder):
    def straight(self):
        code, out, _ = self.demo("--epochs", "2", "--name", "straight")
        self.assertEqual(code, 0)
        self.sane(out)
        entries = [json.loads(line) for line in (self.folder / "runs/straight/log.jsonl").read_text().splitlines()]
        self.assertEqual([e["step"] for e in entries if "loss" in e], list(range(1, 2 * STEPS + 1)))
        self.assertEqual([e["epoch"] for e in entries if "epoch" in e], [1, 2])

    def same(self, name):
        self.assertEqual(self.log(name), self.log("straight"))
        self.assertEqual(self.model(name), self.model("straight"))

    def test_after_max_steps(self):
        self.straight()
        for stop in 1, STEPS // 2, STEPS, STEPS + 1:
            with self.subTest(stop=stop):
                name = f"stop{stop}"
                code, out, _ = self.demo("--epochs", "2", "--name", name, "--max-steps", str(stop))
                self.assertEqual(code, STOPPED)
                self.assertIn(f"stopped after step {stop};", out)
                self.sane(out)
                code, out, _ = self.demo("--epochs", "2", "--name", name, "--resume")
                self.assertEqual(code, 0)
                self.assertIn(f"resumed after step {stop}\n", out)
                self.sane(out)
                self.same(name)

    def test_stop_at_the_very_end_ends(self):
        self.straight()
        code, out, _ = self.demo("--epochs", "2", "--name", "end", "--max-steps", str(2 * STEPS))
        self.assertEqual(code, 0, out)
        self.same("end")
        self.assertEqual(self.demo("--epochs", "2", "--name", "end", "--resume")[0], 0)
        self.same("end")

    def test_after_a_signal(self):
        self.straight()
        for sent, said in (signal.SIGTERM, "told to end"), (signal.SIGINT, "interrupted"):
            for line in " 50 %", "100 %":  # within an epoch; at or just after its last step
                with self.subTest(signal=sent, line=line):
                    name = f"{sent.name}{line.strip(' %')}"
                    self.signalled(name, sent, f"epoch 1/2  {line}", said)
                    code, out, _ = self.demo("--epochs", "2", "--name", name, "--resume")
                    self.assertEqual(code, 0)
                    self.sane(out)
                    self.same(name)

    def signalled(self, name, sent, at, said):
        command = [PROGRAM, "run", "demo", *SMALL, "--epochs", "2", "--name", name]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=self.folder) as process:
            out = ""
            for line in process.stdout:
                out += line
                if line.startswith(at):
                    process.send_signal(sent)
        self.sane(out)
        self.assertIn(at, out)
        # A machine that let the program run on after the line may have let it end.
        self.assertIn(process.returncode, (STOPPED, 0))
        if process.returncode == STOPPED:
            self.assertIn(said, out)

    def test_twice_at_the_same_step(self):
        self.straight()
        for resume in [], ["--resume"], ["--resume"]:
            code, _, _ = self.demo("--epochs", "2", "--name", "twice", "--max-steps", "50", *resume)
            self.assertEqual(code, STOPPED)
        self.assertEqual(self.demo("--epochs", "2", "--name", "twice", "--resume")[0], 0)
        self.same("twice")


class Output(Folder):
    def test_json_is_all_of_stdout(self):
        code, out, err = self.demo("--epochs", "1", "--json")
        self.assertEqual(code, 0)
        result = json.loads(out)
        self.assertEqual((result["run"], result["steps"]), ("runs/demo", STEPS))
        self.assertEqual(result["data"], "ten drawn glyphs")
        self.assertGreater(result["test_accuracy"], 0.2)
        self.sane(out + err)

    def test_json_of_a_stopped_run(self):
        code, out, _ = self.demo("--epochs", "1", "--max-steps", "3", "--json")
        self.assertEqual(code, STOPPED)
        self.assertEqual(json.loads(out), {"run": "runs/demo", "steps": 3, "stopped": "stopped"})

    def test_glyphs_asked_for_are_not_missing_data(self):
        self.assertNotIn("not found", self.demo("--epochs", "1", "--max-steps", "1")[1])

    def test_picture(self):
        self.assertEqual(self.demo("--epochs", "1")[0], 0)
        picture = (self.folder / "runs/demo/loss.svg").read_text()
        self.assertTrue(picture.startswith("<svg") and picture.rstrip().endswith("</svg>"))
        self.sane(picture)


class Mistakes(Folder):
    def refused(self, arguments, *words):
        code, out, err = taper(*arguments, cwd=self.folder)
        self.assertNotIn(code, (0, STOPPED), out)
        self.assertGreater(code, 0, "ended by a signal")
        self.assertNotRegex(out + err, r"\.cpp|terminate called")
        for word in words:
            self.assertIn(word, err)

    def test_words_and_options(self):
        self.refused([])
        self.refused(["walk"])
        self.refused(["run"])
        self.refused(["run", "demo", "--nonsense"], "--nonsense")
        for option, value in ("--epochs", "0"), ("--epochs", "two"), ("--batch", "-1"), ("--max-steps", "-1"), \
                ("--threads", "-1"), ("--limit", "0"):
            self.refused(["run", "demo", "--glyphs", option, value], option)
        self.refused(["run", "demo", "--glyphs", "--data", "x"], "--data")

    def test_names_stay_in_the_folder_of_runs(self):
        for name in "../x", "../../x", "..", ".", "a/b", "/x", "":
            self.refused(["run", "demo", *SMALL, "--name", name], "--name")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_batch_beyond_the_data(self):
        self.refused(["run", "demo", "--glyphs", "--limit", "50", "--batch", "64"], "64", "50")

    def test_no_data(self):
        self.refused(["run", "demo", "--data", "nowhere"], "nowhere")

    def test_resume(self):
        self.refused(["run", "demo", *SMALL, "--name", "never", "--resume"], "never")
        self.assertEqual(self.demo("--epochs", "2", "--max-steps", "3")[0], STOPPED)
        self.refused(["run", "demo", *SMALL, "--epochs", "3", "--resume"], "other settings", "epochs 2", "epochs 3")
        checkpoint = self.folder / "runs/demo/checkpoint.safetensors"
        checkpoint.write_bytes(checkpoint.read_bytes()[:1000])
        self.refused(["run", "demo", *SMALL, "--epochs", "2", "--resume"], "checkpoint")

    def test_a_folder_that_cannot_be(self):
        (self.folder / "file").write_text("")
        self.refused(["run", "demo", *SMALL, "--runs", "file"], "file")


if __name__ == "__main__":
    unittest.main()
