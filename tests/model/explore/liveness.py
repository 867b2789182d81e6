"""Liveness: from every state training ends by steps that are no faults."""

from array import array
from collections import deque


def stuck_states(graph):
    """The numbers of the states from which no final state can be reached without a fault.

    States that were found and not explored count as final: a run with a limit proves nothing of
    them. The search goes backwards from the final states.
    """
    count = len(graph)
    heads = array("i", [-1]) * count                  # the last edge into each state
    following = array("i", [-1]) * len(graph.sources)  # the edge before it
    for edge, target in enumerate(graph.targets):
        following[edge] = heads[target]
        heads[target] = edge
    ends = bytearray(graph.final) + b"\x01" * (count - graph.explored())
    queue = deque(number for number in range(count) if ends[number])
    while queue:
        edge = heads[queue.popleft()]
        while edge >= 0:
            source = graph.sources[edge]
            if not ends[source]:
                ends[source] = 1
                queue.append(source)
            edge = following[edge]
    return [number for number in range(count) if not ends[number]]


def way_on(graph, number):
    """What happens from a stuck state until nothing can happen any more, one line a step."""
    before = {number: None}
    queue = deque([number])
    end = number
    while queue:
        end = queue.popleft()
        onwards = [(text % arguments, graph.number(state))
                   for text, arguments, is_fault, state in graph.model.steps(graph.state(end))
                   if not is_fault]
        onwards = [(line, n) for line, n in onwards if n is not None and n != end]
        if not onwards:
            break
        for line, n in onwards:
            if n not in before:
                before[n] = (end, line)
                queue.append(n)
    lines = []
    while before[end]:
        end, line = before[end]
        lines.append(line)
    return lines[::-1]
