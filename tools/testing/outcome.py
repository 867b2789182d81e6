"""Counts test cases: what passed, failed and was skipped over all parts of a run.

A test whose XML names no failed case although Bazel says that it failed (a crash, a time-out, a
build error) counts as one failed case; so does one that passed without any case: where a test
writes no XML, Bazel writes one with a case. A case that prints a line "SKIPPED: case: reason"
(tests/skip.h) is neither passed nor failed. What a compiler or linker warns of counts as one failed
case for each place: Bazel tells it again where an earlier build's results are used (.bazelrc:
experimental_replay_action_out_err).
"""

import xml.etree.ElementTree as ElementTree

import events
import fault_table

# What Bazel exits with when there were tests, and all passed, some failed, or there was none.
BAZEL_RAN_TESTS = (0, 3, 4)


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
    """The reasons that a test's log gives, sorted."""
    lines = set()
    for path in log_paths:
        try:
            with open(path, encoding="utf-8", errors="replace") as log:
                lines.update(line[len("SKIPPED: "):].strip() for line in log
                             if line.startswith("SKIPPED: "))
        except OSError:
            continue
    return sorted(lines)


class Outcome:
    """What all parts and checks together gave. One thread."""

    def __init__(self):
        self.passed = 0
        self.failed = []
        self.skipped = []
        self.faults = {}

    def add_run(self, part, told, wanted, bazel_exit):
        """One call of bazel test: `told` are its Events, `wanted` the labels that had to run."""
        tests = dict(told.tests)
        for label in wanted:
            tests.setdefault(label, events.Test())
        before = len(self.failed)
        for label in sorted(tests):
            self.add_test(label + part.suffix, tests[label])
        # Bazel also fails when something that is no test does not build.
        command = "bazel test" + part.suffix
        if bazel_exit != 0 and len(self.failed) == before:
            self.failed.append("%s exited with %d" % (command, bazel_exit))
        elif bazel_exit not in BAZEL_RAN_TESTS:
            self.failed.append("%s could not build everything (exit code %d)" %
                               (command, bazel_exit))
        self.failed += ["%s: %s" % (command, line) for line in told.warnings()]

    def add_test(self, label, test):
        cases, failed = count_cases(test.xml)
        skipped = skipped_cases(test.log)
        fault_table.add(self.faults, fault_table.read(test.log))
        if test.status == "NO_STATUS":
            cases, failed = 1, ["did not build or did not run"]
        elif test.status not in events.PASSED and not failed:
            failed = ["ended with " + test.status]
            cases += 1
        elif not cases and not skipped:
            failed = ["no case ran"]
        self.passed += max(0, cases - len(failed) - len(skipped))
        self.failed += ["%s: %s" % (label, name) for name in failed]
        self.skipped += ["%s: %s" % (label, reason) for reason in skipped]

    def add_case(self, state, name):
        """A case that the driver ran itself: "passed", "failed" or "skipped"."""
        if state == "passed":
            self.passed += 1
        elif state == "skipped":
            self.skipped.append(name)
        else:
            self.failed.append(name)

    def lines(self):
        return (fault_table.lines(self.faults) +
                ["SKIPPED " + line for line in self.skipped] +
                ["FAILED  " + line for line in self.failed] +
                ["%d passed, %d failed" % (self.passed, len(self.failed))])

    def exit_code(self):
        """A run of nothing has failed, too."""
        return 1 if self.failed or not self.passed else 0
