"""What an exploration found, as lines of text."""

HOLDS = "OK"
BOUNDED = "BOUNDED, nothing found"


def verdict(result):
    """The promise that breaks, OK, or that not all was explored."""
    if result.promise:
        return result.promise
    return HOLDS if result.complete else BOUNDED


def trace_lines(result):
    """The shortest trace with its steps counted, and what breaks at its end."""
    if not result.promise:
        return []
    return (["%4d %s" % (number, line) for number, line in enumerate(result.trace, 1)] +
            ["  => %s" % result.violation])


def lines(name, result):
    """The whole report of one configuration."""
    first = "%-30s %8d states %9d edges  %s" % (name, result.states, result.edges, verdict(result))
    return [first] + ["     note: %s" % note for note in result.notes] + trace_lines(result)


def differences(configuration, expected, result):
    """What a result says other than expected, one line each.

    `expected`: (states, edges, steps of the trace), or None where nothing is written down. Only a
    configuration of --long may go without: of that the verdict counts.
    """
    found = []
    wanted = configuration.breaks or HOLDS
    if verdict(result) != wanted:
        found.append("expected %s, found %s" % (wanted, verdict(result)))
    if expected is None:
        return found if configuration.long else found + ["no states are expected; write them with tests/model/run --write"]
    for what, number, wanted in zip(("states", "edges", "steps of the trace"),
                                    (result.states, result.edges, len(result.trace)), expected):
        if number != wanted:
            found.append("expected %d %s, found %d" % (wanted, what, number))
    return found
