"""What tools/test says while it runs: pure functions of what is known of each part."""

import dataclasses
import re

# "[1,346 / 1,356] ": of Bazel's actions.
ACTIONS = re.compile(r"^(?:\(\S+\) )?\[([\d,]+) / ([\d,]+)\]")


@dataclasses.dataclass
class Status:
    """Where a part stands. Written by its lane, read by who prints: each field by itself."""
    part: str
    lane: str
    state: str = "waits"     # "waits", "runs", "over"
    doing: str = ""          # a phase of it
    done: int = 0            # tests, checks or simulations
    total: int = 0
    failed: int = 0
    begun: float = 0         # seconds of a monotonic clock
    took: float = 0          # when it is over
    actions: tuple = ()      # Bazel's (done, all)
    left: float = None       # expected seconds until it is over; None: unknown
    waits_for_build: bool = False  # begins its work when the ordinary build is over
    build_left: float = 0.0  # until what others wait for is built; None: unknown


def clock(seconds):
    """1:02:03, 2:03."""
    seconds = int(seconds + 0.5)
    if seconds >= 3600:
        return "%d:%02d:%02d" % (seconds // 3600, seconds // 60 % 60, seconds % 60)
    return "%d:%02d" % (seconds // 60, seconds % 60)


def read_actions(line):
    """Bazel's own count in a line of its progress; None in any other line."""
    found = ACTIONS.match(line)
    if not found:
        return None
    return tuple(int(text.replace(",", "")) for text in found.groups())


def slots(text, cores):
    """How many at once, of what Bazel is told: "3", "HOST_CPUS", "HOST_CPUS*2.5"."""
    if not text.startswith("HOST_CPUS"):
        return float(text)
    return cores * float(text.partition("*")[2] or 1)


def tests_left(times, wanted, done, at_once):
    """Seconds for the tests that have no result yet, so many at a time. None: unknown. No shorter
    than the longest of them."""
    waiting = [name for name in wanted if name not in done]
    seconds = times.of_tests(waiting)
    if seconds is None:
        return None
    longest = max((times.tests.get(name, 0.0) for name in waiting), default=0.0)
    return max(seconds / at_once, longest)


def build_left(actions, elapsed):
    """Seconds for what Bazel has still to do at the pace so far; None: unknown."""
    if not actions or actions[0] < 20 or elapsed <= 0:
        return None
    return max(0, actions[1] - actions[0]) * elapsed / actions[0]


def expected(statuses, times):
    """(seconds until all is over, whether all of it is known). Lanes run beside each other; what
    waits for the build begins no sooner than that is over."""
    lanes, known = {}, True
    to_build = [s.build_left for s in statuses if s.state != "over"]
    for s in statuses:
        if s.state == "over":
            continue
        begins = lanes.get(s.lane, 0.0)
        if s.waits_for_build:
            known = known and None not in to_build
            begins = max([begins] + [seconds or 0.0 for seconds in to_build])
        left = times.parts.get(s.part) if s.left is None else s.left
        known = known and left is not None
        lanes[s.lane] = begins + (left or 0.0)
    return max(lanes.values(), default=0.0), known


def part_text(s):
    text = s.part
    if s.doing:
        text += " " + s.doing
    if s.actions and s.actions[0] < s.actions[1] and not s.done:
        text += " %d/%d actions" % s.actions
    elif s.total:
        text += " %d/%d" % (s.done, s.total)
    if s.failed:
        text += " (%d failed)" % s.failed
    return text


def line(statuses, times, elapsed):
    """One line: parts that run, counts of all, elapsed and expected time."""
    running = [part_text(s) for s in statuses if s.state == "runs"]
    seconds, known = expected(statuses, times)
    if known:
        left = "about %s left" % clock(seconds)
    elif seconds:
        left = "more than %s left" % clock(seconds)
    else:
        left = "time left unknown"
    over = sum(s.state == "over" for s in statuses)
    failed = sum(s.failed for s in statuses)
    return "test: %s, %s; %d of %d parts done, %d failed; %s" % (
        clock(elapsed), left, over, len(statuses), failed, ", ".join(running) or "nothing runs")
