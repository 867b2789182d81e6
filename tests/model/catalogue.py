"""All configurations by name, and the sizes that are expected of each (the file `expected`).

A name is ROOM/NAME, because two rooms may drop rules of one name.
"""

import os

from bsp.configurations import CONFIGURATIONS as BSP
from chain.configurations import CONFIGURATIONS as CHAIN
from cut.configurations import CONFIGURATIONS as CUT
from move.configurations import CONFIGURATIONS as MOVE

ROOMS = {"bsp": BSP, "chain": CHAIN, "move": MOVE, "cut": CUT}

CONFIGURATIONS = {"%s/%s" % (room, name): configuration
                  for room, configurations in ROOMS.items()
                  for name, configuration in configurations.items()}

EXPECTED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "expected")
HEADING = """\
# States, edges, and steps of the shortest trace that breaks a promise, of each configuration.
# tests/model/run --write NAME writes a line anew; its commit says what changed in the model, and why.
"""


def read_expected(path=EXPECTED):
    """{name: (states, edges, steps of the trace)}"""
    found = {}
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            if len(words) != 4 or not all(word.isdigit() for word in words[1:]):
                raise ValueError("%s:%d: a line is a name and three numbers: %s" % (
                    path, number, line.strip()))
            found[words[0]] = tuple(int(word) for word in words[1:])
    return found


def write_expected(expected, path=EXPECTED):
    """In the order of CONFIGURATIONS; names that it does not have are left out."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(HEADING)
        for name in CONFIGURATIONS:
            if name in expected:
                file.write("%-30s %9d %9d %3d\n" % ((name,) + expected[name]))


def sizes(result):
    return result.states, result.edges, len(result.trace)
