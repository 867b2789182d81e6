"""What a state of an asynchronous cut consists of."""

from typing import NamedTuple


class State(NamedTuple):
    shards: tuple     # one on each server
    lanes: tuple
    old_host: tuple   # (lane, Lane) of a lane that has another host now, or ()
    scheduler: "Scheduler"
    budget: "Budget"


class Shard(NamedTuple):
    """Applied windows are durable."""
    up: int
    over: int         # the newest cut that is over here
    pending: int
    marks: tuple      # of each lane its next window, or NO_MARK
    held: tuple       # of each lane the push that is held back: (window, tag), or ()
    ordered: int      # the newest cut that it was told to take
    applied: tuple    # of each window 1 + the tag with which it was applied, 0 before
    word: tuple       # Word, or ()
    incarnation: int


NO_MARK = -1
NO_MARKS = (NO_MARK, NO_MARK)
NOTHING_HELD = ((), ())


def done_word(cut, applied, marks):
    """What a shard says of a cut: its file is durable, and has these windows and marks."""
    return (cut, applied, marks)


def failed_word(cut):
    return (cut, ())


class Lane(NamedTuple):
    phase: int     # BOUNDARY, PUSHING or MARKING
    window: int    # the next one
    answered: int  # bits of the shards that answered
    told: int      # the newest cut that it was told of
    tag: int       # of its pushes: the last cut that it marked everywhere
    marking: int   # the cut that it marks


BOUNDARY, PUSHING, MARKING = 0, 1, 2


class Scheduler(NamedTuple):
    up: int
    next: int           # the number of the next cut
    pending: int        # the cut that is pending, or 0
    words: tuple        # what it heard from each shard
    incarnations: tuple  # that it saw of each server
    listed: int         # the newest cut that is listed


NO_WORDS = ((), ())


class Budget(NamedTuple):
    """Cuts that may begin, and faults that may happen."""
    cuts: int
    kills: int
    worker_kills: int
    failures: int         # files that cannot be written
    scheduler_kills: int
    lost_oks: int
    late_orders: int      # a lane hears late of a cut
