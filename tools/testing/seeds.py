"""The part `seeds`: simulations with fresh seeds for a stated time.

A simulation is a Catch2 case tagged [seeds], of a test that Bazel knows by the tag `seeds`. It
takes its seeds from tests/seed.h: STRATA_SEED is the first, STRATA_SEED_COUNT their number. Each
simulation counts up from one base, in runs of some seconds; after a run that failed, halves of its
seeds are run, and halves of the half that fails, so that one command replays one seed.
"""

import dataclasses
import random
import shlex
import zlib

RUN_SECONDS = 2      # how long a run of several seeds should take
MOST_SEEDS = 1000    # of one run
HANGS_SECONDS = 300  # no run takes that long


@dataclasses.dataclass
class Simulation:
    label: str
    binary: str
    case: str
    next_seed: int = 0
    count: int = 1           # of the next run
    done: int = 0            # seeds that passed
    failure: str = ""        # what to say of the seed that failed
    said: list = dataclasses.field(default_factory=list)  # the last lines of its last failed run
    seconds: float = 0       # of all its runs

    @property
    def name(self):
        return "%s: %s" % (self.label, self.case)


def new_base():
    """Small enough to be read aloud, and with room to count up."""
    return random.SystemRandom().randrange(1, 2**40)


def case_names(listed):
    """Of `binary --list-test-names-only [seeds]`."""
    return [line.strip() for line in listed.splitlines() if line.strip()]


def escape(case):
    """A case's name as Catch2 wants it on its command line."""
    return "".join("\\" + c if c in "\\,[" else c for c in case)


def command(simulation):
    return [simulation.binary, escape(simulation.case)]


def environment(first, count):
    return {"STRATA_SEED": str(first), "STRATA_SEED_COUNT": str(count)}


def replay(simulation, first, count=1):
    """What a person types."""
    given = "STRATA_SEED=%d " % first
    if count != 1:
        given += "STRATA_SEED_COUNT=%d " % count
    return given + " ".join(shlex.quote(word) for word in command(simulation))


def next_turn(waiting, base):
    """The one of these that ran for the shortest time; among those that never ran, by chance: where
    time is short, other runs of tools/test begin with others."""
    return min(waiting, key=lambda s: (s.seconds, zlib.crc32(b"%d %s" % (base, s.name.encode()))))


def take_turn(simulation, seconds_of_last, most=MOST_SEEDS):
    """(first, count) of the next run; as many seeds as take RUN_SECONDS, by the last run's time."""
    if seconds_of_last is not None:
        wanted = simulation.count * RUN_SECONDS / max(seconds_of_last, 0.001)
        # Not more than four times as many: the first run of a process takes longer.
        simulation.count = int(max(1, min(wanted, 4 * simulation.count, most)))
    first = simulation.next_seed
    simulation.next_seed += simulation.count
    return first, simulation.count


def find_failing(first, count, run_some):
    """(first, count) of a seed that fails alone, or of the fewest found that fail together while
    neither half of them fails. These failed together. `run_some`: (first, count) -> passed."""
    while count > 1:
        half = count // 2
        if not run_some(first, half):
            count = half
        elif not run_some(first + half, count - half):
            first, count = first + half, count - half
        else:
            break
    return first, count


def failure_text(simulation, first, count):
    again = replay(simulation, first, count)
    if count > 1:
        return "seeds %d to %d failed together, no half alone; again: %s" % (
            first, first + count - 1, again)
    return "seed %d failed; again: %s; then add it to tests/sim/seeds" % (first, again)


def run_turn(simulation, seconds_of_last, run):
    """One run of a simulation, and what follows where it fails. `run`: (first, count) -> (passed,
    seconds). Returns the run's seconds."""
    first, count = take_turn(simulation, seconds_of_last)
    passed, seconds = run(first, count)
    simulation.seconds += seconds
    if passed:
        simulation.done += count
    else:
        found = find_failing(first, count, lambda f, c: run(f, c)[0])
        simulation.failure = failure_text(simulation, *found)
    return seconds
