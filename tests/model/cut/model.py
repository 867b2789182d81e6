"""The aligned cut of an asynchronous checkpoint: its parameters, its promises, its start and its end."""

from cut import lanes, scheduler, servers
from cut.state import (BOUNDARY, NO_MARKS, NO_WORDS, NOTHING_HELD, Budget, Lane, Scheduler, Shard, State)
from cut.view import View
from explore.model import Memo, Model, Violation

SWAPPED = (0, 2, 1, 3)  # bits of two shards, after the shards have changed places


class Cut(Model):
    """Two shards on two servers, two lanes, some windows a lane.

    The old host of a lane that was given to another goes on for ever, but is told nothing more. Two
    lanes are alike, and so are the shards: states that differ only by their names are one state,
    unless `symmetry` is off.
    """

    PARAMETERS = dict(
        symmetry=True, windows=2, cuts=2,
        kills=0, worker_kills=0, failures=0, scheduler_kills=0, lost_oks=0, late_orders=0,  # faults
        dies=False,           # the scheduler dies for good
        old_host=True,        # the old host of a lane goes on
        # Rules: each is on unless a run drops it.
        given_up=True, hold=True, flush=True, abort_moved=True, abort_restart=True, new_number=True,
        ledger=True, over_durable=True, timer_final=True, failure_releases=True, every_ended=True,
        timer=False)          # a shard that has waited long enough ends the cut by itself

    def __init__(self, **changes):
        super().__init__(**changes)
        self._with_lanes_swapped = Memo(self._swap_lanes)

    def start(self):
        shard = Shard(1, 0, 0, NO_MARKS, NOTHING_HELD, 0, (0,) * (2 * self.windows), (), 0)
        lane = Lane(BOUNDARY, 1, 0, 0, 0, 0)
        return State((shard, shard), (lane, lane), (), Scheduler(1, 1, 0, NO_WORDS, (0, 0), 0),
                     Budget(self.cuts, self.kills, self.worker_kills, self.failures,
                            self.scheduler_kills, self.lost_oks, self.late_orders))

    def canonical(self, state):
        if not self.symmetry:
            return state
        shards, both, old_host, told, budget = state
        if both[0] > both[1]:
            shards, told = self._with_lanes_swapped[shards, told]
            both = (both[1], both[0])
            old_host = old_host and (1 - old_host[0], old_host[1])
        if shards[0] > shards[1]:
            shards = (shards[1], shards[0])
            both = (_with_shards_swapped(both[0]), _with_shards_swapped(both[1]))
            old_host = old_host and (old_host[0], _with_shards_swapped(old_host[1]))
            told = told._replace(words=told.words[::-1], incarnations=told.incarnations[::-1])
        return (shards, both, old_host, told, budget)

    def _swap_lanes(self, key):
        """Shards and scheduler after the lanes have changed places."""
        shards, told = key

        def applied(windows):
            return windows[self.windows:] + windows[:self.windows]

        def word(said):
            return (said[0], applied(said[1]), said[2][::-1]) if said and said[1] else said

        return (tuple(x._replace(marks=x.marks[::-1], held=x.held[::-1], applied=applied(x.applied),
                                 word=word(x.word)) for x in shards),
                told._replace(words=tuple(word(said) for said in told.words)))

    def done(self, state):
        """Every window is applied everywhere, nothing is held, and no cut is pending."""
        shards, both, _, told, _ = state
        return (all(l.phase == BOUNDARY and l.window > self.windows for l in both) and
                all(x.up and all(x.applied) and x.held == NOTHING_HELD for x in shards) and
                (self.dies or told.up and told.pending == 0))

    def steps(self, state):
        view = View(self, state)
        for driver in range(3 if view.old_host else 2):
            lanes.add_steps(view, driver)
        for number in (0, 1):
            servers.add_steps(view, number)
        scheduler.add_steps(view)
        return view.found

    def check_listed(self, cut, words):
        """A listed cut has each window before its lanes' places, and none that was pushed after it."""
        (_, first, marks), (_, second, others) = words
        if marks != others:
            raise Violation("P5", "cut %d is listed, and its files disagree on where the lanes stand: "
                            "%s, %s", cut, marks, others)
        for lane in (0, 1):
            for window in range(self.windows):
                for applied in (first, second):
                    tag = applied[lane * self.windows + window]
                    if window + 1 < marks[lane] and not tag:
                        raise Violation("P7", "cut %d is listed and lacks window %d.%d, which no lane "
                                        "would push again", cut, lane, window + 1)
                    if tag - 1 >= cut:
                        raise Violation("P5", "cut %d is listed and holds window %d.%d, pushed after "
                                        "the cut", cut, lane, window + 1)


def _with_shards_swapped(lane):
    """A lane after the shards have changed places."""
    return lane._replace(answered=SWAPPED[lane.answered])
