"""Explores a model whole: does every state keep every promise, and does training end from each?

    result = explore(Chain(replicas=2, kills=1))
    if result.violation:
        print("\n".join(result.trace), "=>", result.violation)
"""

from typing import NamedTuple

from explore import liveness
from explore.graph import Graph

# More states than the largest configuration has.
LIMIT = 5000000

LIVENESS = "L"


class Result(NamedTuple):
    """What an exploration found. `promise` and `violation` are "" where nothing breaks."""
    states: int        # found; those of a run that breaks are what it had found until then
    edges: int         # steps that lead to another state
    live_edges: int    # those of them that are no faults
    complete: bool     # all was explored, or something broke before the limit
    promise: str       # the one that breaks
    violation: str     # how
    trace: tuple       # the shortest way there, one line a step
    notes: tuple       # what the model noted, sorted


def explore(model, limit=LIMIT):
    """Breadth first over all states, then backwards from those in which training has ended."""
    graph = Graph(model)
    promise, violation, trace = "", "", []
    broken = graph.grow(limit)
    if broken:
        promise, violation = broken[0].promise, str(broken[0])
        trace = graph.trace(broken[1])
    else:
        stuck = liveness.stuck_states(graph)
        if stuck:
            promise = LIVENESS
            violation = ("%s: stuck: from here training cannot end without outside help "
                         "(%d such states)" % (promise, len(stuck)))
            trace = graph.trace(stuck[0]) + liveness.way_on(graph, stuck[0])
    return Result(len(graph), graph.edges, len(graph.sources), graph.complete, promise, violation,
                  tuple(trace), tuple(sorted(model.notes)))
