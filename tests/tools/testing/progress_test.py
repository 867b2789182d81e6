"""progress.py: lines and expected times."""

import unittest

import progress
import times


def status(part, lane, state, **more):
    s = progress.Status(part, lane, state)
    for name, value in more.items():
        setattr(s, name, value)
    return s


class ProgressTest(unittest.TestCase):
    def test_a_clock_shows_hours_only_where_there_are_some(self):
        self.assertEqual([progress.clock(s) for s in (0, 59.6, 3599, 3661)],
                         ["0:00", "1:00", "59:59", "1:01:01"])

    def test_slots_are_as_bazel_reads_them(self):
        self.assertEqual([progress.slots(text, 4) for text in ("HOST_CPUS*2.5", "HOST_CPUS", "3")],
                         [10, 4, 3])

    def test_bazels_count_of_actions_is_read(self):
        self.assertEqual(progress.read_actions("[1,346 / 1,356] 79 / 293 tests; Testing"),
                         (1346, 1356))
        self.assertEqual(progress.read_actions("(12:00:01) [7 / 9] Compiling"), (7, 9))
        self.assertIsNone(progress.read_actions("x.cc:1:2: warning: [3 / 4]"))

    def test_tests_that_wait_take_their_earlier_times(self):
        known = times.Times({"a": 10, "b": 20, "c": 30})
        self.assertEqual(progress.tests_left(known, ["a", "b", "c"], set(), 2), 30)
        self.assertEqual(progress.tests_left(known, ["a", "b", "c"], {"c"}, 3), 20)
        self.assertEqual(progress.tests_left(known, ["a"], {"a"}, 2), 0)
        self.assertIsNone(progress.tests_left(known, ["x"], set(), 2))

    def test_a_build_goes_on_at_its_pace(self):
        self.assertEqual(progress.build_left((100, 300), 60), 120)
        self.assertIsNone(progress.build_left((5, 300), 60))
        self.assertIsNone(progress.build_left((), 60))

    def test_lanes_run_beside_each_other_and_their_parts_do_not(self):
        known = times.Times(parts={"tsan": 100, "fuzz": 50})
        statuses = [status("tests", "main", "runs", left=120.0),
                    status("asan", "side", "over", left=7.0),
                    status("tsan", "side", "waits"), status("fuzz", "side", "waits")]
        self.assertEqual(progress.expected(statuses, known), (150, True))
        self.assertEqual(progress.expected(statuses + [status("seeds", "checks", "waits")], known),
                         (150, False))

    def test_what_waits_for_the_build_begins_when_that_is_over(self):
        known = times.Times(parts={"asan": 100, "tsan": 70, "checks of the build": 5})
        side = [status("edges", "side", "runs", left=10.0),
                status("asan", "side", "waits", waits_for_build=True),
                status("tsan", "side", "waits", waits_for_build=True)]
        seeds = status("seeds", "checks", "runs", left=30.0, waits_for_build=True)
        for build, left in ((60.0, 230), (4.0, 180), (0.0, 180)):
            builds = status("tests", "main", "runs", left=90.0, build_left=build)
            self.assertEqual(progress.expected([builds] + side, known), (left, True))
        # The main lane's tests may still be the longest.
        builds = status("tests", "main", "runs", left=300.0, build_left=60.0)
        self.assertEqual(progress.expected([builds] + side, known), (300, True))
        # One after the other in each lane, whatever waits.
        builds = status("tests", "main", "runs", left=60.0, build_left=60.0)
        checks = status("checks of the build", "checks", "waits", waits_for_build=True)
        self.assertEqual(progress.expected([builds, checks, seeds], known), (95, True))
        # When the build is over, nothing waits any more.
        now = status("asan", "side", "runs", left=80.0)
        self.assertEqual(progress.expected([builds, now, side[2]], known), (150, True))

    def test_a_build_of_unknown_length_makes_what_waits_for_it_unknown(self):
        known = times.Times(parts={"asan": 100})
        statuses = [status("tests", "main", "runs", left=90.0, build_left=None),
                    status("asan", "side", "waits", waits_for_build=True)]
        self.assertEqual(progress.expected(statuses, known), (100, False))
        self.assertEqual(progress.expected(statuses[:1], known), (90, True))

    def test_a_line_tells_parts_counts_and_time(self):
        known = times.Times(parts={"tsan": 100})
        statuses = [status("tests", "main", "runs", left=120.0, done=10, total=292, failed=1),
                    status("asan", "side", "runs", left=200.0, actions=(7, 90), total=26),
                    status("tsan", "side", "waits"),
                    status("checks", "checks", "over", failed=2)]
        self.assertEqual(
            progress.line(statuses, known, 61),
            "test: 1:01, about 5:00 left; 1 of 4 parts done, 3 failed; tests 10/292 (1 failed), "
            "asan 7/90 actions")

    def test_a_line_says_what_is_not_known(self):
        waiting = [status("tests", "main", "waits")]
        self.assertIn("time left unknown", progress.line(waiting, times.Times(), 1))
        running = waiting + [status("asan", "side", "runs", left=60.0)]
        self.assertIn("more than 1:00 left", progress.line(running, times.Times(), 1))
