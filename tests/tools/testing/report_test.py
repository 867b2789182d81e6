"""report.py: times at the end."""

import unittest

import progress
import report


class ReportTest(unittest.TestCase):
    def test_parts_with_their_times_and_the_slowest_tests(self):
        tests = progress.Status("tests", "main", "over", done=292, total=292, took=754.0)
        fuzz = progress.Status("fuzz", "side", "over", done=23, failed=1, took=61.0)
        seconds = {"//t:%d" % i: float(i) for i in range(12)}
        lines = report.lines([tests, fuzz], seconds, 800)
        self.assertEqual(lines[:6], [
            "time of each part (they run beside each other):",
            "     12:34  tests      292 of 292", "      1:01  fuzz       23, 1 failed",
            "     13:20  in all", "slowest tests:", "    11.0 s  //t:11"])
        self.assertEqual((len(lines), lines[-1]), (15, "     2.0 s  //t:2"))

    def test_nothing_slow_where_nothing_ran(self):
        self.assertEqual(report.lines([], {}, 1), [
            "time of each part (they run beside each other):", "      0:01  in all"])

    def test_ties_stand_by_name(self):
        self.assertEqual(report.slowest({"b": 1, "a": 1, "c": 2}), [(2, "c"), (1, "a"), (1, "b")])
