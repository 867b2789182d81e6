"""A state with what several kinds of steps ask about it, and the steps found so far."""


class View:
    """Of one state. Gathers the steps out of it in `found`."""

    def __init__(self, model, state):
        self.model = model
        self.shards, self.lanes, self.old_host, self.scheduler, self.budget = state
        self.found = []

    def add(self, text, arguments, is_fault=False, shards=None, lanes=None, old_host=None,
            scheduler=None, budget=None):
        """One step; of the State behind it, a plain tuple here, what is left out stays as it is."""
        self.found.append((text, arguments, is_fault, (
            self.shards if shards is None else shards,
            self.lanes if lanes is None else lanes,
            self.old_host if old_host is None else old_host,
            self.scheduler if scheduler is None else scheduler,
            self.budget if budget is None else budget)))

    def with_shard(self, number, shard):
        return (shard, self.shards[1]) if number == 0 else (self.shards[0], shard)

    def spent(self, fault):
        return self.budget._replace(**{fault: getattr(self.budget, fault) - 1})

    def given_up_through(self):
        """Every cut up to it is over. It follows from what the scheduler keeps (C5)."""
        return (self.scheduler.pending or self.scheduler.next) - 1
