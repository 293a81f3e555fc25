#!/usr/bin/env python3
"""Runs `taper tape` as a user does: taper_tape_test.py PROGRAM ACTIVATIONS.

ACTIVATIONS is the example that writes the dump of GPT-2 small; the small dump is written here by hand.
"""
import copy
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ACTIVATIONS = str(pathlib.Path(sys.argv.pop(2)).resolve())
PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())


def tensor(*sizes, **more):
    return {"sizes": list(sizes), "dtype": "f32", "device": "cpu"} | more


def entry(index, op, line, scope, inputs, outputs, saved):
    return {"index": index, "op": op, "file": "/src/model.cpp", "line": line, "function": "forward", "scope": scope,
            "stream": 0, "consumed": False, "inputs": inputs, "outputs": outputs, "saved": saved}


# x (10, 4) -> linear -> relu -> linear -> sum
SMALL = {
    "format": "taper-tape", "version": 1,
    "storages": [{"bytes": 160, "kind": "data"}, {"bytes": 320, "kind": "activation"}, {"bytes": 64, "kind": "parameter"}],
    "leaves": [{"index": 1, "name": "net.fc1.weight"} | tensor(8, 4), {"index": 2, "name": "net.fc2.weight"} | tensor(2, 8)],
    "entries": [
        entry(3, "linear", 7, "net.fc1", [None, [1, 0]], [tensor(10, 8)], [tensor(10, 4, storage=0)]),
        entry(4, "relu", 8, "net", [[3, 0]], [tensor(10, 8)], [tensor(10, 8, storage=1, **{"from": [4, 0]})]),
        entry(5, "linear", 9, "net.fc2", [[4, 0], [2, 0]], [tensor(10, 2)],
              [tensor(10, 8, storage=1, **{"from": [4, 0]}), tensor(2, 8, storage=2, **{"from": [2, 0]})]),
        entry(6, "sum", 20, "", [[5, 0]], [tensor()], []),
    ],
}


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.small = self.write("small.json", SMALL)

    def write(self, name, dump):
        path = self.folder / name
        path.write_text(dump if isinstance(dump, str) else json.dumps(dump))
        return path

    def tape(self, *arguments):
        done = subprocess.run([PROGRAM, "tape", *map(str, arguments)], capture_output=True, text=True, timeout=120,
                              cwd=self.folder)
        self.assertNotRegex(done.stderr, "terminate called|Sanitizer")
        return done.returncode, done.stdout, done.stderr

    def good(self, *arguments):
        code, out, err = self.tape(*arguments)
        self.assertEqual((code, err), (0, ""))
        return out

    def refused(self, *arguments, says):
        code, out, err = self.tape(*arguments)
        self.assertGreater(code, 0, out)
        self.assertEqual(out, "")
        self.assertRegex(err, says)


class Small(Folder):
    def test_help_has_examples(self):
        self.assertIn("Examples:\n  taper tape step.json", self.good("--help"))

    def test_text(self):
        text = self.good(self.small)
        self.assertEqual(text, self.good(self.small, "--text"))
        self.assertIn("4 entries, 2 leaves; saved 544 B: activations 320 B, parameters 64 B, data 160 B", text)
        # Gradients: 320 of relu's output, 320 of its input, 64 of fc2's weight. Parameters are not counted as saved.
        self.assertIn("peak 1.16 KiB while #4 relu at model.cpp:8 runs backward: saved 480 B, gradients at most 704 B\n", text)
        rows = {line.split()[0]: line for line in text.splitlines() if line.startswith("#")}
        self.assertEqual(list(rows), ["#3", "#4", "#5", "#6"])
        self.assertRegex(rows["#5"], r"linear\s+model.cpp:9\s+net.fc2\s+#4, weight\s+f32 \(10, 2\)\s+in0, in1\s+384 B\s+64 B$")

    def test_json_is_the_dump(self):
        again = json.loads(self.good(self.small, "--json"))
        for key in "storages", "leaves":
            self.assertEqual(again[key], SMALL[key])
        self.assertEqual([e["first_bytes"] for e in again["entries"]], [160, 320, 64, 0])
        copy_of = self.write("copy.json", again)
        self.assertEqual(self.good(copy_of), self.good(self.small))

    def test_sums(self):
        def bytes_by(what):
            rows = json.loads(self.good(self.small, "--by", what, "--json"))
            return [(r[what], r["entries"], r["bytes"]) for r in rows]
        self.assertEqual(bytes_by("scope"), [("", 4, 544), ("net", 3, 544), ("net.fc1", 1, 160), ("net.fc2", 1, 64)])
        self.assertEqual(bytes_by("op"), [("relu", 1, 320), ("linear", 2, 224), ("sum", 1, 0)])
        self.assertEqual(bytes_by("line")[0], ("model.cpp:8", 1, 320))
        self.assertRegex(self.good(self.small, "--by", "op"), r"op +entries +bytes.*\nrelu +1 +320 B")

    def test_scope(self):
        text = self.good(self.small, "--scope", "net.fc2")
        self.assertIn("1 entry, 1 leaf; saved 384 B", text)
        self.assertNotIn("relu", text)
        self.assertIn("3 entries", self.good(self.small, "--scope", "net"))
        self.refused(self.small, "--scope", "net.fc", says="no entry is of scope 'net.fc'; --by scope shows")

    def test_diff(self):
        more = copy.deepcopy(SMALL)
        more["entries"].append(entry(7, "add", 88, "", [[6, 0], None], [tensor()], []))
        more["entries"].append(entry(8, "add", 88, "", [[7, 0], None], [tensor()], []))
        more["entries"][0]["saved"] = []
        other = self.write("more.json", more)
        self.assertEqual(json.loads(self.good(self.small, "--diff", other, "--json")),
                         [{"what": "add at model.cpp:88", "entries": 2, "bytes": 0},
                          {"what": "linear at model.cpp:7 in net.fc1", "entries": 0, "bytes": -160}])
        self.assertRegex(self.good(self.small, "--diff", other), r"\+2 +add at model.cpp:88\n")
        self.assertRegex(self.good(other, "--diff", self.small), r" -2 +add at model.cpp:88\n")
        self.assertEqual(self.good(self.small, "--diff", self.small), "no change in 4 entries\n")

    def test_trace(self):
        trace = json.loads(self.good(self.small, "--chrome"))
        ran = [(e["name"], e["cat"], e["ts"]) for e in trace["traceEvents"] if e["ph"] == "X"]
        names = [e["op"] for e in SMALL["entries"]]
        self.assertEqual(ran, [(n, "forward", i) for i, n in enumerate(names)] +
                         [(n, "backward", 4 + i) for i, n in enumerate(reversed(names))])
        self.assertIn("not measured", trace["otherData"]["times"])

    def test_graph(self):
        graph = self.good(self.small, "--dot")
        for edge in "l1 -> e3", "e3 -> e4", "e4 -> e5", "l2 -> e5", "e5 -> e6":
            self.assertIn(edge + ";", graph)
        if shutil.which("dot"):
            subprocess.run(["dot", "-Tsvg", "-o", self.folder / "graph.svg"], input=graph, text=True, check=True, timeout=60)

    def test_page(self):
        dump = copy.deepcopy(SMALL)
        dump["entries"][0]["scope"] = "</script><b>"
        self.good(self.write("page.json", dump), "--html", "tape.html")
        page = (self.folder / "tape.html").read_text()
        self.assertNotRegex(page, r"(src|href)=|https?:|@import|url\(")
        self.assertEqual(page.count("</script>"), 3)
        data = re.search(r'id="tape">(.*?)</script>', page, re.S)[1]
        self.assertEqual(json.loads(data)["entries"][0]["scope"], "</script><b>")
        more = json.loads(re.search(r'id="more">(.*?)</script>', page, re.S)[1])
        self.assertEqual(len(more["held"]), 8)
        self.assertEqual(more["flops"][2], 20 * (2 * 8 + 1))

    def test_wrong_use(self):
        self.refused(says="file is required")
        self.refused("none.json", says="none.json")
        self.refused(self.write("text.json", "hello"), says="text.json: it is no JSON at byte")
        self.refused(self.write("other.json", {"format": "x"}), says="expected the format 'taper-tape', got 'x'")
        self.refused(self.small, "--dot", "--json", says="excludes")
        self.refused(self.small, "--by", "colour", says="scope")
        self.refused(self.small, "--html", "no/such/place.html", says="no/such/place.html")
        self.assertFalse((self.folder / "no").exists())


class Gpt(Folder):
    def test_of_gpt(self):
        subprocess.run([ACTIVATIONS, self.folder / "gpt.json"], check=True, capture_output=True, timeout=300)
        by_scope = {r["scope"]: r["bytes"] for r in json.loads(self.good("gpt.json", "--by", "scope", "--json"))}
        layers = {by_scope[f"blocks.{i}"] for i in range(12)}
        self.assertEqual(len(layers), 1)
        self.assertEqual(12 * layers.pop(), by_scope["blocks"])
        self.assertLess(by_scope["blocks"], by_scope[""])
        self.assertEqual(len(self.good("gpt.json").splitlines()), 3 + 1 + 321)
        self.good("gpt.json", "--html", "gpt.html")


if __name__ == "__main__":
    unittest.main()
