"""A state with what several kinds of steps ask about it, and the steps found so far."""

from chain.state import MEMBER, RUNS


class View:
    """Of one state. Gathers the steps out of it in `found`."""

    def __init__(self, model, state):
        self.model = model
        (self.replicas, self.lanes, self.other, self.scheduler, self.budget, self.seen) = state
        self.found = []
        self.history = self.scheduler.history
        # What each replica knows, and whether it acts on it: it runs as a member of that chain.
        self.epochs = [self.history[x.config].epoch for x in self.replicas]
        self.chains = [self.history[x.config].chain for x in self.replicas]
        self.acts = [x.up == RUNS and x.member == MEMBER and number in self.chains[number]
                     for number, x in enumerate(self.replicas)]
        self.heads = [number for number, acts in enumerate(self.acts)
                      if acts and self.chains[number][0] == number]

    def add(self, text, arguments, is_fault=False, replicas=None, lanes=None, other=None,
            scheduler=None, budget=None, seen=None):
        """One step; of the State behind it, a plain tuple here, what is left out stays as it is."""
        self.found.append((text, arguments, is_fault, (
            self.replicas if replicas is None else replicas,
            self.lanes if lanes is None else lanes,
            self.other if other is None else other,
            self.scheduler if scheduler is None else scheduler,
            self.budget if budget is None else budget,
            self.seen if seen is None else seen)))

    def with_replica(self, number, replica, replicas=None):
        members = self.replicas if replicas is None else replicas
        return members[:number] + (replica,) + members[number + 1:]

    def with_lane(self, index, lane):
        return (lane, self.lanes[1]) if index == 0 else (self.lanes[0], lane)

    def spent(self, fault):
        return self.budget._replace(**{fault: getattr(self.budget, fault) - 1})

    def accepts(self, number, config):
        """Whether a replica takes the requests of a worker that knows that configuration."""
        return number in self.heads and (not self.model.request_epoch or
                                         self.epochs[number] == self.history[config].epoch)
