"""The configurations as a whole: README.md, `expected`, and which of them always run."""

import os
import re
import unittest
from unittest import mock

import cases
import catalogue
from explore.configuration import Configuration
from explorer_test import Counter

ROOM = re.compile(r"^## [A-Z]\. .*\(`(\w+)`\)$")
RULE = re.compile(r"^(\d+)\. ")
NAMES = re.compile(r"\[([a-z0-9_/, ]+)\]")
SECTION = {"bsp": "B", "chain": "R", "move": "M", "cut": "C"}


def rules_of(text):
    """{rule: (its text, [names of configurations])} of README.md: "R1"."""
    found, room, rule = {}, None, None
    for line in text.split("\n"):
        heading, begin = ROOM.match(line), RULE.match(line)
        if line.startswith("## "):
            room, rule = heading and heading.group(1), None
        elif room and begin:
            rule = SECTION[room] + begin.group(1)
            found[rule] = [room, line]
        elif room and rule and line.startswith("  "):
            found[rule][1] += " " + line.strip()
        else:
            rule = None
    return {rule: (text, [name if "/" in name else "%s/%s" % (room, name)
                          for names in NAMES.findall(text) for name in names.split(", ")])
            for rule, (room, text) in found.items()}


def read_rules():
    with open(os.path.join(os.path.dirname(catalogue.EXPECTED), "README.md"), encoding="utf-8") as file:
        return rules_of(file.read())


class CatalogueTest(unittest.TestCase):
    def test_rules_are_read_with_the_names_behind_them(self):
        text = ("## Words\n\n1. No rule. [a]\n\n## R. Copies (`chain`)\n\n*Appending*\n\n1. One [x_a, b]\n"
                "   goes on. [move/c]\n2. *(paper)* Two.\n\nThe end [d]\n")
        rules = rules_of(text)
        self.assertEqual(sorted(rules), ["R1", "R2"])
        self.assertEqual(rules["R1"][1], ["chain/x_a", "chain/b", "move/c"])
        self.assertEqual(rules["R2"][1], [])

    def test_every_rule_has_a_configuration_that_always_runs(self):
        rules = read_rules()
        self.assertEqual([len([r for r in rules if r[0] == letter]) for letter in "BRMC"], [15, 18, 13, 9])
        for rule, (text, names) in rules.items():
            always = [n for n in names if not catalogue.CONFIGURATIONS[n].long]
            self.assertTrue(always or not names and "*(paper)*" in text, "%s: %s" % (rule, text))

    def test_every_configuration_stands_behind_a_rule(self):
        named = {name for _, names in read_rules().values() for name in names}
        self.assertEqual(sorted(named - set(catalogue.CONFIGURATIONS)), [])
        self.assertEqual(sorted(set(catalogue.CONFIGURATIONS) - named), [])

    def test_each_dropped_rule_always_runs_and_breaks_a_promise_or_says_why_not(self):
        for name, configuration in catalogue.CONFIGURATIONS.items():
            if name.split("/")[1].startswith("x_"):
                self.assertTrue(bool(configuration.breaks) != bool(configuration.needless), name)
            else:
                self.assertEqual((configuration.breaks, configuration.needless), ("", ""), name)

    def test_a_dropped_rule_that_runs_under_long_alone_has_a_smaller_run_always(self):
        for name, configuration in catalogue.CONFIGURATIONS.items():
            if configuration.long and "/x_" in name:
                smaller = catalogue.CONFIGURATIONS[name.rpartition("_")[0]]
                self.assertFalse(smaller.long, name)
                self.assertEqual((smaller.breaks, smaller.needless),
                                 (configuration.breaks, configuration.needless), name)

    def test_what_is_expected_is_there_for_each_that_always_runs_and_for_nothing_else(self):
        expected = list(catalogue.read_expected())
        self.assertEqual(expected, [name for name in catalogue.CONFIGURATIONS if name in expected])
        self.assertEqual([name for name, configuration in catalogue.CONFIGURATIONS.items()
                          if name not in expected and not configuration.long], [])

    def test_each_room_always_runs_one_that_drops_no_rule(self):
        for room, configurations in catalogue.ROOMS.items():
            self.assertTrue([name for name, configuration in configurations.items()
                             if not name.startswith("x_") and not configuration.long], room)

    def test_a_line_of_expected_sizes_that_cannot_be_read_is_named(self):
        path = os.path.join(os.environ.get("TEST_TMPDIR", "/tmp"), "expected_%d" % os.getpid())
        with open(path, "w", encoding="utf-8") as file:
            file.write("# x\nbsp/image 1 2 3\nbsp/other 1 two 3\n")
        with self.assertRaisesRegex(ValueError, ":3: a line is a name and three numbers: bsp/other"):
            catalogue.read_expected(path)
        catalogue.write_expected({"bsp/image": (1, 2, 3), "gone": (4, 5, 6)}, path)
        self.assertEqual(catalogue.read_expected(path), {"bsp/image": (1, 2, 3)})
        os.remove(path)


class CasesTest(unittest.TestCase):
    """What fails, and how: a configuration must not pass for luck."""

    HOLDS = Configuration(Counter, {"end": 1})
    BREAKS = Configuration(Counter, {"forbidden": (1, 1)}, "P1")

    def failure(self, configuration, expected):
        with self.assertRaises(AssertionError) as raised:
            cases.check("room/name", configuration, expected)
        return str(raised.exception)

    def test_what_is_as_expected_passes(self):
        cases.check("room/name", self.HOLDS, (4, 4, 0))
        cases.check("room/name", self.BREAKS, (7, 7, 2))

    def test_a_promise_that_breaks_fails_with_the_trace(self):
        text = self.failure(self.BREAKS._replace(breaks=""), (7, 7, 2))
        self.assertIn("room/name\nexpected OK, found P1\n   1 first to 1\n   2 second to 1\n"
                      "  => P1: reached 1, 1", text)

    def test_another_promise_and_none_fail(self):
        self.assertIn("expected P2, found P1", self.failure(self.BREAKS._replace(breaks="P2"), (7, 7, 2)))
        self.assertIn("expected L, found OK", self.failure(self.HOLDS._replace(breaks="L"), (4, 4, 0)))

    def test_a_model_that_explores_less_fails(self):
        self.assertIn("expected 5 states, found 4", self.failure(self.HOLDS, (5, 4, 0)))
        self.assertIn("expected 5 edges, found 4", self.failure(self.HOLDS, (4, 5, 0)))
        self.assertIn("expected 3 steps of the trace, found 2", self.failure(self.BREAKS, (7, 7, 3)))

    def test_a_configuration_without_expected_sizes_fails_unless_it_is_long(self):
        self.assertIn("no states are expected", self.failure(self.HOLDS, None))
        cases.check("room/name", self.HOLDS._replace(long=True), None)
        self.assertIn("expected P1, found OK",
                      self.failure(self.HOLDS._replace(long=True, breaks="P1"), None))

    def test_one_case_a_configuration_and_the_long_ones_when_they_are_asked_for(self):
        configurations = {"a": self.HOLDS, "b": self.HOLDS._replace(long=True)}
        expected = {"room/a": (4, 4, 0), "room/b": (4, 5, 0)}
        for with_long, names in ((False, ["test_a"]), (True, ["test_a", "test_b"])):
            made = cases.make("room", configurations, expected, with_long)
            self.assertEqual(unittest.defaultTestLoader.getTestCaseNames(made), names)
            result = unittest.TestResult()
            unittest.defaultTestLoader.loadTestsFromTestCase(made).run(result)
            self.assertEqual((result.testsRun, len(result.failures)), (len(names), len(names) - 1))

    def test_a_long_run_is_asked_for_by_the_environment(self):
        for value, is_long in (("", False), ("1", True)):
            with mock.patch.dict(os.environ, STRATA_LONG=value):
                self.assertEqual(cases.is_long_run(), is_long)
