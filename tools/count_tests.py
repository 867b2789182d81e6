"""Counts test cases for tools/test: one line per failed or skipped case, last "N passed, N failed".

Reads Bazel's build events (one JSON object a line), the JUnit XML and the log of each test, and the
list of checks that tools/test ran itself. A test whose XML names no failed case although Bazel says
that it failed (a crash, a time-out, a build error) counts as one failed case. A case that prints a
line "SKIPPED: case: reason" (tests/skip.h) is neither passed nor failed.
"""

import argparse
import json
import os
import sys
import urllib.parse
import xml.etree.ElementTree as ElementTree

# What Bazel exits with when there were tests, and all passed, some failed, or there was none.
BAZEL_RAN_TESTS = (0, 3, 4)


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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", required=True)
    parser.add_argument("--targets", required=True)
    parser.add_argument("--checks", required=True)
    parser.add_argument("--bazel-exit", type=int, required=True)
    options = parser.parse_args()

    passed, failed_lines, skipped_lines = 0, [], []
    tests = read_events(options.events)
    with open(options.targets, encoding="utf-8") as lines:
        for label in lines.read().split():
            tests.setdefault(label, new_test())
    for label in sorted(tests):
        test = tests[label]
        cases, failed = count_cases(test["xml"])
        skipped = skipped_cases(test["log"])
        if test["status"] == "NO_STATUS":
            cases, failed = 1, ["did not build or did not run"]
        elif test["status"] not in ("PASSED", "FLAKY") and not failed:
            failed = ["ended with " + test["status"]]
            cases += 1
        passed += max(0, cases - len(failed) - len(skipped))
        failed_lines += ["%s: %s" % (label, name) for name in failed]
        skipped_lines += ["%s: %s" % (label, reason) for reason in skipped]
    if os.path.exists(options.checks):
        with open(options.checks, encoding="utf-8") as lines:
            for line in lines:
                state, name = line.rstrip("\n").split("\t")
                if state == "passed":
                    passed += 1
                else:
                    failed_lines.append(name)
    # Bazel also fails when something that is no test does not build.
    if options.bazel_exit != 0 and not failed_lines:
        failed_lines.append("bazel test //... exited with %d" % options.bazel_exit)
    elif options.bazel_exit not in BAZEL_RAN_TESTS:
        failed_lines.append("bazel could not build everything (exit code %d)" % options.bazel_exit)

    for line in skipped_lines:
        print("SKIPPED " + line)
    for line in failed_lines:
        print("FAILED  " + line)
    print("%d passed, %d failed" % (passed, len(failed_lines)))
    return 1 if failed_lines else 0


if __name__ == "__main__":
    sys.exit(main())
