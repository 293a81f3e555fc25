#!/usr/bin/env python3
"""Looks at snapshot files as PyTorch's tools do, and lets Python's pickle write some: snapshot_test.py PROGRAM.

The rules of the viewer (memory_viz, the memory page) are told again here in our own words: they cannot be run offline.
"""
import json
import pathlib
import pickle
import pickletools
import subprocess
import sys
import tempfile
import unittest

PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
EXACT = 2 ** 53  # the page's numbers are doubles
PAGE = 20 * 2 ** 20
MOST_APPENDED = 1000
# What the page's own reader knows.
OPCODES = set("""PROTO FRAME MARK EMPTY_DICT EMPTY_LIST EMPTY_TUPLE APPEND APPENDS SETITEM SETITEMS TUPLE TUPLE1 TUPLE2
TUPLE3 LIST DICT BININT BININT1 BININT2 LONG1 BINFLOAT NEWTRUE NEWFALSE NONE SHORT_BINUNICODE BINUNICODE MEMOIZE BINGET
LONG_BINGET BINPUT LONG_BINPUT STOP""".split())
STATES = {"active_allocated", "active_pending_free", "inactive"}


def run(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout


def largest_append(data):
    """How many items one APPENDS takes at most: the page spreads them as a function's arguments."""
    depth, marks, most = 0, [], 0
    for opcode, _, _ in pickletools.genops(data):
        if opcode.name not in OPCODES:
            raise AssertionError(f"the page does not know {opcode.name}")
        if opcode.name == "MARK":
            marks.append(depth)
        elif opcode.name in ("APPENDS", "SETITEMS", "TUPLE", "LIST", "DICT"):
            base = marks.pop()
            if opcode.name == "APPENDS":
                most = max(most, depth - base)
            depth = base + (opcode.name in ("TUPLE", "LIST", "DICT"))
        else:
            depth += len(opcode.stack_after) - len(opcode.stack_before)
    return most


class Viewer:
    """What the page shows of one device: its segments and blocks while the events are undone, the last first."""

    def __init__(self, snapshot, device):
        self.segments = [[s["address"], s["total_size"], s["stream"]] for s in snapshot["segments"] if s["device"] == device]
        self.segments.sort()
        self.blocks = {}
        for segment in snapshot["segments"]:
            if segment["device"] != device:
                continue
            address = segment["address"]
            for block in segment["blocks"]:
                if block["state"] != "inactive":
                    self.blocks[address] = block["size"]
                address += block["size"]

    def segment_of(self, address):
        return next((s for s in self.segments if s[0] <= address < s[0] + s[1]), None)

    def undo_unmap(self, address, size, stream):
        at = next((i for i, s in enumerate(self.segments) if s[0] > address), len(self.segments))
        self.segments.insert(at, [address, size, stream])
        for i in (at, at - 1):  # grows together with the next one, then with the one before
            if 0 <= i and i + 1 < len(self.segments):
                a, b = self.segments[i], self.segments[i + 1]
                if a[0] + a[1] == b[0] and a[2] == b[2]:
                    a[1] += b[1]
                    del self.segments[i + 1]

    def undo_map(self, address, size):
        at = next(i for i, s in enumerate(self.segments) if s[0] <= address and address + size <= s[0] + s[1])
        start, length, stream = self.segments.pop(at)
        rest = [[start, address - start, stream], [address + size, start + length - address - size, stream]]
        self.segments[at:at] = [s for s in rest if s[1] > 0]

    def undo(self, event):
        action, address, size = event["action"], event.get("addr"), event["size"]
        if action == "free":
            self.blocks[address] = size
        elif action == "alloc":
            self.blocks.pop(address, None)
        elif action == "segment_unmap":
            self.undo_unmap(address, size, event["stream"])
        elif action == "segment_map":
            self.undo_map(address, size)
        elif action != "oom":
            raise AssertionError(action)


def merged(events):
    """A free_requested and the free_completed after it are one event to the page."""
    out = []
    for event in events:
        if event["action"] == "free_completed":
            if not out or out[-1]["action"] != "free_requested" or out[-1]["addr"] != event["addr"]:
                raise AssertionError("a free that is completed but was not requested just before")
            out[-1] = dict(out[-1], action="free")
        else:
            out.append(event)
    return out


class Samples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        code, _ = run("write", cls.folder.name)
        assert code == 0
        cls.files = sorted(pathlib.Path(cls.folder.name).glob("*.pickle"))
        cls.snapshots = {f.stem: pickle.loads(f.read_bytes()) for f in cls.files}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def each_segment(self):
        for name, snapshot in self.snapshots.items():
            for segment in snapshot["segments"]:
                yield name, snapshot, segment

    def test_there_are_samples(self):
        self.assertGreaterEqual(len(self.files), 6)
        self.assertEqual(len(self.snapshots["devices"]["device_traces"]), 3)

    def test_opcodes(self):
        for file in self.files:
            self.assertLessEqual(largest_append(file.read_bytes()), MOST_APPENDED, file.name)
        self.assertEqual(largest_append(self.files[0].read_bytes()), MOST_APPENDED)

    def test_a_call_is_noticed(self):
        with self.assertRaises(AssertionError):
            largest_append(pickle.dumps(pathlib.Path("x")))

    def test_numbers_are_exact(self):
        def walk(value):
            if isinstance(value, dict):
                for v in value.values():
                    walk(v)
            elif isinstance(value, (list, tuple)):
                for v in value:
                    walk(v)
            elif isinstance(value, int):
                self.assertLess(abs(value), EXACT)

        for snapshot in self.snapshots.values():
            walk(snapshot)

    def test_segments(self):
        for name, snapshot, segment in self.each_segment():
            self.assertEqual(set(segment), {"device", "address", "total_size", "allocated_size", "active_size",
                                            "requested_size", "stream", "segment_type", "segment_pool_id",
                                            "is_expandable", "frames", "blocks"})
            self.assertIn(segment["segment_type"], ("small", "large"))
            self.assertIsInstance(segment["segment_pool_id"], tuple)
            self.assertLess(segment["device"], len(snapshot["device_traces"]))
            address, sums = segment["address"], dict.fromkeys(STATES, 0)
            for block in segment["blocks"]:
                self.assertEqual(block["address"], address, name)
                self.assertGreater(block["size"], 0)
                self.assertLessEqual(block["requested_size"], block["size"])
                sums[block["state"]] += block["size"]
                address += block["size"]
            self.assertEqual(address, segment["address"] + segment["total_size"], name)
            self.assertEqual(segment["allocated_size"], sums["active_allocated"])
            self.assertEqual(segment["active_size"], sums["active_allocated"] + sums["active_pending_free"])

    def test_segment_sums(self):
        """The page map of _memory_viz.py segsum: every page has a character, and the sums add up."""
        for name, _, segment in self.each_segment():
            pages = [0.0] * ((segment["total_size"] - 1) // PAGE + 1)
            free = used = 0
            start = 0
            for block in segment["blocks"]:
                if block["state"] == "active_allocated":
                    end = start + block["requested_size"]
                    used += block["requested_size"]
                    free += block["size"] - block["requested_size"]
                    for page in range(start // PAGE, (end - 1) // PAGE + 1):
                        pages[page] += (min(end, (page + 1) * PAGE) - max(start, page * PAGE)) / PAGE
                        self.assertLess(int(pages[page] * 10), len("0123456789*"), name)
                else:
                    free += block["size"]
                start += block["size"]
            self.assertEqual(free + used, segment["total_size"], name)

    def test_frames(self):
        seen = set()
        for snapshot in self.snapshots.values():
            for event in sum(snapshot["device_traces"], []):
                for frame in event.get("frames", []):
                    self.assertEqual(set(frame), {"name", "filename", "line"})
                    self.assertIsInstance(frame["line"], int)
                    seen.add((frame["name"], frame["filename"], frame["line"]))
        self.assertIn(("matmul", "taper:encoder.0.attn", 0), seen)
        self.assertIn(("main", "train.cpp", 42), seen)
        self.assertIn(("f<int>", 'a "b"\\\n.cpp', 7), seen)

    def test_settings(self):
        settings = self.snapshots["consistent"]["allocator_settings"]
        self.assertEqual(settings["PYTORCH_CUDA_ALLOC_CONF"], "policy:taper,slack:0.1")
        self.assertEqual(settings["max_split_size"], -1)
        self.assertEqual(settings["roundup_power2_divisions"], {str(2 ** i): 0 for i in range(16)})

    def test_traces(self):
        """Timeline: a block comes where none is, and goes where one is; times do not go back."""
        for name, snapshot in self.snapshots.items():
            for events in snapshot["device_traces"]:
                live, last = {}, 0
                for event in merged(events):
                    keys = {"action", "size", "stream", "time_us"} | {"device_free" if event["action"] == "oom" else "addr"}
                    self.assertEqual(set(event) - {"frames"}, keys)
                    self.assertGreaterEqual(event["time_us"], last)
                    last = event["time_us"]
                    if event["action"] == "alloc":
                        self.assertNotIn(event["addr"], live, name)
                        live[event["addr"]] = event["size"]
                    elif event["action"] == "free":
                        self.assertEqual(live.pop(event["addr"]), event["size"], name)

    def test_states(self):
        """State view: at every event each block lies in a segment, back to the first one."""
        steps = 0
        for name, snapshot in self.snapshots.items():
            for device, events in enumerate(snapshot["device_traces"]):
                viewer = Viewer(snapshot, device)
                for i, event in reversed(list(enumerate(merged(events)))):
                    if i % 7 == 0:
                        for address, size in viewer.blocks.items():
                            segment = viewer.segment_of(address)
                            self.assertIsNotNone(segment, f"{name}: event {i}")
                            self.assertLessEqual(address + size, segment[0] + segment[1], f"{name}: event {i}")
                    viewer.undo(event)
                    steps += 1
        self.assertGreater(steps, 10000)

    def test_what_was_out_of_step_is_noticed(self):
        """The checks above can fail: a trace whose last map is moved away."""
        snapshot = json.loads(json.dumps(self.snapshots["consistent"]))
        events = snapshot["device_traces"][0]
        next(e for e in reversed(events) if e["action"] == "segment_map")["addr"] += 2 ** 40
        viewer = Viewer(snapshot, 0)
        with self.assertRaises(StopIteration):
            for event in reversed(merged(events)):
                viewer.undo(event)

    def test_json(self):
        for file in self.files:
            with open(file.with_suffix(".json"), encoding="utf-8") as text:
                told = json.load(text)
            self.assertEqual((told["format"], told["version"]), ("taper-snapshot", 1))
            for device in told["devices"]:
                self.assertEqual(sum(e["action"] == "alloc" for e in device["events"]), device["allocations"])

    def test_read_again(self):
        """The pickles of all samples are read, and say as many allocations as Python sees."""
        for file in self.files:
            out = file.with_suffix(".out")
            self.assertEqual(run("read", file, out), (0, ""), file.name)
            devices = json.loads(out.read_text(encoding="utf-8"))["devices"]
            traces = [t for t in self.snapshots[file.stem]["device_traces"] if t]
            self.assertEqual(len(devices), len(traces))
            for device, trace in zip(devices, traces):
                fresh = sum(e["action"] == "alloc" for e in trace)
                self.assertGreaterEqual(device["allocations"], fresh)


def torch_like():
    """A snapshot with what PyTorch's have and ours do not."""
    frames = [{"name": "forward", "filename": "/m/net.py", "line": 12}, {"name": "main", "filename": "/m/t.py", "line": 3}]
    deep = [{"name": f"f{i}", "filename": "deep.py", "line": i} for i in range(1500)]

    def event(action, addr, size, time, **more):
        return {"action": action, "addr": addr, "size": size, "stream": 0, "time_us": 1_700_000_000_000_000 + time, **more}

    base = 0x7F1234000000
    trace = [
        event("segment_alloc", base, 2 << 20, 0, frames=list(frames)),
        event("alloc", base, 1000, 1, frames=list(frames)),
        event("alloc", base + 1024, 500, 2, frames=deep),
        event("free_requested", base + 4096, 3000, 3, frames=[]),  # was out before
        event("free_completed", base + 4096, 3000, 3),
        event("free_requested", base, 1000, 4, frames=frames),
        event("snapshot", 0, 0, 5),
        event("free_completed", base, 1000, 6),
        event("user_defined", 0, 0, 6, user_metadata={"step": 1}),
        {"action": "oom", "device_free": 5, "size": 1 << 40, "stream": 0, "time_us": 1_700_000_000_000_009},
        event("free_completed", base + 8192, 700, 10),  # its request is not told
    ]
    blocks = [
        {"address": base, "size": 1024, "requested_size": 0, "state": "inactive", "frames": []},
        {"address": base + 1024, "size": 512, "requested_size": 500, "state": "active_allocated", "frames": deep},
        {"address": base + 1536, "size": 512, "requested_size": 400, "state": "active_allocated", "frames": frames},
        {"address": base + 2048, "size": 512, "requested_size": 1, "state": "active_pending_free", "frames": []},
        {"address": base + 2560, "size": (2 << 20) - 2560, "requested_size": 0, "state": "inactive", "frames": []}]
    segment = {"device": 1, "address": base, "total_size": 2 << 20, "stream": 0, "segment_type": "small",
               "segment_pool_id": (0, 0), "is_expandable": False, "frames": frames, "blocks": blocks}
    return {"segments": [segment], "device_traces": [[], trace], "allocator_settings": {"x": 1.5, "y": None},
            "external_annotations": [{"stage": "START", "name": "step", "device": 1, "time_us": 7}]}


class FromPython(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file, self.out = pathlib.Path(folder.name) / "in", pathlib.Path(folder.name) / "out"

    def read(self, value, protocol):
        self.file.write_bytes(pickle.dumps(value, protocol))
        code, text = run("read", self.file, self.out)
        if code != 0:
            return text
        return json.loads(self.out.read_text(encoding="utf-8"))["devices"]

    def test_protocols(self):
        for protocol in range(2, 6):
            (device,) = self.read(torch_like(), protocol)
            self.assertEqual(device["device"], "cuda:1")
            said = [(e["action"], e.get("bytes", 0), e.get("block", 0)) for e in device["events"]]
            self.assertEqual(said, [
                ("alloc", 400, 0), ("alloc", 3000, 1), ("alloc", 700, 2),  # out before, by address
                ("map", 2 << 20, 0), ("alloc", 1000, 3), ("alloc", 500, 4), ("free", 0, 1), ("free", 0, 3),
                ("oom", 1 << 40, 0), ("free", 0, 2)])
            self.assertEqual(device["offsets"], [1536, 4096, 8192, 0, 1024])
            self.assertEqual([e.get("time", 0) for e in device["events"]],
                             [0, 0, 0, 0, 1000, 2000, 3000, 4000, 9000, 10000])
            site = device["sites"][device["events"][4]["site"]]
            self.assertEqual(site["frames"], [{"file": "/m/net.py", "function": "forward", "line": 12},
                                              {"file": "/m/t.py", "function": "main", "line": 3}])
            self.assertEqual(len(device["sites"][device["events"][5]["site"]]["frames"]), 32)
            self.assertNotIn("site", device["events"][6])

    def test_without_traces(self):
        snapshot = torch_like()
        del snapshot["device_traces"]
        for value in (snapshot, snapshot["segments"]):  # old ones are the list alone
            (device,) = self.read(value, 4)
            self.assertEqual([(e["action"], e["bytes"]) for e in device["events"]], [("alloc", 500), ("alloc", 400)])

    def test_without_frames(self):
        snapshot = torch_like()
        for event in snapshot["device_traces"][1]:
            event.pop("frames", None)
        for block in snapshot["segments"][0]["blocks"]:
            del block["frames"]
        (device,) = self.read(snapshot, 2)
        self.assertEqual(len(device["sites"]), 1)

    def test_legacy_history(self):
        frames = [{"name": "f", "filename": "a.py", "line": 1}]
        block = {"size": 1024, "state": "active_allocated",
                 "history": [{"addr": 0, "real_size": 700, "frames": frames}, {"addr": 0, "real_size": 9}]}
        rest = {"size": 1024, "state": "inactive"}
        segment = {"device": 0, "address": 1 << 40, "total_size": 2048, "stream": 7, "blocks": [block, rest]}
        (device,) = self.read({"segments": [segment], "device_traces": [[]]}, 3)
        self.assertEqual([e["bytes"] for e in device["events"]], [700])
        self.assertEqual(device["streams"], [0, 7])
        self.assertEqual(device["sites"][1]["frames"][0]["file"], "a.py")

    def test_many(self):
        """Python appends in runs of a thousand."""
        trace = []
        for i in range(5000):
            trace.append({"action": "alloc", "addr": 4096 + 512 * i, "size": 512, "stream": 0})
        (device,) = self.read({"segments": [], "device_traces": [trace]}, 5)
        self.assertEqual(device["allocations"], 5000)

    def test_bytes(self):
        self.assertEqual(self.read({"segments": [], "pickled": b"\0" * 300, "short": b"1", "long": bytearray(9)}, 5), [])

    def test_calls_are_refused(self):
        for protocol, opcode in (2, "GLOBAL"), (4, "STACK_GLOBAL"):
            self.assertIn(f"opcode {opcode} is refused", self.read({"segments": pathlib.Path("x")}, protocol))

    def test_refusals_name_the_byte(self):
        for change, says in (({"size": -1}, "'size' of at least 0, got -1"), ({"size": float("nan")}, "got a fraction"),
                             ({"size": "1"}, "got a text"), ({"size": 2 ** 70}, "got other"), ({"addr": None}, "got None"),
                             ({"action": "allok"}, "expected an action, got 'allok'"), ({"action": 1}, "expected a text"),
                             ({"frames": 3}, "expected a list of frames")):
            event = {"action": "alloc", "addr": 512, "size": 512, "stream": 0, **change}
            self.assertRegex(self.read({"device_traces": [[event]]}, 4), r": byte \d+: .*" + says)

    def test_double_free(self):
        free = {"action": "free_requested", "addr": 512, "size": 512, "stream": 0}
        self.assertIn("frees address 512, where no block is out",
                      self.read({"device_traces": [[free, dict(free)]]}, 4))
        alloc = dict(free, action="alloc")
        self.assertIn("allocates at address 512, where a block is out",
                      self.read({"device_traces": [[alloc, dict(alloc)]]}, 4))

    def test_a_list_in_itself(self):
        loop = []
        loop.append(loop)
        self.assertIsInstance(self.read({"segments": loop}, 4), (list, str))


if __name__ == "__main__":
    unittest.main()
