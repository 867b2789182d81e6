"""tests/model/run, typed as people type it."""

import os
import subprocess
import sys
import unittest

RUN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "run")


def run(*words):
    done = subprocess.run([sys.executable, RUN] + list(words), capture_output=True, text=True,
                          check=False)
    return done.returncode, done.stdout, done.stderr


class RunTest(unittest.TestCase):
    def test_help_and_list(self):
        for words in ((), ("--help",)):
            code, said, _ = run(*words)
            self.assertEqual((code, said.split("\n")[0]),
                             (0, "Explores the models of Strata's protocols."))
        code, said, _ = run("--list")
        self.assertEqual(code, 0)
        self.assertRegex(said, r"(?m)^chain/x_no_reack +P1 .*reack=False")

    def test_one_that_breaks_shows_its_trace(self):
        code, said, _ = run("cut/x_no_ledger")
        self.assertEqual(code, 1)
        self.assertRegex(said, r"(?s)^cut/x_no_ledger +\d+ states .* P2 .*\n   1 lane 0 starts to push "
                         r".*\n  => P2: window 0\.1 is applied twice\n$")

    def test_another_parameter_changes_the_verdict(self):
        code, said, _ = run("cut/x_no_ledger", "ledger=true")
        self.assertEqual(code, 0)
        self.assertRegex(said, r"^cut/x_no_ledger +\d+ states +\d+ edges  OK")
        code, said, _ = run("cut/x_no_ledger", "lost_oks=0")
        self.assertEqual(code, 0)

    def test_what_is_wrong_is_told_in_a_line(self):
        for words, wrong in (
                (("cut/gone",), "cut/gone is no configuration; tests/model/run --list names them"),
                (("--write", "cut/cut", "gone"), "gone is no configuration"),
                (("--all", "cut/cut"), "--all cut/cut: tests/model/run --help says what may be typed"),
                (("cut/cut", "windows"), "windows: say parameter=value"),
                (("cut/cut", "windows=-1"), "windows=-1: say a number from 0 on"),
                (("cut/cut", "hold=2"), "hold=2: say true or false"),
                (("cut/cut", "window=1"), "Cut has no parameter window; it has "),
                (("chain/chain2", "mode=ssp"), "mode=ssp: say bsp or async")):
            code, said, error = run(*words)
            self.assertEqual((code, said), (2, ""))
            self.assertTrue(error.startswith(wrong), error)
            self.assertEqual(error.count("\n"), 1)
