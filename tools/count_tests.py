"""Counts test cases for tools/test: one line per failed or skipped case, last "N passed, N failed".

Reads, for every run of Bazel, its build events (one JSON object a line) and the JUnit XML and the
log of each test; and the list of checks that tools/test ran itself. A test whose XML names no failed
case although Bazel says that it failed (a crash, a time-out, a build error) counts as one failed
case. A case that prints a line "SKIPPED: case: reason" (tests/skip.h) is neither passed nor failed.
What a compiler or linker warns of counts as one failed case for each place: Bazel tells it again
where an earlier build's results are used (.bazelrc: experimental_replay_action_out_err).
"""

import argparse
import json
import os
import re
import sys
import urllib.parse
import xml.etree.ElementTree as ElementTree

# What Bazel exits with when there were tests, and all passed, some failed, or there was none.
BAZEL_RAN_TESTS = (0, 3, 4)

# "x.cc:1:2: warning: ", "cc1plus: warning: ", "ld: x.o: warning: ", "x.cu(3): warning #1-D: ".
WARNING = re.compile(r"^\S+(?::| \S+:) warning: |^\S+\(\d+\): warning(?: #\S+)?: ")


def read_events(path):
    """Returns {label: {"status": ..., "xml": [paths], "log": [paths]}} of the tests that ran."""
    tests = {}
    if not os.path.exists(path):
        return tests
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            event = json.loads(line)
            identity = event.get("id", {})
            if "testResult" in identity and "testResult" in event:
                test = tests.setdefault(identity["testResult"]["label"], new_test())
                for output in event["testResult"].get("testActionOutput", []):
                    uri = urllib.parse.urlparse(output.get("uri", ""))
                    kind = {"test.xml": "xml", "test.log": "log"}.get(output["name"])
                    if kind and uri.scheme == "file":
                        test[kind].append(urllib.parse.unquote(uri.path))
            elif "testSummary" in identity and "testSummary" in event:
                test = tests.setdefault(identity["testSummary"]["label"], new_test())
                test["status"] = event["testSummary"]["overallStatus"]
    return tests


def compiler_warnings(path):
    """Returns what Bazel showed of warnings, each line once, sorted."""
    shown = {"stdout": "", "stderr": ""}  # of pieces, which may end within a line
    if os.path.exists(path):
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                progress = json.loads(line).get("progress", {})
                for stream in shown:
                    shown[stream] += progress.get(stream, "")
    return sorted({line for text in shown.values() for line in text.splitlines()
                   if WARNING.match(line)})


def new_test():
    return {"status": "NO_STATUS", "xml": [], "log": []}


def count_cases(xml_paths):
    """Returns (number of cases, names of the failed ones)."""
    cases, failed = 0, []
    for path in xml_paths:
        try:
            root = ElementTree.parse(path).getroot()
        except (OSError, ElementTree.ParseError):
            continue
        for case in root.iter("testcase"):
            cases += 1
            if case.find("failure") is not None or case.find("error") is not None:
                failed.append(case.get("name", "?"))
    return cases, failed


def skipped_cases(log_paths):
    lines = set()
    for path in log_paths:
        with open(path, encoding="utf-8", errors="replace") as log:
            lines.update(l[len("SKIPPED: "):].strip() for l in log if l.startswith("SKIPPED: "))
    return sorted(lines)


class Outcome:
    """What all runs and checks together gave."""

    def __init__(self):
        self.passed = 0
        self.failed = []
        self.skipped = []

    def add_run(self, name, events, targets, bazel_exit):
        """One call of bazel test. `targets`: file of the labels that had to run."""
        tests = read_events(events)
        with open(targets, encoding="utf-8") as lines:
            for label in lines.read().split():
                tests.setdefault(label, new_test())
        before = len(self.failed)
        for label in sorted(tests):
            self.add_test(label + (" [%s]" % name if name else ""), tests[label])
        # Bazel also fails when something that is no test does not build.
        command = "bazel test%s" % (" [%s]" % name if name else "")
        if bazel_exit != 0 and len(self.failed) == before:
            self.failed.append("%s exited with %d" % (command, bazel_exit))
        elif bazel_exit not in BAZEL_RAN_TESTS:
            self.failed.append("%s could not build everything (exit code %d)" %
                               (command, bazel_exit))
        self.failed += ["%s: %s" % (command, line) for line in compiler_warnings(events)]

    def add_test(self, label, test):
        cases, failed = count_cases(test["xml"])
        skipped = skipped_cases(test["log"])
        if test["status"] == "NO_STATUS":
            cases, failed = 1, ["did not build or did not run"]
        elif test["status"] not in ("PASSED", "FLAKY") and not failed:
            failed = ["ended with " + test["status"]]
            cases += 1
        self.passed += max(0, cases - len(failed) - len(skipped))
        self.failed += ["%s: %s" % (label, name) for name in failed]
        self.skipped += ["%s: %s" % (label, reason) for reason in skipped]

    def add_checks(self, path):
        if not os.path.exists(path):
            return
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                state, name = line.rstrip("\n").split("\t")
                if state == "passed":
                    self.passed += 1
                elif state == "skipped":
                    self.skipped.append(name)
                else:
                    self.failed.append(name)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--run", nargs=4, action="append", default=[],
                        metavar=("NAME", "EVENTS", "TARGETS", "BAZEL_EXIT"))
    parser.add_argument("--checks", required=True)
    options = parser.parse_args()

    outcome = Outcome()
    for name, events, targets, bazel_exit in options.run:
        outcome.add_run(name, events, targets, int(bazel_exit))
    outcome.add_checks(options.checks)
    for line in outcome.skipped:
        print("SKIPPED " + line)
    for line in outcome.failed:
        print("FAILED  " + line)
    print("%d passed, %d failed" % (outcome.passed, len(outcome.failed)))
    return 1 if outcome.failed or not outcome.passed else 0


if __name__ == "__main__":
    sys.exit(main())
