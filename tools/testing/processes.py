"""Children of tools/test: each in a process group of its own, and all ended with it."""

import os
import signal
import subprocess
import threading
import time

# Bazel cancels its tests when it is interrupted; what is left then is told to end, and made to.
GRACE_SECONDS = ((signal.SIGINT, 10), (signal.SIGTERM, 3), (signal.SIGKILL, 2))

TOO_LONG = 124  # as timeout(1) exits


class Stopped(Exception):
    """No child is started any more."""


class Children:
    """Any thread."""

    def __init__(self, cwd):
        self._cwd = cwd
        self._mutex = threading.Lock()
        self._running = {}   # group: Popen
        self._stopping = False

    def run(self, command, on_line, env=None, niceness=0, limit=None):
        """Runs a command; `on_line` takes each line of its stdout and stderr, without its end.
        Returns the exit code. Raises Stopped where stop() was called before or meanwhile. After
        `limit` seconds the command is ended, and says so in a last line; the code is TOO_LONG."""
        if niceness:
            command = ["nice", "-n", str(niceness)] + list(command)
        with self._mutex:
            if self._stopping:
                raise Stopped
            # An own session: the terminal's Ctrl-C reaches this process alone, which ends the rest.
            child = subprocess.Popen(command, cwd=self._cwd, env=env, stdin=subprocess.DEVNULL,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                     start_new_session=True)
            self._running[child.pid] = child
        late = threading.Event()
        timer = threading.Timer(limit or 0, end_late, (child.pid, late))
        timer.daemon = True
        if limit:
            timer.start()
        try:
            for line in child.stdout:
                on_line(line.decode("utf-8", errors="replace").rstrip("\n"))
            child.wait()
        finally:
            timer.cancel()
            self._end(child)
        self.check()
        if late.is_set():
            on_line("ended: it ran for more than %g s" % limit)
            return TOO_LONG
        return child.returncode

    def _end(self, child):
        """Kills the child where it still runs: who reads its lines raised something."""
        if child.poll() is None:
            send(child.pid, signal.SIGKILL)
        child.stdout.close()
        child.wait()
        with self._mutex:
            self._running.pop(child.pid, None)

    def check(self):
        """Raises Stopped where stop() was called: for who waits for something else."""
        with self._mutex:
            if self._stopping:
                raise Stopped

    def stop(self):
        """Ends all children with what they started; returns when they are gone."""
        with self._mutex:
            self._stopping = True
            groups = list(self._running)
        end(groups)


def end(groups):
    """Returns when they are gone."""
    for number, seconds in GRACE_SECONDS:
        groups = [g for g in groups if send(g, number)]
        deadline = time.monotonic() + seconds
        while groups and time.monotonic() < deadline:
            time.sleep(0.05)
            groups = [g for g in groups if send(g, 0)]


def end_late(group, late):
    late.set()
    end([group])


def send(group, number):
    """Whether there was anybody to hear it."""
    try:
        os.killpg(group, number)
        return True
    except (ProcessLookupError, PermissionError):
        return False
