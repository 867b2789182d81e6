"""Synchronous training on two shards: its parameters, its start, its end and its steps."""

from bsp import commits, faults, moves, pulls, pushes
from bsp.state import Budget, MoveState, Server, State, fresh_lane, tree_nodes
from bsp.view import View
from explore.model import Model


class Bsp(Model):
    """Two shards, each with one copy, in bsp mode.

    Shard 0 lives on server 0 and shard 1 on server 1. With `move` shard 1 goes to server 2 under
    epoch 2, while server 1 lives on as a zombie. A worker pushes any node of the lanes' tree all of
    whose lanes it hosts and has computed. The network delivers a push at any time and any number
    of times while it is kept, and every contribution ever computed at any later time (`late`). So
    it covers every loss, delay, repetition and change of order.
    """

    PARAMETERS = dict(
        lanes=2, workers=2, steps_to_train=2,
        server_kills=1, worker_kills=1, kills=2,   # the last: both together
        images=0,               # base images of each shard
        late=True,              # pushes arrive at any later time
        zombies=0,              # live workers that are declared dead; the old driver goes on
        presum=True,            # workers push sums of several lanes
        largest_only=False,     # a worker pushes only the largest nodes that it can form
        starts="any",           # where a re-hosted lane starts: any, min or max of the clocks + 1
        # Rules: each is on unless a run drops it.
        nodes_drop=True,        # the gate drops a node whose lanes it holds
        nodes_replace=True,     # an arriving node replaces those below it
        old_steps_drop=True,    # a push of a step at or below the clock is dropped
        jumps=True,             # a pull older than the pre-images is told the clock
        keeps=True,             # workers keep contributions until every shard has committed
        waits_for_all=True,     # a worker computes only when all servers have answered
        pre_images=True,        # a server answers Pull(clock) from its pre-images
        replay_pre=True,        # replay makes the pre-images of the last record
        image_pre=True,         # a base image has the pre-images of its clock
        log_first=True,         # a step is durable before it is applied and acknowledged
        trusts_ssd=False,       # recovery replays onto the rows below DRAM, not onto the image
        parts=1,                # log records of one step
        torn="atomic",          # a step of which records lack: atomic (dropped), min, max, mindedup
        resend="free",          # free, inc (after a new incarnation), epoch (after a new epoch only)
        memory=False,           # durability `memory`: a kill may lose the end of the log
        steps_back=False,       # a lane goes back where a shard's clock lies far below its step
        # The move of shard 1.
        move=False, seal=False, seal_durable=True, copy_after_acks=True, discards=True,
        move_pre=True, ack_before_serve=True, shared_log=False, replay_dedup=True, delay=True,
        server_epoch=True, fence=True,
        one_worker=False,       # all lanes begin on worker 0
        rollback=False, generations_checked=True)

    CHOICES = dict(starts=("any", "min", "max"), torn=("atomic", "min", "max", "mindedup"),
                   resend=("free", "inc", "epoch"))

    def __init__(self, **changes):
        super().__init__(**changes)
        self.nodes = tree_nodes(self.lanes)
        self.members = [frozenset(range(first, end)) for first, end in self.nodes]
        every = range(len(self.nodes))
        self.usable = [n for n in every if self.presum or len(self.members[n]) == 1]
        self.above = [sum(1 << o for o in every if self.members[n] <= self.members[o]) for n in every]
        self.below = [sum(1 << o for o in every if self.members[o] < self.members[n]) for n in every]
        self.serial = [((tuple(range(1, step + 1)),) * self.parts)
                       for step in range(self.steps_to_train + 2)]  # the right value of each clock

    def start(self):
        zero = self.serial[0]
        server = Server(1, 0, zero, None, 0, 0, 1, (0, zero, None), (), self.images,
                        zero if self.trusts_ssd else None)
        target = server._replace(up=0, images_left=0, ssd=None)
        lanes = [fresh_lane(n, 0 if self.one_worker else n % self.workers, 1)
                 for n in range(self.lanes)]
        return State((server, server) + ((target,) if self.move else ()), tuple(lanes),
                     (1,) * self.workers if self.move else (),
                     Budget(self.server_kills, self.worker_kills, self.kills, self.zombies),
                     0, (0, 0), MoveState(0, 0, 0, 0) if self.move else (),
                     (0, (1,) * self.workers, (1, 1)) if self.rollback else (),
                     (None,) * self.lanes if self.move and self.delay else ())

    def rolled_back(self, state):
        """Level `memory` lost more than a step: the whole job goes back to its checkpoint."""
        first, second = state[0][:2]
        return self.memory and first.up and second.up and abs(first.clock - second.clock) > 1

    def done(self, state):
        if self.rolled_back(state):
            return True
        return all(lane.zombie or lane.step == self.steps_to_train + 1 and lane.first and lane.second
                   for lane in state[1])

    def steps(self, state):
        if self.rolled_back(state):
            return []
        view = View(self, state)
        for index in range(len(view.lanes)):
            pulls.add_steps(view, index)
        pushes.add_pushes(view)
        pushes.add_late_pushes(view)
        for number in range(len(view.servers)):
            commits.add_steps(view, number)
        faults.add_server_faults(view)
        faults.add_worker_kills(view)
        faults.add_zombies(view)
        moves.add_roll_back(view)
        moves.add_move(view)
        return view.found

    def late_bit(self, step, node, generation):
        """The place of a contribution among the bits of State.late."""
        count = len(self.nodes)
        return 1 << (((generation - 1) * self.steps_to_train + step - 1) * count + node)
