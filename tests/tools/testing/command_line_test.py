"""command_line.py: what tools/test accepts."""

import os
import tempfile
import unittest

import command_line
import plan

PLAN = plan.load()


def parse(*arguments):
    return command_line.parse(arguments, PLAN)


class CommandLineTest(unittest.TestCase):
    def refused(self, why, *arguments):
        with self.assertRaises(command_line.UsageError) as caught:
            parse(*arguments)
        self.assertIn(why, str(caught.exception))

    def test_nothing_means_everything(self):
        options = parse()
        self.assertEqual(options, command_line.Options(depth=PLAN.depth,
                                                       seeds_seconds=PLAN.seeds_seconds))
        self.assertEqual(command_line.test_flags(options), [])

    def test_flags_reach_bazel(self):
        with tempfile.TemporaryDirectory() as folder:
            options = parse("--long", "--data", folder, "--rerun")
            self.assertEqual(command_line.test_flags(options), [
                "--test_env=STRATA_LONG=1", "--test_timeout=-1,-1,-1,14400",
                "--test_env=STRATA_TEST_DATA=" + os.path.realpath(folder),
                "--nocache_test_results"])
            self.assertEqual(parse("--data=" + folder).data, os.path.realpath(folder))

    def test_changed_takes_a_revision_or_none(self):
        self.assertEqual((parse("--changed").changed, parse("--changed").revision), (True, ""))
        for arguments in (("--changed", "HEAD~2"), ("--changed=HEAD~2",)):
            self.assertEqual(parse(*arguments).revision, "HEAD~2")
        options = parse("--changed", "--depth", "5", "--verbose")
        self.assertEqual((options.revision, options.depth, options.verbose), ("", 5, True))
        self.refused("wants a revision", "--changed=")

    def test_seeds(self):
        options = parse("--seeds-seconds", "0", "--seeds-base=77")
        self.assertEqual((options.seeds_seconds, options.seeds_base), (0, 77))

    def test_help_and_sanitizers(self):
        self.assertTrue(parse("-h").help and parse("--help").help)
        self.assertTrue(parse("--sanitizers").sanitizers)

    def test_wrong_usage_says_why(self):
        self.refused("unknown argument '--fast'", "--fast")
        self.refused("unknown argument '--long=1'", "--long=1")
        self.refused("unknown argument 'x'", "x")
        self.refused("--data wants a folder", "--data")
        self.refused("--data /nowhere/at/all: no such folder", "--data", "/nowhere/at/all")
        for wrong in ("x", "-1", "0", "1.5", ""):
            self.refused("--depth %s: wants a number, 1 or more" % wrong, "--changed",
                         "--depth=" + wrong)
        self.refused("--seeds-seconds wants a number", "--seeds-seconds")
        self.refused("--depth goes with --changed", "--depth", "3")
        self.refused("--verbose goes with --changed", "--verbose")
        self.refused("choose one", "--changed", "--sanitizers")
        self.refused("no part `seeds` with --changed", "--changed", "--seeds-seconds", "3")
        self.refused("no part `seeds` with --sanitizers", "--sanitizers", "--seeds-base", "3")

    def test_help_names_every_flag_and_the_table(self):
        text = command_line.help_text(PLAN)
        for flag in ("--changed [REV]", "--depth N", "--verbose", "--long", "--data DIR",
                     "--seeds-seconds N", "--seeds-base N", "--rerun", "--sanitizers"):
            self.assertIn("  " + flag, text)
        self.assertIn(PLAN.table(), text)
