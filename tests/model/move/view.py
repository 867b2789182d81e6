"""A state with what several kinds of steps ask about it, and the steps found so far."""

from move.state import NEW_MAP, OLD_MAP, RUNS, TARGET


class View:
    """Of one state. Gathers the steps out of it in `found`."""

    def __init__(self, model, state):
        self.model = model
        self.servers, self.copying, self.lanes, self.scheduler, self.budget, self.seen = state
        self.found = []
        self.maps = self.scheduler.maps
        self.epoch = len(self.maps)  # the newest
        self.serving = [self._serves(number) for number in range(len(self.servers))]
        self.units = [self._units(number) for number in range(len(self.servers))]

    def add(self, text, arguments, is_fault=False, servers=None, copying=None, lanes=None,
            scheduler=None, budget=None, seen=None):
        """One step; of the State behind it, a plain tuple here, what is left out stays as it is."""
        self.found.append((text, arguments, is_fault, (
            self.servers if servers is None else servers,
            self.copying if copying is None else copying,
            self.lanes if lanes is None else lanes,
            self.scheduler if scheduler is None else scheduler,
            self.budget if budget is None else budget,
            self.seen if seen is None else seen)))

    def with_server(self, number, server):
        return self.servers[:number] + (server,) + self.servers[number + 1:]

    def with_lane(self, index, lane):
        return (lane, self.lanes[1]) if index == 0 else (self.lanes[0], lane)

    def spent(self, fault):
        return self.budget._replace(**{fault: getattr(self.budget, fault) - 1})

    def is_sealed(self, server):
        """A SEAL holds in its own epoch (M3, M4)."""
        return server.seal and (server.seal == server.epoch or not self.model.unseal)

    def _serves(self, number):
        server = self.servers[number]
        if server.up != RUNS:
            return False
        return (server.has_data and self.model.owns(number, self.maps, server.epoch) or
                number == TARGET and self.copying.early)

    def _units(self, number):
        """The units that a server owns, by the epoch that it knows."""
        epoch = self.servers[number].epoch
        owners = self.model.owners[self.maps[epoch - 1]]
        if number == TARGET and self.copying.early and self.maps[epoch - 1] == OLD_MAP:
            owners = self.model.owners[NEW_MAP]
        return [unit for unit in (0, 1) if owners[unit] == number]
