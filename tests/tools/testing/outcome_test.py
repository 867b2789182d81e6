"""outcome.py on tests, build events and checks of our own making."""

import os
import tempfile
import unittest

import events
import outcome
import plan

ORDINARY = plan.Part("tests", "main", "")
ASAN = plan.Part("asan", "side", "")


class OutcomeTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.told = events.Events()
        self.counts = outcome.Outcome()

    def add_test(self, name, status, cases, failed=0, log=""):
        """What Bazel tells of a test that ran: an XML file with `cases`, of which the first
        `failed` failed."""
        xml = "".join("<testcase name=\"case %d\">%s</testcase>" % (
            i, "<failure>no</failure>" if i < failed else "") for i in range(cases))
        xml = "<testsuites><testsuite>%s</testsuite></testsuites>" % xml
        test = events.Test(status, [self.write(name + ".xml", xml)],
                           [self.write(name + ".log", log)])
        self.told.tests["//tests:" + name] = test

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def add(self, wanted, bazel_exit, part=ORDINARY):
        self.counts.add_run(part, self.told, wanted, bazel_exit)

    def test_cases_that_pass_are_counted_over_tests_and_checks(self):
        self.add_test("a", "PASSED", 3)
        self.add_test("b", "FLAKY", 2)
        self.add(["//tests:a", "//tests:b"], 0)
        self.counts.add_case("passed", "check_a")
        self.counts.add_case("passed", "tests/fuzz:b")
        self.assertEqual(self.counts.lines(), ["7 passed, 0 failed"])
        self.assertEqual(self.counts.exit_code(), 0)

    def test_failed_and_skipped_cases_are_listed_and_not_passed(self):
        self.add_test("a", "FAILED", 3, 1)
        self.add_test("b", "PASSED", 4, 0, "x\nSKIPPED: some case: no disk\nSKIPPED: other: why\n")
        self.add(["//tests:a", "//tests:b"], 3)
        self.counts.add_case("failed", "check_x")
        self.counts.add_case("skipped", "tests/fuzz:y")
        self.counts.add_case("passed", "check_z")
        self.assertEqual(self.counts.lines(), [
            "SKIPPED //tests:b: other: why", "SKIPPED //tests:b: some case: no disk",
            "SKIPPED tests/fuzz:y", "FAILED  //tests:a: case 0", "FAILED  check_x",
            "5 passed, 2 failed"])
        self.assertEqual(self.counts.exit_code(), 1)

    def test_what_tests_struck_is_one_table_before_the_cases(self):
        self.add_test("a", "PASSED", 1, 0, "FAULTS: server pull bsp 1 2 3 4\n")
        self.add_test("b", "PASSED", 1, 0, "FAULTS: server pull bsp 1 0 0 0\n")
        self.add(["//tests:a", "//tests:b"], 0)
        self.assertEqual(self.counts.lines(), [
            "faults at running jobs (kills/stops/proxy/clock):",
            "role       phase                 bsp",
            "server     pull              2/2/3/4",
            "2 kills, 2 stops, 3 proxy faults, 4 clock steps",
            "2 passed, 0 failed"])

    def test_what_a_compiler_warns_of_has_failed(self):
        self.add_test("a", "PASSED", 1)
        self.told.shown["stderr"] = "x.cc:3:14: warning: unused [-Wunused]\n"
        self.add(["//tests:a"], 0, ASAN)
        self.assertEqual(self.counts.lines(), [
            "FAILED  bazel test [asan]: x.cc:3:14: warning: unused [-Wunused]",
            "1 passed, 1 failed"])

    def test_a_target_that_ends_without_a_failed_case_has_failed_once(self):
        # It crashed after its XML was written; it was killed before; it did not build.
        self.add_test("crashed", "FAILED", 2)
        self.add_test("late", "TIMEOUT", 0)
        self.add_test("good", "PASSED", 1)
        self.add(["//tests:crashed", "//tests:late", "//tests:good", "//tests:absent"], 1, ASAN)
        self.assertEqual(self.counts.lines(), [
            "FAILED  //tests:absent [asan]: did not build or did not run",
            "FAILED  //tests:crashed [asan]: ended with FAILED",
            "FAILED  //tests:late [asan]: ended with TIMEOUT",
            "FAILED  bazel test [asan] could not build everything (exit code 1)",
            "3 passed, 4 failed"])

    def test_an_error_of_bazels_own_is_a_failure(self):
        self.add_test("a", "PASSED", 1)
        self.add(["//tests:a"], 3)
        self.assertEqual(self.counts.lines(), ["FAILED  bazel test exited with 3",
                                               "1 passed, 1 failed"])

    def test_a_run_of_nothing_has_failed(self):
        self.add([], 0)
        self.assertEqual(self.counts.lines(), ["0 passed, 0 failed"])
        self.assertEqual(self.counts.exit_code(), 1)

    def test_an_xml_file_that_is_broken_or_gone(self):
        self.add_test("a", "FAILED", 1)
        self.write("a.xml", "<testsui")
        self.add_test("all_skipped", "PASSED", 0, 0, "SKIPPED: some case: no disk\n")
        self.add_test("none", "PASSED", 0)
        self.told.tests["//tests:b"] = events.Test("PASSED", ["gone.xml"], ["gone.log"])
        self.add(["//tests:a", "//tests:b"], 3)
        self.assertEqual(self.counts.lines(), ["SKIPPED //tests:all_skipped: some case: no disk",
                                               "FAILED  //tests:a: ended with FAILED",
                                               "FAILED  //tests:b: no case ran",
                                               "FAILED  //tests:none: no case ran",
                                               "0 passed, 3 failed"])
