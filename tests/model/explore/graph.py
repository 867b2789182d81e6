"""The states that a model can reach, breadth first, and the steps between them."""

import gc
from array import array
from operator import getitem

from explore.model import Violation


class Numbers(dict):
    """Gives each part of states a number, in the order in which the parts come."""

    def __init__(self):
        super().__init__()
        self.parts = []

    def __missing__(self, part):
        number = self[part] = len(self.parts)
        self.parts.append(part)
        return number


class Graph:
    """Grows from a model's start state. A state has a number: its place in the order of discovery.

    A state is kept as the numbers of its parts, because many states share a part and few parts
    differ. No label is kept: `trace` asks the model again for the steps on the way.
    """

    def __init__(self, model):
        self.model = model
        start = model.canonical(model.start())
        self._tables = [Numbers() for _ in start]
        self._keys = [self._key(start)]
        self._numbers = {self._keys[0]: 0}
        self._parents = array("i", [-1])
        self._ordinals = array("H", [0])  # which step of the parent led here
        self.final = bytearray()          # of each explored state: whether training has ended
        self.edges = 0                    # steps that lead to another state
        self.sources = array("i")         # of each of them that is no fault
        self.targets = array("i")
        self.complete = True

    def __len__(self):
        return len(self._keys)

    def explored(self):
        """How many states have been explored: those with the lowest numbers."""
        return len(self.final)

    def state(self, number):
        key = self._keys[number]
        return tuple([table.parts[part] for table, part in zip(self._tables, key)])

    def number(self, state):
        """Of a state as the model gives it; None for one that has not been found."""
        return self._numbers.get(self._key(self.model.canonical(state)))

    def _key(self, state):
        return tuple(map(getitem, self._tables, state))

    def grow(self, limit):
        """Explores until all is known, or more than `limit` states have been found.

        Returns (Violation, number of the state in which it happens), or None if nothing breaks.
        """
        collects = gc.isenabled()
        gc.disable()  # nothing here makes a cycle, and the collector would visit millions of tuples
        try:
            while self.explored() < len(self._keys):
                if len(self._keys) > limit:
                    self.complete = False
                    return None
                number = self.explored()
                try:
                    self._explore(number)
                except Violation as violation:
                    return violation, number
            return None
        finally:
            if collects:
                gc.enable()

    def _explore(self, number):
        """Nothing is added where Violation is raised."""
        model, tables = self.model, self._tables
        numbers, keys, canonical = self._numbers, self._keys, model.canonical
        state = self.state(number)
        model.check(state)
        final = model.done(state)
        steps = model.steps(state)
        self.final.append(1 if final else 0)
        for ordinal, (_, _, is_fault, after) in enumerate(steps):
            key = tuple(map(getitem, tables, canonical(after)))
            target = numbers.get(key)
            if target is None:
                target = numbers[key] = len(keys)
                keys.append(key)
                self._parents.append(number)
                self._ordinals.append(ordinal)
            if target != number:
                self.edges += 1
                if not is_fault:
                    self.sources.append(number)
                    self.targets.append(target)

    def trace(self, number):
        """What happens on the shortest way from the start to a state, one line a step."""
        lines = []
        while number > 0:
            parent = self._parents[number]
            text, arguments = self.model.steps(self.state(parent))[self._ordinals[number]][:2]
            lines.append(text % arguments)
            number = parent
        return lines[::-1]
