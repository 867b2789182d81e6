"""steps.py: what each step tells, without processes."""

import os
import tempfile
import threading
import types
import unittest

import outcome
import plan
import processes
import steps
import times


def context(run):
    """`run`: in the place of Children.run. All is built."""
    built = threading.Event()
    built.set()
    return types.SimpleNamespace(
        root="/x", plan=types.SimpleNamespace(fuzz_seconds=3), side=[],
        children=types.SimpleNamespace(run=run), screen=types.SimpleNamespace(say=lambda _: None),
        side_environment=lambda: {}, built=built)


class BazelStepTest(unittest.TestCase):
    def left(self, lane):
        a_context = context(None)
        a_context.plan.concurrency = {"tests": "HOST_CPUS*2", "side": "HOST_CPUS"}
        labels = ["//a:%d" % i for i in range(1000)]
        a_context.times = times.Times({label: 1.0 for label in labels})
        step = steps.BazelStep(a_context, plan.Part("tests", lane, ""), labels)
        step.poll()
        return step.status.left

    def test_the_time_left_is_by_the_plans_concurrency(self):
        cores = os.cpu_count() or 1
        self.assertAlmostEqual(self.left("main"), max(1, 500 / cores))
        self.assertAlmostEqual(self.left("side"), max(1, 1000 / cores))

    def test_what_is_left_of_the_build_is_told_until_that_is_over(self):
        a_context = context(None)
        a_context.plan.concurrency = {"tests": "2", "build": "2"}
        a_context.times = times.Times({"//a:1": 1.0})
        a_context.test_flags, a_context.built = [], threading.Event()
        told = []
        with tempfile.TemporaryDirectory() as work:
            a_context.work = work
            step = steps.BazelStep(a_context, plan.Part("tests", "main", "", build="//..."),
                                   ["//a:1"])

            def run(command, on_line, **_):
                step.poll()
                told.append((command[1], step.status.build_left))
                on_line("[100 / 300] Compiling x.cc")
                step.poll()
                told.append((command[1], step.status.build_left is not None))
                return 0

            a_context.children.run = run
            step.execute()
        self.assertEqual(told, [("build", None), ("build", True), ("test", 0.0), ("test", True)])
        self.assertEqual(step.status.build_left, 0)

    def test_what_waits_for_the_build_tells_no_time_of_its_own(self):
        a_context = context(None)
        a_context.times = times.Times({"//a:1": 1.0}, {"asan": 40.0, "checks": 40.0})
        part = plan.Part("asan", "side", "", after_build=True)
        for step, left in ((steps.BazelStep(a_context, part, ["//a:1"]), None),
                           (steps.ChecksStep(a_context, "checks", "checks", ["/x/check_a"], True),
                            None),
                           (steps.SeedsStep(a_context, [], 30, 1), 30)):
            step.poll()
            self.assertEqual((step.status.waits_for_build, step.status.left), (True, left))

    def test_a_part_that_waits_for_the_build_calls_nothing_before_it(self):
        calls = []
        a_context = context(lambda command, *_, **__: calls.append(command[-1]) or 0)
        a_context.built = threading.Event()
        a_context.test_flags = []
        a_context.plan.concurrency = {"side": "2"}
        waited = []

        def check():
            waited.append(list(calls))
            if len(waited) == 3:
                a_context.built.set()

        a_context.children.check = check
        with tempfile.TemporaryDirectory() as work:
            a_context.work = work
            step = steps.BazelStep(a_context, plan.Part("asan", "side", "", after_build=True), [])
            step.execute()
        self.assertEqual((waited, len(calls)), ([[]] * 3, 1))
        self.assertFalse(step.status.waits_for_build)


class LimitTest(unittest.TestCase):
    def test_checks_and_fuzzing_have_a_limit(self):
        for make in (lambda c: steps.FuzzStep(c, ["//tests/fuzz:a_fuzz"]),
                     lambda c: steps.ChecksStep(c, "checks", "checks", ["/x/check_a"]),
                     lambda c: steps.MutationsStep(c, ["m.one"])):
            limits = []

            def run(*_, limit=None):
                limits.append(limit)
                return processes.TOO_LONG

            step = make(context(run))
            step.execute()
            self.assertEqual(set(limits), {steps.LIMIT_SECONDS})
            counts = outcome.Outcome()
            step.report(counts)
            self.assertEqual(counts.exit_code(), 1)


class FuzzStepTest(unittest.TestCase):
    def lines(self, run, labels=("//tests/fuzz:a_fuzz",)):
        step = steps.FuzzStep(context(run), list(labels))
        try:
            step.execute()
        except OSError:
            pass
        counts = outcome.Outcome()
        step.report(counts)
        return counts.lines()

    def test_targets_that_ran_are_counted(self):
        def run(_, on_line, *__, **___):
            on_line("passed a_fuzz")
            on_line("failed b_fuzz")
            return 1

        self.assertEqual(self.lines(run), ["FAILED  tests/fuzz:b_fuzz", "1 passed, 1 failed"])

    def test_what_breaks_off_has_failed_once_whatever_passed(self):
        def run(_, on_line, *__, **___):
            on_line("passed a_fuzz")
            raise OSError("no disk")

        self.assertEqual(self.lines(run), ["FAILED  tools/fuzz broke off", "1 passed, 1 failed"])

    def test_planted_faults_are_counted_and_asked_for(self):
        asked = []

        def run(command, on_line, *_, **__):
            asked.append(command[1:])
            on_line("passed m.one")
            on_line("failed m.two")
            return 1

        step = steps.MutationsStep(context(run), ["m.one", "m.two", "m.three"])
        step.execute()
        counts = outcome.Outcome()
        step.report(counts)
        self.assertEqual(asked, [["m.one", "m.two", "m.three"]])
        self.assertEqual(counts.lines(), [
            "FAILED  tests/mutations:m.two",
            "FAILED  tests/mutations/run has no result of tests/mutations:m.three",
            "1 passed, 2 failed"])

    def test_nothing_to_run_is_no_success(self):
        self.assertEqual(self.lines(lambda *_, **__: 0, []), ["FAILED  tools/fuzz ran nothing",
                                                        "0 passed, 1 failed"])
