"""What a state of a replicated shard consists of."""

from typing import NamedTuple


class State(NamedTuple):
    replicas: tuple
    lanes: tuple
    other: tuple  # the other shard, which never fails: (clock, bits of lanes in its gate)
    scheduler: "Scheduler"
    budget: "Budget"
    seen: int     # bsp: the newest commit that a lane has seen


class Replica(NamedTuple):
    up: int           # RUNS, KILLED (its log is there) or LOST
    config: int       # the configuration that it knows: its place in the scheduler's history
    log: tuple        # steps (bsp) or windows (async)
    committed: int    # how much of the log it knows to be committed
    arriving: int     # the newest acknowledgement of the tail on its way to it
    gate: int         # bits of the lanes whose contribution of the next step it holds
    incarnation: int
    pre_image: int    # whether it can answer Pull(last step of its log)
    member: int       # whose log it has: NO_LOG, MEMBER or LEARNER
    sent: int         # entries that it holds for sent, where a rule is dropped
    behind: int = 0   # 0: its rows have all of its log; else whose entry they lack: OWN or TAKEN


RUNS, KILLED, LOST = 1, 0, -1

OWN, TAKEN = 1, 2  # appended by itself as the head, taken from its predecessor

# No log; the log that the configuration means; a copied one, and it is in no chain yet.
NO_LOG, MEMBER, LEARNER = 0, 1, 2


class Lane(NamedTuple):
    """A lane with a worker of its own."""
    step: int      # bsp: the step that it pulls; async: its next window
    answers: int   # bsp: bits of CHAIN and OTHER
    keeps: int     # bsp: whether it keeps its contribution of the step before
    ok: int        # bsp: the identity that gave the OK for it, or 0
    config: int    # the configuration that its worker knows
    computed: int  # bsp: the highest step ever computed; async: windows acknowledged


CHAIN, OTHER, BOTH = 1, 2, 3


class Scheduler(NamedTuple):
    history: tuple  # every Configuration ever written
    full: int       # bits of the replicas that may be promoted


class Configuration(NamedTuple):
    epoch: int
    chain: tuple  # head first
    written: int  # TOLD and not persisted, PERSISTED or FORGOTTEN


TOLD, PERSISTED, FORGOTTEN = 0, 1, 2


class Budget(NamedTuple):
    """Faults that may still happen."""
    kills: int
    losses: int            # machines
    wrong: int             # live replicas that are suspected
    worker_kills: int
    joins: int
    wipes: int             # replicas that come back under their name without their log
    powers: int            # machines that lose power, and the end of a log that was not synced
    scheduler_crashes: int


def window(lane, number):
    """The name of a lane's window in a log: two lanes' names differ in bit 8."""
    return lane * 8 + number


def newest(history):
    """The place of the newest persisted configuration."""
    for place in range(len(history) - 1, -1, -1):
        if history[place].written == PERSISTED:
            return place
    raise AssertionError("the first configuration is persisted")


def is_whole(members, full, number):
    """Whether a replica is full and its machine is not lost."""
    replica = members[number]
    return full >> number & 1 and replica.up != LOST and replica.member == MEMBER
