"""Test cases of configurations: one each, so that a report names the one that says another thing."""

import os
import unittest

import catalogue
import report


def is_long_run():
    """`tools/test --long`."""
    return bool(os.environ.get("STRATA_LONG"))


def check(name, configuration, expected):
    """Fails with the shortest trace where an exploration says another thing than expected."""
    result = configuration.explore()
    found = report.differences(configuration, expected, result)
    if found:
        raise AssertionError("\n".join([name] + found + report.trace_lines(result)))


def make(room, configurations, expected, with_long):
    """A TestCase with a case for each configuration of a room."""
    def case(name, configuration):
        return lambda self: check(name, configuration, expected.get(name))

    members = {}
    for name, configuration in configurations.items():
        if with_long or not configuration.long:
            members["test_" + name] = case("%s/%s" % (room, name), configuration)
    return type(room.capitalize() + "Configurations", (unittest.TestCase,), members)


def of_room(room):
    return make(room, catalogue.ROOMS[room], catalogue.read_expected(), is_long_run())
