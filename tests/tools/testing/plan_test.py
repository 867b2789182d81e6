"""plan.py and the plan.toml that tools/test reads."""

import unittest

import command_line
import plan

SMALL = """
[concurrency]
tests = "2"
[[part]]
name = "tests"
lane = "main"
tests = "a"
build = "//..."
[[part]]
name = "asan"
lane = "side"
after_build = true
flags = ["--config=asan"]
short_flags = ["-s"]
short_flags_gpu = "9.0"
tests = '''b
  c'''
long_tests = "d"
[sanitizers]
folders = ["x", "y"]
[fuzz]
seconds = 3
targets = "f"
[seeds]
tag = "seeds"
seconds = 30
[changed]
depth = 3
sanitizer_depth = 2
smoke = ["//s:s"]
everything = ["*.bzl"]
driver = "d"
[[left_out]]
what = "one two three four"
where = "--long"
[[left_out]]
what = "five"
where = "--data DIR"
"""


class PlanTest(unittest.TestCase):
    def test_parts_run_other_tests_under_long(self):
        small = plan.Plan(SMALL)
        self.assertEqual([p.tests for p in small.parts()], ["a", "b c"])
        self.assertEqual([p.tests for p in small.parts(is_long=True)], ["a", "d"])
        self.assertEqual([p.flags for p in small.parts(is_long=True)], [(), ("--config=asan",)])
        asan = small.parts()[1]
        self.assertEqual((asan.lane, asan.flags, asan.suffix),
                         ("side", ("--config=asan", "-s"), " [asan]"))
        self.assertEqual([p.after_build for p in small.parts()], [False, True])
        self.assertEqual((small.parts()[0].build, small.parts()[0].suffix), ("//...", ""))

    def test_short_flags_are_not_for_older_gpus(self):
        small = plan.Plan(SMALL)
        for gpus, given in (((), True), (((9, 0),), True), (((12, 0), (9, 0)), True),
                            (((8, 0),), False), (((9, 0), (8, 9)), False), (((0, 0),), False)):
            self.assertEqual("-s" in small.parts(gpus=gpus)[1].flags, given, gpus)
            self.assertNotIn("-s", small.parts(is_long=True, gpus=gpus)[1].flags)

    def test_an_a100_gets_kernels_that_it_can_load(self):
        for gpus, newest in (((), True), (((9, 0),), True), (((8, 0),), False)):
            flags = {p.name: p.flags for p in plan.load().parts(gpus=gpus)}["cuda"]
            self.assertEqual("--define=cuda_targets=newest" in flags, newest, gpus)

    def test_sanitizers_have_a_part_for_each_folder(self):
        def tests(folder):  # without those that are built for GPUs alone
            return ("tests(//tests/%s/...) except attr(tags, '\\bcuda\\b', tests(//tests/%s/...))"
                    % (folder, folder))

        self.assertEqual([(p.name, p.tests, p.flags) for p in plan.Plan(SMALL).sanitizer_parts()],
                         [("asan-x", tests("x"), ("--config=asan",)),
                          ("asan-y", tests("y"), ("--config=asan",))])

    def test_the_table_has_a_row_for_each_that_is_left_out(self):
        self.assertEqual(plan.Plan(SMALL).table(28).split("\n"), [
            "  --long      one two three", "              four", "  --data DIR  five"])

    def test_tools_test_knows_what_its_table_names(self):
        real = plan.load()
        self.assertEqual([p.name for p in real.parts()], ["tests", "cuda", "asan", "tsan"])
        self.assertEqual(len(real.smoke), 3)
        parts = {p.name: p for p in real.parts()}
        long_parts = {p.name: p for p in real.parts(is_long=True)}
        named = {row["part"] for row in real.left_out if "part" in row}
        self.assertEqual(named, {n for n in parts if parts[n] != long_parts[n]})
        text = command_line.help_text(real)
        for row in real.left_out:
            self.assertIn(row["what"].split()[0], text)
            flag = row["where"].split()[0]
            self.assertTrue(flag.startswith("tools/") or "\n  %s" % flag in text, flag)
