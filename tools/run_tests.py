#!/usr/bin/env python3
"""Runs the tests of a build and sums them: run_tests.py BUILD_DIR [FILTER].

GoogleTest cases count one each, an example or the install test one each. FILTER is the name of a ctest test, or else a
GoogleTest filter; without any of `*?:-` in it, a part of the names. The last line is `N passed, N failed, N skipped`.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as xml

build = pathlib.Path(sys.argv[1]).resolve()
wanted = sys.argv[2] if len(sys.argv) > 2 else ""
results = build / "test-results"
passed, failed, skipped = 0, [], []


def first_lines(text, count=12):
    lines = [line for line in (text or "").strip().splitlines() if line.strip()]
    return "\n    ".join(lines[:count])


def reason(message):
    """A skip's message without the place it was written at."""
    lines = [line for line in (message or "").splitlines() if line.strip()]
    return "; ".join(lines[1:] if len(lines) > 1 else lines) or "no reason given"


def read_cases(file, name):
    """Counts one GoogleTest program's cases; gives back how many of them failed."""
    global passed
    before = len(failed)
    for case in xml.parse(file).iter("testcase"):
        label = f"{name}: {case.get('classname')}.{case.get('name')}"
        failures, skip = case.findall("failure"), case.find("skipped")
        if failures:
            failed.append((label, first_lines("\n".join(f.get("message", "") for f in failures))))
        elif skip is not None:
            skipped.append((label, reason(skip.get("message"))))
        elif case.get("status") == "notrun":
            skipped.append((label, "disabled in its source"))
        else:
            passed += 1
    return len(failed) - before


def choose():
    """Names of the ctest tests to run, and the GoogleTest filter for their cases."""
    listing = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True, capture_output=True,
                             text=True).stdout
    tests = {}
    for test in json.loads(listing)["tests"]:
        labels = [p["value"] for p in test.get("properties", []) if p["name"] == "LABELS"]
        tests[test["name"]] = "unit" in (labels[0] if labels else [])
    if not wanted:
        return list(tests), "*"
    if wanted in tests:
        return [wanted], "*"
    pattern = wanted if re.search(r"[*?:-]", wanted) else f"*{wanted}*"
    return [name for name, is_unit in tests.items() if is_unit or wanted in name], pattern


def main():
    global passed
    names, pattern = choose()
    results.mkdir(exist_ok=True)
    for old in results.glob("*.xml"):
        old.unlink()
    summary = results / "ctest.xml"
    command = ["ctest", "--test-dir", build, "--output-junit", summary, "-j", str(os.cpu_count()), "--no-tests=error",
               "-R", "^(" + "|".join(map(re.escape, names)) + ")$"]
    status = subprocess.run(command, env={**os.environ, "GTEST_FILTER": pattern}).returncode
    cases = list(xml.parse(summary).iter("testcase")) if summary.exists() else []
    for case in cases:
        name = case.get("name")
        own = results / (name + ".xml")
        fine = case.get("status") == "run"
        output = case.findtext("system-out") or ""
        known = read_cases(own, name) if own.exists() else 0
        if fine and not own.exists():
            passed += 1
        elif case.get("status") == "notrun" and case.find("skipped") is not None and "SKIP" in xml.tostring(case, "unicode"):
            skipped.append((name, first_lines(output, 1) or "no reason given"))
        elif not fine and not known:  # a crash, a leak at exit, a time-out, a program that was not built
            tail = "\n    ".join(output.strip().splitlines()[-25:])
            failed.append((name, (case.find("failure").get("message", "") if case.find("failure") is not None else
                                  case.get("status", "")) + "\n    " + tail))
    print()
    for label, why in skipped:
        print(f"skipped  {label}: {why}")
    for label, why in failed:
        print(f"FAILED   {label}\n    {why}")
    if passed + len(failed) + len(skipped) == 0:
        print(f"no test matches {wanted}" if wanted else "there is no test")
        status = 1
    print(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 1 if failed or status else 0


sys.exit(main())
