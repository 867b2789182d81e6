"""A replicated shard: its parameters, its promises, its start, its end and its steps."""

from chain import appends, lanes, replicas, scheduler
from chain.state import (BOTH, MEMBER, NO_LOG, OTHER, PERSISTED, RUNS, Budget, Configuration, Lane,
                         Replica, Scheduler, State, is_whole, newest, window)
from chain.view import View
from explore.model import Memo, Model, Violation

SWAPPED = (0, 2, 1, 3)  # bits of two lanes, after the lanes have changed places


class Chain(Model):
    """One shard as a chain of replicas; in bsp a second shard that never fails, since lanes wait for both.

    Replicas and workers learn a configuration at any later time. Two lanes are alike: states that
    differ only by their names are one state, unless `symmetry` is off.
    """

    PARAMETERS = dict(
        mode="bsp", replicas=2, spares=0, steps_to_train=2,
        uncommitted=2,          # async: entries behind the newest committed one
        kills=1, losses=0, wrong=0, worker_kills=0, joins=0, wipes=0, powers=0,
        scheduler_crashes=0,    # faults
        symmetry=True,
        late=True,              # pushes arrive at any later time
        identity=True,          # an OK counts for the identity that gave it; else a worker pushes at will
        skips=True,             # workers learn old epochs, too
        apply_apart=False,      # bsp: a replica applies an entry at any time after its append
        # Rules: each is on unless a run drops it.
        wait_tail=True, ack_epoch=True, forward_epoch=True, request_epoch=True, reforward=True,
        persist_first=True, only_members=True, only_full=True, full_in_epoch=True,
        copy_from_tail=True, discard_log=True, log_identity=True, boot_id=True, backup_pre=True, image_pre=True,
        resend=True, reack=True, append_first=True, gate_from_log=True, pull_applied=True,
        every_full=True)        # P1 is checked for every full member, not for the head alone

    CHOICES = dict(mode=("bsp", "async"))

    def __init__(self, **changes):
        super().__init__(**changes)
        self.bsp = self.mode == "bsp"
        self._settled = Memo(lambda key: tuple(self._settle(lane, key[1]) for lane in key[0]))
        self._swapped = Memo(lambda members: tuple(self._swap(replica) for replica in members))

    def start(self):
        member = Replica(RUNS, 0, (), 0, 0, 0, 0, 1, MEMBER, 0)
        idle = member._replace(pre_image=0, member=NO_LOG)
        lane = Lane(1, 0, 0, 0, 0, 0)
        chain = tuple(range(self.replicas))
        return State((member,) * self.replicas + (idle,) * self.spares, (lane, lane), (0, 0),
                     Scheduler((Configuration(1, chain, PERSISTED),), (1 << self.replicas) - 1),
                     Budget(self.kills, self.losses, self.wrong, self.worker_kills, self.joins,
                            self.wipes, self.powers, self.scheduler_crashes), 0)

    def canonical(self, state):
        members, both, other, told, budget, seen = state
        if self.bsp:
            both = self._settled[both, other[0]]
        if both[0] <= both[1] or not self.symmetry:
            return (members, both, other, told, budget, seen)
        return (self._swapped[members], (both[1], both[0]), (other[0], SWAPPED[other[1]]), told, budget,
                seen)

    def _settle(self, lane, clock):
        """The lane after the other shard's answers: they come at once, since later changes nothing."""
        step, answers, keeps, ok, config, computed = lane
        if answers & OTHER:
            return lane
        if step < clock:
            step, answers, keeps, ok = clock, 0, 0, 0
        if step <= clock + 1:
            answers |= OTHER
        if answers == BOTH and step <= self.steps_to_train:
            computed = max(computed, step)
            step, answers, keeps, ok = step + 1, 0, 1, 0
        if not answers & OTHER and clock <= step <= clock + 1:
            answers |= OTHER
        return Lane(step, answers, keeps, ok, config, computed)

    def _swap(self, replica):
        """The replica after the lanes have changed places."""
        if self.bsp:
            return replica._replace(gate=SWAPPED[replica.gate])
        return replica._replace(log=tuple(entry ^ 8 for entry in replica.log))

    def check(self, state):
        members, both, other, (history, full), _, seen = state
        place = newest(history)
        epoch, chain, _ = history[place]
        head = members[chain[0]]
        if (head.up == RUNS and head.member == MEMBER and head.config == place and
                not self._has_commits(head, both, seen)):
            raise Violation("P1", "replica %d is head of the newest epoch %d and lacks what was "
                            "acknowledged", chain[0], epoch)
        if self.every_full:
            for number in chain:
                if is_whole(members, full, number) and not self._has_commits(members[number], both, seen):
                    raise Violation("P1", "replica %d is promotable and lacks what was acknowledged",
                                    number)
        if self.bsp and abs(seen - other[0]) > 1:
            raise Violation("P3", "shards differ by more than one step")
        for replica in members:
            if len(set(replica.log)) < len(replica.log):
                raise Violation("P2", "a log holds the same update twice: %s", replica.log)

    def _has_commits(self, replica, both, seen):
        """Whether a log has every commit that a lane saw."""
        if self.bsp:
            return len(replica.log) >= seen
        return all(window(number, w) in replica.log for number, lane in enumerate(both)
                   for w in range(1, lane.computed + 1))

    def rolled_back(self, state):
        """No full member of the newest configuration has its log: the job goes back to a checkpoint."""
        members, _, _, (history, full), _, _ = state
        return not any(is_whole(members, full, number) for number in history[newest(history)].chain)

    def done(self, state):
        if self.rolled_back(state):
            self.note("more machines lost at once than there are full replicas: roll-back")
            return True
        if self.bsp:
            return all(l.step == self.steps_to_train + 1 and l.answers == BOTH for l in state[1])
        return all(lane.step > self.steps_to_train for lane in state[1])

    def steps(self, state):
        if self.rolled_back(state):
            return []
        view = View(self, state)
        for index in (0, 1):
            lanes.add_steps(view, index)
        for number in range(len(view.replicas)):
            appends.add_steps(view, number)
            replicas.add_steps(view, number)
        scheduler.add_steps(view)
        return view.found
