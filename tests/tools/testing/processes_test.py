"""processes.py with real processes."""

import os
import signal
import tempfile
import threading
import time
import unittest

import processes


def alive(pid):
    """Whether it runs; what ended and nobody has waited for does not."""
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # the latter: it went while it was read
        return False


class ProcessesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.children = processes.Children(self.folder)

    def test_lines_of_both_streams_and_the_exit_code(self):
        lines = []
        code = self.children.run(["bash", "-c", "pwd; echo $X >&2; printf 'a\\n\\nb'; exit 3"],
                                 lines.append, dict(os.environ, X="y"))
        self.assertEqual((code, lines), (3, [os.path.realpath(self.folder), "y", "a", "", "b"]))

    def test_a_nice_child_is_nice(self):
        lines = []
        self.children.run(["nice"], lines.append, niceness=7)
        self.assertEqual(lines, [str(min(os.nice(0) + 7, 19))])

    def test_a_child_ends_with_who_reads_its_lines(self):
        lines = []

        def on_line(line):
            lines.append(int(line))
            raise ValueError("no such line")

        with self.assertRaises(ValueError):
            self.children.run(["bash", "-c", "sleep 1000 & echo $!; wait"], on_line)
        deadline = time.monotonic() + 60
        while alive(lines[0]) and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertFalse(alive(lines[0]))
        with self.assertRaises(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)

    def test_what_takes_too_long_is_ended_and_says_so(self):
        lines = []
        code = self.children.run(["bash", "-c", "echo $$; exec sleep 1000"], lines.append,
                                 limit=0.3)
        self.assertEqual((code, lines[1:]),
                         (processes.TOO_LONG, ["ended: it ran for more than 0.3 s"]))
        self.assertFalse(alive(int(lines[0])))
        self.assertEqual(self.children.run(["true"], print, limit=60), 0)

    def started(self, script):
        """Runs a script on another thread; returns (thread, its lines, what it raised) when it
        wrote its first line."""
        lines, raised, first = [], [], threading.Event()

        def on_line(line):
            lines.append(line)
            first.set()

        def work():
            try:
                self.children.run(["bash", "-c", script], on_line)
            except processes.Stopped as stopped:
                raised.append(stopped)

        thread = threading.Thread(target=work)
        thread.start()
        self.assertTrue(first.wait(60))
        return thread, lines, raised

    def test_stop_ends_children_and_what_they_started(self):
        before = processes.GRACE_SECONDS
        self.addCleanup(setattr, processes, "GRACE_SECONDS", before)
        processes.GRACE_SECONDS = ((signal.SIGINT, 3),) + before[1:]
        # The second one is deaf for SIGINT, as jobs of a shell are; so is its child.
        polite = self.started("trap 'echo bye; exit 1' INT; sleep 1000 & echo $!; wait")
        deaf = self.started("trap '' INT; sleep 1000 & echo $!; wait")
        self.children.stop()
        for thread, lines, raised in (polite, deaf):
            thread.join(60)
            self.assertFalse(thread.is_alive())
            self.assertEqual(len(raised), 1)
            self.assertFalse(alive(int(lines[0])))
        self.assertEqual(polite[1][1:], ["bye"])

    def test_who_hears_nothing_is_killed(self):
        before = processes.GRACE_SECONDS
        self.addCleanup(setattr, processes, "GRACE_SECONDS", before)
        processes.GRACE_SECONDS = ((signal.SIGINT, 0.1), (signal.SIGTERM, 0.1),
                                   (signal.SIGKILL, 30))
        thread, lines, _ = self.started("trap '' INT TERM; echo $$; while :; do sleep 1000; done")
        begun = time.monotonic()
        self.children.stop()
        thread.join(60)
        self.assertFalse(alive(int(lines[0])))
        self.assertLess(time.monotonic() - begun, 30)

    def test_after_stop_nothing_starts(self):
        self.children.check()
        self.children.stop()
        self.assertRaises(processes.Stopped, self.children.check)
        with self.assertRaises(processes.Stopped):
            self.children.run(["touch", "x"], print)
        self.assertEqual(os.listdir(self.folder), [])
