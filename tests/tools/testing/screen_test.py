"""screen.py: a terminal's live line, and a log's lines."""

import io
import os
import unittest

import screen


class ScreenTest(unittest.TestCase):
    def test_a_log_gets_a_line_now_and_then(self):
        out = io.StringIO()
        shown = screen.Screen(False, out)
        for second in range(95):
            shown.progress("at %d" % second, second)
        self.assertEqual(out.getvalue(), "at 30\nat 60\nat 90\n")

    def test_what_nobody_reads_ends_nothing(self):
        reader, writer = os.pipe()
        os.close(reader)
        out = open(writer, "w", encoding="utf-8")  # pylint: disable=consider-using-with
        for is_live in (False, True):
            shown = screen.Screen(is_live, out)
            shown.say("news")
            shown.progress("at 30", 30)
            shown.clear()
        with self.assertRaises(OSError):
            out.close()

    def test_a_terminal_has_one_line_that_changes_and_makes_room(self):
        out = io.StringIO()
        shown = screen.Screen(True, out, width=lambda: 9)
        shown.progress("first line", 0)
        shown.progress("second", 1)
        shown.say("news")
        shown.clear()
        self.assertEqual(out.getvalue(), "first li\r\x1b[Ksecond\r\x1b[Knews\n")
