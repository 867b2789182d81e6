"""A state with what several kinds of steps ask about it, and the steps found so far."""

from explore.model import Violation


class View:
    """Of one state. Gathers the steps out of it in `found`."""

    def __init__(self, model, state):
        self.model = model
        (self.servers, self.lanes, self.epochs, self.budget, self.late, self.seen, self.move,
         self.generations, self.replies) = state
        if model.memory:
            self.seen = (0, 0)  # what was seen may be lost
        self.found = []
        self.fenced = bool(self.move) and self.move.fenced
        self.copied = bool(self.move) and self.move.copied
        self.serving = [self._serves(number) for number in range(len(self.servers))]

    def add(self, text, arguments, is_fault=False, servers=None, lanes=None, epochs=None,
            budget=None, late=None, seen=None, move=None, generations=None, replies=None):
        """One step; of the State behind it, a plain tuple here, what is left out stays as it is."""
        self.found.append((text, arguments, is_fault, (
            self.servers if servers is None else servers,
            self.lanes if lanes is None else lanes,
            self.epochs if epochs is None else epochs,
            self.budget if budget is None else budget,
            self.late if late is None else late,
            self.seen if seen is None else seen,
            self.move if move is None else move,
            self.generations if generations is None else generations,
            self.replies if replies is None else replies)))

    def with_server(self, number, server):
        return self.servers[:number] + (server,) + self.servers[number + 1:]

    def with_lane(self, index, lane):
        return self.lanes[:index] + (lane,) + self.lanes[index + 1:]

    def with_reply(self, index, reply):
        """Without a reply of that lane's where there are none: `delay` is off, or the lane's a zombie's."""
        if index >= len(self.replies):
            return self.replies
        return self.replies[:index] + (reply,) + self.replies[index + 1:]

    def route(self, worker, shard):
        """The server that a worker takes for a shard's owner."""
        return shard if shard == 0 or not self.move or self.epochs[worker] == 1 else 2

    def may_call(self, worker, server, zombie):
        return self.same_generation(worker, server) and not (zombie and self.fenced and server != 1)

    def same_generation(self, worker, server):
        return (not self.generations or not self.model.generations_checked or
                self.worker_generation(worker) == self.server_generation(server))

    def worker_generation(self, worker):
        return self.generations[1][worker] if self.generations else 1

    def server_generation(self, server):
        return self.generations[2][server] if self.generations else 1

    def rolls_back(self):
        return bool(self.generations) and self.generations[0]

    def after_seeing(self, shard, clock):
        """`seen` after a worker saw that commit."""
        if clock <= self.seen[shard]:
            return self.seen
        if shard == 0:
            return (clock, self.seen[1])
        if self.copied and self.servers[2].up and self.servers[2].clock < clock:
            raise Violation("P1", "a worker saw commit %d of the zombie, the new owner is at %d",
                            clock, self.servers[2].clock)
        return (self.seen[0], clock)

    def zombie_workers(self):
        return {lane.worker for lane in self.lanes if lane.zombie}

    def _serves(self, number):
        """The target of the move serves once every worker that is not fenced knows epoch 2."""
        if not self.servers[number].up:
            return False
        if number < 2:
            return True
        if not self.copied or not self.model.ack_before_serve:
            return bool(self.copied)
        return self.all_workers_know()

    def all_workers_know(self):
        """Every worker knows epoch 2, or is a zombie that is fenced (where that is asked for)."""
        zombies = self.zombie_workers()
        return all(epoch == 2 or worker in zombies and (self.fenced or not self.model.fence)
                   for worker, epoch in enumerate(self.epochs))
