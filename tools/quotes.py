#!/usr/bin/env python3
"""The pages quote what is compiled and run: quotes.py BUILD_DIR [--write].

A code block behind `<!-- file: PATH -->` is that file, whole; behind `<!-- part of: PATH -->`, consecutive lines of it;
behind `<!-- output of: NAME -->`, what the example NAME prints (one that exits with 77 is passed over), and behind
`<!-- output of: taper WORDS -->`, what that command prints; behind `<!-- gdb session of: NAME -->`, what gdb says about that
example to the commands that stand in the block as `(gdb) COMMAND`. With --write all but parts are brought up to date.
"""
import pathlib
import re
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(root / "tests/gdb"))
build = pathlib.Path(sys.argv[1]).resolve()
write = "--write" in sys.argv
BLOCK = re.compile(r"(<!-- (file|part of|output of|gdb session of): (\S.*?) -->\n```\w*\n)(.*?)(^```$)", re.S | re.M)
seen, wrong = 0, []


def output_of(name):
    words = name.split()
    program = build / "bin/taper" if words[0] == "taper" else build / "bin/examples" / words[0]
    run = subprocess.run([program, *words[1:]], capture_output=True, text=True, timeout=300)
    if run.returncode == 77:
        return None
    if run.returncode != 0:
        wrong.append(f"{name} exits with {run.returncode}: {run.stderr.strip()}")
    return run.stdout


def session_of(name, block):
    import gdb_run
    commands = re.findall(r"^\(gdb\) (.*)$", block, re.M)
    try:
        said = gdb_run.run(commands, build / "bin/examples" / name)
    except gdb_run.Skipped as skipped:
        print(skipped)
        return None
    return "\n".join(f"(gdb) {command}\n{gdb_run.without_place(answer)}".rstrip() for command, answer in said)


def lines(text):
    return [line.strip() for line in text.splitlines() if line.strip()]


def contains(whole, part):
    return any(whole[at:at + len(part)] == part for at in range(len(whole) - len(part) + 1))


def checked(page, match):
    global seen
    seen += 1
    head, kind, name, block, end = match.groups()
    if kind == "part of":
        if not contains(lines((root / name).read_text()), lines(block)):
            wrong.append(f"{page}: {name} has no such lines:\n{block}")
        return match.group(0)
    if kind == "file":
        source = (root / name).read_text()
    else:
        source = session_of(name, block) if kind.startswith("gdb") else output_of(name)
    if source is None or block.rstrip() == source.rstrip():
        return match.group(0)
    if not write:
        wrong.append(f"{page}: the block differs from the {kind.split()[0]} {name}; quotes.py BUILD_DIR --write renews it")
    return head + source.rstrip("\n") + "\n" + end


for page in [root / "README.md", *sorted((root / "docs").rglob("*.md"))]:
    text = page.read_text()
    renewed = BLOCK.sub(lambda m: checked(page.relative_to(root), m), text)
    if write and renewed != text:
        page.write_text(renewed)
        print(f"renewed {page.relative_to(root)}")
if seen == 0:
    wrong.append("no block is marked")
print("\n".join(wrong) if wrong else f"{seen} blocks agree")
sys.exit(1 if wrong else 0)
