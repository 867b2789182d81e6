"""What tools/test writes to stderr: lines of Bazel's and the progress line below them."""

import sys
import threading

EVERY_SECONDS = 30


class Screen:
    """In a terminal, a live line; else one line every EVERY_SECONDS. Any thread.

    Where nobody reads any more, or the disk is full, the run goes on: its end tells what failed.
    """

    def __init__(self, is_live, out=None, width=None):
        self._out = out or sys.stderr
        self._live = is_live
        self._width = width or (lambda: 100)
        self._mutex = threading.Lock()
        self._shown = False
        self._next = EVERY_SECONDS

    def say(self, text):
        with self._mutex:
            self._clear()
            self._write(text + "\n")

    def progress(self, text, elapsed):
        """Called every second or so."""
        with self._mutex:
            if self._live:
                self._clear()
                self._write(text[:self._width() - 1])
                self._shown = True
            elif elapsed >= self._next:
                self._next = elapsed + EVERY_SECONDS
                self._write(text + "\n")

    def clear(self):
        with self._mutex:
            self._clear()

    def _clear(self):
        if self._shown:
            self._write("\r\x1b[K")
            self._shown = False

    def _write(self, text):
        try:
            self._out.write(text)
            self._out.flush()
        except OSError:
            pass
