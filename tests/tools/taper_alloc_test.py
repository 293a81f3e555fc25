#!/usr/bin/env python3
"""Runs `taper alloc` as a user does: taper_alloc_test.py PROGRAM.

Figures of PyTorch's policies are those that its users reported; what a replay prints is the same each time.
"""
import json
import os
import pathlib
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
EXAMPLES = pathlib.Path(PROGRAM).parent / "examples"
MIB, GIB = 1 << 20, 1 << 30
TRAINING = ["gradient_penalty", "10"]  # prints no times
COMMANDS = "trace", "replay", "min-capacity", "report", "map", "plan", "generate", "convert"
POLICIES = ["taper", "torch_native", "torch_expandable"]


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def alloc(self, *arguments, **environment):
        clean = {k: v for k, v in os.environ.items() if k != "TAPER_ALLOC"}
        done = subprocess.run([PROGRAM, "alloc", *map(str, arguments)], capture_output=True, text=True, timeout=120,
                              cwd=self.folder, env=clean | environment)
        self.assertNotRegex(done.stderr, "terminate called|Sanitizer")
        return done.returncode, done.stdout, done.stderr

    def good(self, *arguments, **environment):
        code, out, err = self.alloc(*arguments, **environment)
        self.assertEqual(code, 0, err)
        return out

    def json(self, *arguments):
        return json.loads(self.good(*arguments, "--json"))

    def refused(self, *arguments, says, code=1):
        got, out, err = self.alloc(*arguments)
        self.assertEqual((got, out), (code, ""), err)
        self.assertRegex(err, says)


class Help(Folder):
    def test_every_command_has_examples(self):
        self.assertIn("Examples:", self.good("--help"))
        for command in COMMANDS:
            with self.subTest(command):
                text = self.good(command, "--help")
                self.assertIn(f"taper alloc {command}", text)
                self.assertIn("--json", text)

    def test_a_command_is_needed(self):
        for words in [], ["walk"], ["replay"], ["map"], ["report", "pins"], ["trace"], ["convert", "x"]:
            code, out, _ = self.alloc(*words)
            self.assertGreater(code, 0, out)


class Replay(Folder):
    def runs(self, *arguments):
        return self.json("replay", *arguments)["runs"]

    def test_what_users_reported(self):
        # pytorch's devlog: 8 blocks of 16 MiB, freed, then 4 of 32 MiB. And the sum of twelve records.
        native, expandable = self.runs("small_then_large", "--policy", "torch_native,torch_expandable")
        self.assertEqual((native["reserved_peak"], expandable["reserved_peak"]), (256 * MIB, 140 * MIB))
        self.assertEqual(native["max_load"], 128 * MIB)
        records, = self.runs("embedding_records", "--policy", "torch_native")
        self.assertEqual(records["reserved_peak"], 10770 * MIB)

    def test_out_of_memory_says_where(self):
        arguments = ["splinters", "--capacity", "16G"]
        native, taper = self.runs(*arguments, "--policy", "torch_native,taper")
        self.assertEqual((native["finished"], taper["finished"]), (False, True))
        self.assertEqual(native["events_done"], 184)
        self.assertIn("out of memory on sim: asked for 11643387904 bytes", native["failure"])
        text = self.good("replay", *arguments)
        self.assertIn("out of memory at event 184\n", text)
        self.assertIn("splinters under torch_native\nout of memory on sim", text)
        self.assertNotIn("under taper\n", text)

    def test_ours_is_never_worse(self):
        ratios = {}
        for run in self.runs("corpus"):
            self.assertTrue(run["finished"])
            ratios.setdefault(run["trace"], {})[run["policy"]] = run["peak_ratio"]
        self.assertEqual(len(ratios), 7)
        for trace, by_policy in ratios.items():
            self.assertLessEqual(by_policy["taper"], by_policy["torch_expandable"], trace)
            self.assertLess(by_policy["taper"], by_policy["torch_native"], trace)

    def test_figures_agree(self):
        for run in self.runs("pins", "stuck_stream", "fsdp"):
            peak = run["at_peak"]
            self.assertEqual(peak["reserved"], run["reserved_peak"], run["trace"])
            self.assertEqual(peak["reserved"],
                             peak["allocated"] + peak["pending"] + peak["releasable"] + peak["pinned"])
            self.assertLessEqual(peak["requested"], peak["allocated"])
            self.assertLessEqual(run["max_load"], run["allocated_peak"])
            for share in "internal_fragmentation", "external_fragmentation", "scattered", "free_sum_of_squares":
                self.assertTrue(0 <= peak[share] <= 1, (run["trace"], run["policy"], share, peak[share]))

    def test_the_same_every_time(self):
        first = self.good("replay", "stuck_stream", "pins")
        self.assertEqual(first, self.good("replay", "stuck_stream", "pins"))
        self.assertEqual(len(first.splitlines()), 2 * 7 + 3)
        for names in ["stuck_stream"], ["fsdp", "--timing-seed", "7"]:
            once, threads = self.runs(*names), self.runs(*names, "--threads", "2")
            self.assertEqual(once, threads)
        # PyTorch asks what has finished; ours waits in order, so timing changes nothing.
        hashes = {self.runs("fsdp", "--policy", "taper", "--timing-seed", seed)[0]["placement_hash"] for seed in range(8)}
        self.assertEqual(len(hashes), 1)
        hashes = {self.runs("fsdp", "--policy", "torch_native", "--timing-seed", s)[0]["placement_hash"] for s in range(8)}
        self.assertGreater(len(hashes), 1)

    def test_times_only_when_asked(self):
        self.assertNotIn("ns/event", self.good("replay", "kv_cat"))
        self.assertIn("ns/event", self.good("replay", "kv_cat", "--time", "3"))
        self.assertGreater(self.runs("kv_cat", "--time", "1")[0]["nanoseconds_per_event"], 0)

    def test_brief(self):
        text = self.good("replay", "small_then_large", "small_then_large", "splinters", "--brief", "--capacity", "16G")
        head, rows = text.splitlines()[2].split(), [line.split() for line in text.splitlines()[3:]]
        self.assertEqual(head, ["trace", "max", "load", *POLICIES])
        self.assertEqual(rows[0], rows[1])
        self.assertEqual(rows[0], "small_then_large 128 MiB 1.000 2.000 1.094".split())
        self.assertEqual((rows[2][0], rows[2][4]), ("splinters", "-"))
        self.assertEqual(rows[3][:2] + rows[3][3:4], ["geometric", "mean", "2.000"])

    def test_options(self):
        plain, split = (self.runs("oversize", "--policy", "torch_native", *more)[0]
                        for more in ([], ["--options", "max_split_size:128M"]))
        self.assertNotEqual(plain["placement_hash"], split["placement_hash"])
        self.assertIn("max_split_size:134217728", split["options"])

    def test_mistakes(self):
        self.refused("replay", "nowhere.trace", says="'nowhere.trace' is no file, and no workload; workloads are embedding, ")
        self.refused("replay", "pins", "nowhere", says="'nowhere' is no file")
        self.refused("replay", "pins", "--policy", "best", says="no policy 'best' to replay; there are taper, torch_native")
        self.refused("replay", "pins", "--policy", "taper,", says="no policy ''")
        self.refused("replay", "pins", "--policy", "taper,taper", says="--policy names taper twice")
        self.refused("replay", "pins", "--policy", "malloc", says="no policy 'malloc' to replay")
        self.refused("replay", "pins", "--options", "speed:9", says="--options speed:9: .* no key 'speed'; there are ")
        self.refused("replay", "pins", "--options", "slack:0", says="slack has no effect under policy:torch_native")
        self.refused("replay", "pins", "--policy", "taper", "--options", "trace:x", says="has no effect on a replay")
        self.refused("replay", "pins", "--capacity", "much", says="a size is written 512, 64K, 2M, 1.5G; got 'much'")
        for capacity in "0", "1M", "17T":
            self.refused("replay", "pins", "--capacity", capacity, says="a capacity is from 2M")
        code, _, err = self.alloc("replay", "pins", "--threads", "0")
        self.assertGreater(code, 0)
        self.assertIn("--threads", err)


class HostileFiles(Folder):
    def test_they_are_refused_by_every_command(self):
        samples = {"empty": b"", "text": b"hello\n", "short.trace": b"TAPRTRCE\x01", "os.pickle": b"\x80\x04cos\nsystem\n.",
                   "deep.json": b"[" * 100000, "half.json": b'{"devices": [', "folder": None,
                   "huge.trace": b"TAPRTRCE\x01\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"}
        for name, content in samples.items():
            path = self.folder / name
            path.mkdir() if content is None else path.write_bytes(content)
            for command in ["replay", name], ["min-capacity", name], ["map", name], ["plan", name], \
                    ["report", name, "-o", "out.html"], ["convert", name, "-o", "out.json"]:
                with self.subTest(command=command):
                    self.refused(*command, says=f"taper: .*{re.escape(name)}")
        self.assertEqual({p.name for p in self.folder.iterdir()}, set(samples))

    def test_a_free_of_what_is_not_out(self):
        (self.folder / "twice.txt").write_text("1 4096 512 0\n0 4096 512 0\n0 4096 512 0\n")
        self.refused("replay", "twice.txt", says="twice.txt: .*4096")


class MinCapacity(Folder):
    def test_to_the_page(self):
        names = "splinters", "small_then_large", "pins"
        for run in self.json("min-capacity", *names)["runs"]:
            at, below = (self.json("replay", run["trace"], "--policy", run["policy"], "--capacity", capacity)["runs"][0]
                         for capacity in (run["min_capacity"], run["min_capacity"] - 2 * MIB))
            self.assertTrue(at["finished"], run)
            self.assertFalse(below["finished"], run)
            self.assertGreaterEqual(run["min_capacity"], run["max_load"])

    def test_table(self):
        text = self.good("min-capacity", "small_then_large", "large_then_small", "--policy", "taper")
        self.assertEqual(text.splitlines()[1].split(), "small_then_large taper 128 MiB 128 MiB 1.000".split())
        self.assertIn("geometric mean: taper 1.000 (2)", text)

    def test_what_fits_nowhere(self):
        self.refused("min-capacity", "pins", "--policy", "taper", "--options", "limit:64M", says="finish at any capacity")


class Files(Folder):
    def test_list(self):
        names = [w["name"] for w in self.json("generate", "--list")]
        self.assertIn("pins", names)
        self.assertEqual(len(self.good("generate", "--list").splitlines()), len(names) + 1)

    def test_formats_keep_what_a_replay_sees(self):
        hashes = set()
        for file, start in ("kv.trace", b"TAPRTRCE"), ("kv.json", b"{"), ("kv", b"TAPRTRCE"):
            self.assertEqual(self.json("generate", "kv_cat", "-o", file)[0]["file"], file)
            self.assertTrue((self.folder / file).read_bytes().startswith(start), file)
            hashes.add(self.json("replay", file, "--policy", "taper")["runs"][0]["placement_hash"])
        hashes.add(self.json("replay", "kv_cat", "--policy", "taper")["runs"][0]["placement_hash"])
        self.assertEqual(len(hashes), 1)

    def test_folders(self):
        self.good("generate", "pins", "kv_cat", "-o", "many", "--format", "pickle")
        self.assertEqual(sorted(p.name for p in (self.folder / "many").iterdir()), ["kv_cat.pickle", "pins.pickle"])
        self.good("generate", "pins")
        self.assertTrue((self.folder / "pins.trace").exists())
        (self.folder / "file").write_text("mine")
        self.refused("generate", "pins", "kv_cat", "-o", "file", says="file is to be a folder for 2 files")
        self.assertEqual((self.folder / "file").read_text(), "mine")

    def test_convert(self):
        (self.folder / "rmm.csv").write_text("Thread,Time,Action,Pointer,Size,Stream\n"
                                             "1,10:00:00.000001,allocate,0x1000,1048576,0\n"
                                             "1,10:00:00.000002,free,0x1000,1048576,0\n")
        done, = self.json("convert", "rmm.csv", "-o", "rmm.json")
        self.assertEqual((done["events"], done["allocations"], done["max_load"]), (2, 1, MIB))
        self.assertIsInstance(json.loads((self.folder / "rmm.json").read_text()), dict)
        there, = self.json("convert", "rmm.json", "-o", "rmm.trace")
        self.assertEqual((there["events"], there["max_load"]), (2, MIB))
        self.assertIn("2 events, 1 allocation", self.good("import", "rmm.trace", "-o", "rmm.pickle"))

    def test_mistakes(self):
        self.refused("generate", says="--list")
        self.refused("generate", "pims", says="'pims' is no file, and no workload; workloads are .*pins")
        self.refused("generate", "pins", "--format", "xml", says="no format 'xml'; there are binary, json, pickle")
        self.refused("generate", "pins", "-o", "no/such/x.trace", says="no/such/x.trace")
        (self.folder / "a.trace").write_text("")
        self.refused("generate", "a.trace", says="no workload; --list")
        self.refused("convert", "corpus", "-o", "x", says="one file")


class Show(Folder):
    def test_map(self):
        text = self.good("map", "small_then_large", "--at", "3")
        self.assertIn("after event 3 of 26, which allocates 16.0 MiB", text)
        # 4 blocks of 16 MiB are 8 pages each.
        self.assertIn("[" + "".join(c * 8 for c in "abcd") + "] 64.00 MiB of stream 0, 0 B free", text)
        self.assertEqual(text, self.good("map", "small_then_large", "--at", "3"))
        wide = self.good("map", "small_then_large", "--at", "3", "--page", "16M")
        self.assertIn("[abcd]", wide)

    def test_map_at_the_peak(self):
        shown = self.json("map", "pins")
        run, = self.json("replay", "pins", "--policy", "taper")["runs"]
        self.assertEqual((shown["event"], shown["reserved"]), (run["at_peak"]["event"], run["reserved_peak"]))
        self.assertEqual(sum(s["bytes"] for s in shown["segments"]), shown["reserved"])
        live = [b for s in shown["segments"] for b in s["blocks"] if b["state"] == "live"]
        self.assertEqual(sum(b["bytes"] for b in live), shown["allocated"])
        self.assertEqual(sum(b["requested"] for b in live), shown["requested"])

    def test_map_mistakes(self):
        self.refused("map", "small_then_large", "--at", "26", says="has 26 events, 0 to 25; there is none of number 26")
        self.refused("map", "pins", "--policy", "taper,torch_native", says="one policy")
        self.refused("map", "pins", "--page", "1000", says="multiple of 512")
        self.refused("map", "all", says="many traces")
        self.refused("map", "splinters", "--policy", "torch_native", "--capacity", "16G", "--at", "200",
                     says="out of memory at event 184, before event 200")

    def test_report(self):
        done = self.json("report", "stuck_stream", "-o", "page.html")
        self.assertEqual([run["policy"] for run in done["runs"]], POLICIES)
        page = (self.folder / "page.html").read_text()
        self.assertEqual(len(page.encode()), done["bytes"])
        self.assertTrue(page.rstrip().endswith("</html>"))
        self.assertNotRegex(page, r"(src|href)\s*=\s*[\"']?(https?:)?//")
        text = self.good("report", "stuck_stream", "-o", "page.html", "--policy", "taper")
        self.assertRegex(text, r"page.html  .* 3 streams.*\n  taper +reserved .* times the max load\n")
        self.refused("report", "pins", "-o", "no/page.html", says="no/page.html")

    def test_devices(self):
        (self.folder / "two.json").write_text(self.two_devices())
        self.refused("map", "two.json", says="has several devices: say --device and one of left, right")
        self.refused("map", "two.json", "--device", "up", says="no device of that name; it has left, right")
        self.assertIn("two.json right under taper", self.good("map", "two.json", "--device", "right"))
        traces = [run["trace"] for run in self.json("replay", "two.json", "--policy", "taper")["runs"]]
        self.assertEqual(traces, ["two.json left", "two.json right"])

    def two_devices(self):
        self.good("generate", "small_then_large", "-o", "one.json")
        one = json.loads((self.folder / "one.json").read_text())
        device, = one["devices"]
        one["devices"] = [self.called(device, name) for name in ("left", "right")]
        return json.dumps(one)

    def called(self, device, name):
        return json.loads(json.dumps(device).replace('"sim"', f'"{name}"'))


class Plan(Folder):
    def test_two_equal_steps(self):
        done = self.json("plan", "gpt_fixed", "-o", "plan.json")
        self.assertEqual((done["step"], done["notes"]), (60, []))
        self.assertLessEqual(done["ratio"], 1.01)
        self.assertEqual(done["followed"]["device_calls_in_last_step"], 0)
        self.assertLessEqual(done["followed"]["peak_ratio"], 1.01)
        plan = json.loads((self.folder / "plan.json").read_text())
        self.assertEqual(len(plan["blocks"]), done["blocks"])
        self.no_two_share(plan)
        self.assertEqual(max(b["offset"] + -(-b["bytes"] // 512) * 512 for b in plan["blocks"]), plan["bytes"])
        self.assertIn("planned step 60, which does what step 59 did", self.good("plan", "gpt_fixed"))

    def no_two_share(self, plan):
        blocks = sorted(plan["blocks"], key=lambda b: b["begin"])
        out = []
        for b in blocks:
            out = [o for o in out if o["end"] > b["begin"]]
            for o in out:
                self.assertTrue(o["offset"] + o["bytes"] <= b["offset"] or b["offset"] + b["bytes"] <= o["offset"], (o, b))
            out.append(b)

    def test_steps_that_differ(self):
        text = self.good("plan", "pins")
        self.assertRegex(text, r"^steps 299 and 300 differ at events \d+ and \d+: one allocates \d+ bytes, the other allocates")
        self.assertIn("no two steps in a row are equal\nplanned the whole trace: 7500 blocks", text)

    def test_no_steps(self):
        (self.folder / "lives.csv").write_text("id,lower,upper,size\na,0,2,512\nb,1,3,1024\nc,2,4,512\n")
        text = self.good("plan", "lives.csv")
        self.assertIn("the trace has 0 steps, not two to compare\nplanned the whole trace: 3 blocks in 1.50 KiB, "
                      "1.0000 times their max load of 1.50 KiB", text)
        self.assertEqual(self.json("plan", "resnet_like", "--whole")["notes"], [])

    def test_a_search_finds_lower_plans(self):
        # A full rectangle of 4096 times and 4096 bytes, cut in two again and again: that it fits is known.
        chance, blocks = random.Random(4), [(0, 4096, 0, 4096)]
        while len(blocks) < 60:
            left, right, low, high = blocks.pop(blocks.index(max(blocks, key=lambda b: (b[1] - b[0]) * (b[3] - b[2]))))
            if right - left > high - low:
                cut = chance.randrange(left + 1, right)
                blocks += [(left, cut, low, high), (cut, right, low, high)]
            else:
                cut = chance.randrange(low + 1, high)
                blocks += [(left, right, low, cut), (left, right, cut, high)]
        chance.shuffle(blocks)
        rows = "".join(f"{i},{b[0]},{b[1]},{b[3] - b[2]}\n" for i, b in enumerate(blocks))
        (self.folder / "full.csv").write_text("id,lower,upper,size\n" + rows)
        greedy = self.json("plan", "full.csv", "--alignment", "1")
        self.assertGreater(greedy["bytes"], greedy["max_load"])
        found = self.json("plan", "full.csv", "--alignment", "1", "--search", "60", "-o", "plan.json")
        self.assertEqual((found["bytes"], found["bytes_before_search"], found["alignment"]), (4096, greedy["bytes"], 1))
        plan = json.loads((self.folder / "plan.json").read_text())
        self.no_two_share(plan)
        self.assertEqual(max(b["offset"] + b["bytes"] for b in plan["blocks"]), 4096)
        text = self.good("plan", "full.csv", "--alignment", "1", "--search", "60")
        self.assertIn("the search lowered it from ", text)
        self.assertLess(found["seconds"], 60)  # it ends at the max load
        self.assertIn("none that is lower: there is none", self.good("plan", "small_then_large", "--whole", "--search", "1"))

    def test_mistakes(self):
        self.refused("plan", "pins", "--alignment", "48", says="alignment of a plan must be a power of two, not 48")
        self.refused("plan", "pins", "--alignment", "much", says="a size is written 512, 64K")
        self.refused("plan", "gpt_checkpoint", "--whole", "--search", "1", says="at most 10000 blocks, not ")
        code, _, err = self.alloc("plan", "pins", "--search", "-1")
        self.assertGreater(code, 0)
        self.assertIn("--search", err)


class Trace(Folder):
    def record(self, *arguments, **environment):
        return self.alloc("trace", *arguments, "--", PROGRAM, "run", "demo", "--glyphs", "--limit", "64", "--batch",
                          "32", "--epochs", "1", "--threads", "1", **environment)

    def test_a_program_of_ours(self):
        for file in "run.trace", "run.json", "run.pickle":
            with self.subTest(file):
                code, out, err = self.record("-o", file)
                self.assertEqual(code, 0, err)
                self.assertRegex(out, rf"(?m)^{file}  .* (cpu|cuda:0): \d+ events, \d+ allocations")
                run, = self.json("replay", file, "--policy", "taper")["runs"]
                self.assertTrue(run["finished"])
                self.assertGreater(run["events"], 100)

    def test_what_was_set_is_kept(self):
        show = ["--", sys.executable, "-c", "import os; print(os.environ['TAPER_ALLOC'])"]
        _, out, _ = self.alloc("trace", "-o", "x.trace", *show, TAPER_ALLOC="slack:0.5")
        self.assertEqual(out, f"slack:0.5,trace:{pathlib.Path(self.folder).resolve() / 'x.trace'}\n")
        _, out, err = self.alloc("trace", *show, "--json", TAPER_ALLOC="slack:0.5")  # behind --: the program's
        self.assertIn("slack:0.5,trace:", out)

    def test_json_is_all_of_stdout(self):
        code, out, err = self.record("-o", "run.trace", "--json")
        self.assertEqual(code, 0, err)
        self.assertEqual(json.loads(out)["exit_code"], 0)

    def test_mistakes(self):
        self.refused("trace", "--", "true", says="true wrote no trace to taper.trace; only a program that makes tensors")
        self.refused("trace", "--", "nosuchprogram", says="cannot run nosuchprogram", code=127)
        self.refused("trace", "-o", "a,b", "--", "true", says="comma")
        for set_, says in ("trace:x", "already says where"), ("policy:malloc", "trace has no effect"), ("walk:1", "no key 'walk'"):
            code, out, err = self.alloc("trace", "--", "true", TAPER_ALLOC=set_)
            self.assertEqual((code, out), (1, ""))
            self.assertIn(says, err)
        code, _, err = self.alloc("trace", "--", sys.executable, "-c", "raise SystemExit(3)")
        self.assertEqual(code, 3)
        self.assertIn("ended with code 3 and wrote no trace", err)


class Surroundings(unittest.TestCase):
    """The host's arena where address space is scarce, and where another program keeps watch over memory."""

    def example(self, words, *before, limits={}, code=0, **environment):
        def limit():
            for which, bytes in limits.items():
                resource.setrlimit(which, (bytes, bytes))
        clean = {k: v for k, v in os.environ.items() if k != "TAPER_ALLOC"}
        done = subprocess.run([*before, EXAMPLES / words[0], *words[1:]], capture_output=True, text=True, timeout=240,
                              env=clean | {"TAPER_NUM_THREADS": "1"} | environment, preexec_fn=limit)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr if code else done.stdout

    def test_small_limits(self):
        for words in TRAINING, ["alloc_ladder"], ["alloc_churn"], ["alloc_gap"], ["alloc_sharing"]:
            plain = self.example(words)
            for which, mib in (resource.RLIMIT_AS, 700), (resource.RLIMIT_AS, 3000), (resource.RLIMIT_DATA, 300):
                with self.subTest(words[0], which=which, mib=mib):
                    self.assertEqual(self.example(words, limits={which: mib * MIB}), plain)

    def test_valgrind(self):
        if shutil.which("valgrind") is None:
            self.skipTest("there is no valgrind")
        plain = self.example(TRAINING)
        for options in "policy:malloc", "policy:taper":
            with self.subTest(options):
                self.assertEqual(self.example(TRAINING, "valgrind", "-q", "--error-exitcode=9", TAPER_ALLOC=options), plain)

    def test_labs_say_which_policy_they_show(self):
        for name in "alloc_ladder", "alloc_churn", "alloc_gap", "alloc_sharing":
            with self.subTest(name):
                self.assertIn("Of the arena, policy:taper", self.example([name], TAPER_ALLOC="trace_events:64"))
                self.assertRegex(self.example([name], code=2, TAPER_ALLOC="policy:malloc"),
                                 rf"^{name} shows the arena; .*policy:malloc.*run it without TAPER_ALLOC\n$")


if __name__ == "__main__":
    unittest.main()
