"""What a state of synchronous training consists of."""

from typing import NamedTuple


class State(NamedTuple):
    servers: tuple      # Server: of shard 0, of shard 1, and the target of a move
    lanes: tuple        # Lane; behind them the drivers of lanes that were taken from a live worker
    epochs: tuple       # move: the map epoch that each worker knows, 1 or 2
    budget: "Budget"
    late: int           # bits of `Bsp.late_bit`: contributions that may still arrive
    seen: tuple         # of each shard the newest commit that a worker has seen
    move: tuple         # MoveState, or () without a move
    generations: tuple  # roll-back: (1 once it began, generation by worker, generation by server)
    replies: tuple      # move: of each lane a Reply of the moved shard on its way, or None


class Server(NamedTuple):
    """One server's shard.

    A value is, for each part of the rows, the tuple of the steps that were applied to it, in order.
    So a step that is lost, applied twice or out of order can be seen.
    """
    up: int
    clock: int
    value: tuple
    pre_image: tuple  # the value before the last step, or None
    pending: int      # parts of the next step in the log, while the commit goes on
    gate: int         # bits of the tree nodes whose contribution of the next step it holds
    incarnation: int
    image: tuple      # base image: (clock, value, pre-image)
    log: tuple        # (step, part) of each record behind the image
    images_left: int  # base images that it may still make
    ssd: tuple        # the value below DRAM, where recovery would trust it


class Lane(NamedTuple):
    """The driver of a lane. It computes at once when both shards have answered its pull."""
    number: int
    worker: int
    step: int       # the step that it pulls
    first: int      # what shard 0 answered: 0 nothing yet, RIGHT or WRONG weights
    second: int     # and shard 1
    keeps: int      # whether it keeps its contribution of the step before
    first_ok: int   # incarnation of the server that gave the OK for it, or 0
    second_ok: int
    zombie: int     # its worker is declared dead and goes on


RIGHT, WRONG = 1, 2


class Budget(NamedTuple):
    """Faults that may still happen."""
    server_kills: int
    worker_kills: int
    kills: int     # both together
    zombies: int


class MoveState(NamedTuple):
    """The move of shard 1 to the third server under epoch 2."""
    persisted: int  # the scheduler has persisted epoch 2
    copied: int
    sealed: int
    fenced: int     # the zombie worker is fenced at every server that can be reached


class Reply(NamedTuple):
    step: int
    right: bool  # whether it has the weights of that step
    epoch: int
    clock: int


def fresh_lane(number, worker, step, zombie=0):
    return Lane(number, worker, step, 0, 0, 0, 0, 0, zombie)


def tree_nodes(lanes):
    """[(first lane, lane behind the last)]: the nodes of the tree in which contributions are summed."""
    nodes = []

    def split(first, end):
        nodes.append((first, end))
        if end - first > 1:
            width = 1
            while width * 2 < end - first:
                width *= 2
            split(first, first + width)
            split(first + width, end)

    split(0, lanes)
    return nodes
