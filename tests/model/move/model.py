"""A live move, merge or split: its parameters, its promises, its start, its end and its steps."""

from explore.model import Memo, Model, Violation
from move import lanes, scheduler, servers, target
from move.state import (LOST, NEW_MAP, NO_COPY, OLD_MAP, OWNERS, RUNS, SOURCES, TARGET, Budget, Copying,
                        Lane, Scheduler, Server, State)
from move.view import View

SWAPPED = (0, 2, 1, 3)  # bits of two lanes, after the lanes have changed places


class Move(Model):
    """Bsp shards that have one copy each, at level `logged`, while training goes on.

    Two lanes are alike: states that differ only by their names are one state, unless `symmetry` is
    off.
    """

    PARAMETERS = dict(
        symmetry=True, operation="move", steps_to_train=2,
        kills=1, worker_kills=0, target_losses=0, wrong=0, attempts=1,  # faults
        late=True,                # pushes arrive at any later time
        # Rules: each is on unless a run drops it.
        unseal=True, seal_durable=True, self_unseal=False, fresh_report=True, copy_durable=True,
        serve_after=True, move_pre=True, named_step=True, sealed_pulls=True, drop_late=True,
        request_epoch=True, seal=True)

    CHOICES = dict(operation=tuple(OWNERS))

    def __init__(self, **changes):
        super().__init__(**changes)
        self.owners = OWNERS[self.operation]
        self.sources = SOURCES[self.operation]
        self._swapped = Memo(
            lambda members: tuple(x._replace(gate=SWAPPED[x.gate]) for x in members))

    def start(self):
        owner = Server(RUNS, 1, 0, 0, 0, 1, 1)
        empty = Server(RUNS, 1, 0, 0, 0, 0, 0)
        lane = Lane(1, 0, 0, 1, 0)
        return State((owner, empty if self.operation == "split" else owner, empty),
                     Copying((NO_COPY,) * len(self.sources), 0, 0), (lane, lane),
                     Scheduler(OLD_MAP, 0, 0),
                     Budget(self.kills, self.worker_kills, self.target_losses, self.wrong,
                            self.attempts), (0, 0))

    def canonical(self, state):
        members, copying, both, told, budget, seen = state
        if both[0] <= both[1] or not self.symmetry:
            return state
        return (self._swapped[members], copying, (both[1], both[0]), told, budget, seen)

    def owner(self, maps, epoch, unit):
        """The server that owns a unit in an epoch."""
        return self.owners[maps[epoch - 1]][unit]

    def owns(self, server, maps, epoch):
        return server in self.owners[maps[epoch - 1]]

    def check(self, state):
        members, copying, _, told, _, seen = state
        if self.rolled_back(state):
            return
        epoch = len(told.maps)
        for unit in (0, 1):
            number = self.owner(told.maps, epoch, unit)
            server = members[number]
            # A target that owns rows and does not know it yet has its copy's clock.
            served = server.has_data or number != TARGET
            clock = server.clock if served else min(clock for clock, _ in copying.copies)
            if clock < seen[unit]:
                raise Violation("P1", "server %d owns unit %s in epoch %d at clock %d, a lane saw "
                                "commit %d", number, "AB"[unit], epoch, clock, seen[unit])
            if number != TARGET and not server.has_data:
                raise Violation("P1", "server %d owns unit %s in epoch %d and has dropped it", number,
                                "AB"[unit], epoch)
        if abs(seen[0] - seen[1]) > 1:
            raise Violation("P3", "shards differ by more than one step")

    def rolled_back(self, state):
        """The new owner's machine is lost: the job goes back to a checkpoint."""
        lost = state[0][TARGET].up == LOST and state[3].maps[-1] == NEW_MAP
        if lost:
            self.note("the machine of the owner is lost: roll-back, as level `logged` says")
        return lost

    def done(self, state):
        return self.rolled_back(state) or all(
            lane.step == self.steps_to_train + 1 and lane.answers == 3 for lane in state[2])

    def steps(self, state):
        if self.rolled_back(state):
            return []
        view = View(self, state)
        for index in (0, 1):
            lanes.add_steps(view, index)
        for number in range(len(view.servers)):
            servers.add_steps(view, number)
        target.add_steps(view)
        scheduler.add_steps(view)
        return view.found
