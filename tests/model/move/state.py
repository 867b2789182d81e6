"""What a state of a move, a merge or a split with a SEAL consists of."""

from typing import NamedTuple


class State(NamedTuple):
    servers: tuple     # Server: two that own rows at the start, or one of a split, and the target
    copying: "Copying"
    lanes: tuple
    scheduler: "Scheduler"
    budget: "Budget"
    seen: tuple        # of each unit the newest commit that a lane has seen


class Server(NamedTuple):
    up: int         # RUNS, KILLED (its log is there) or LOST
    epoch: int      # the map epoch that it knows
    clock: int
    gate: int       # bits of the lanes whose contribution of the next step it holds
    seal: int       # the epoch of its SEAL, or 0
    pre_image: int  # whether it can answer Pull(clock)
    has_data: int


RUNS, KILLED, LOST = 1, 0, -1
TARGET = 2  # the server that a move goes to


class Copying(NamedTuple):
    copies: tuple  # of each source what the target has: (clock or -1, epoch of the SEAL in it or 0)
    reported: int  # the epoch for which it said to be complete
    early: int     # it serves before the new map is persisted


NO_COPY = (-1, 0)


class Lane(NamedTuple):
    step: int      # the step that it pulls
    answers: int   # bits of the units whose weights it has
    keeps: int     # whether it keeps its contribution of the step before
    epoch: int     # the map epoch that its worker knows
    computed: int  # the highest step ever computed


class Scheduler(NamedTuple):
    maps: str    # of each epoch so far OLD_MAP or NEW_MAP
    moving: int  # whether the move is wanted
    seal: int    # 0 not ordered, 1 + the step to seal at, or SEAL_NOW


OLD_MAP, NEW_MAP = "o", "n"
SEAL_NOW = 99

# Two units of rows, A and B. Of each operation the owners of both by the old map and by the new one.
OWNERS = {
    "move": {OLD_MAP: (0, 1), NEW_MAP: (0, TARGET)},        # B goes from server 1 to the target
    "merge": {OLD_MAP: (0, 1), NEW_MAP: (TARGET, TARGET)},  # both become one shard on the target
    "split": {OLD_MAP: (0, 0), NEW_MAP: (0, TARGET)},       # one shard becomes A, which stays, and B
}
SOURCES = {"move": (1,), "merge": (0, 1), "split": (0,)}


class Budget(NamedTuple):
    """Faults that may still happen, and moves that may begin."""
    kills: int
    worker_kills: int
    target_losses: int
    wrong: int     # moves that are called off though the target lives
    attempts: int
