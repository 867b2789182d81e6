"""What tools/test prints at its end, before the counts."""

import progress

SLOWEST = 10


def slowest(seconds, most=SLOWEST):
    """[(seconds, name)], longest first."""
    return sorted(((s, name) for name, s in seconds.items()), key=lambda p: (-p[0], p[1]))[:most]


def lines(statuses, seconds, elapsed):
    """`seconds`: of the tests that ran now, by name."""
    text = ["time of each part (they run beside each other):"]
    for s in statuses:
        counts = "%d of %d" % (s.done, s.total) if s.total else "%d" % s.done
        text.append("%10s  %-10s %s%s" % (progress.clock(s.took), s.part, counts,
                                          ", %d failed" % s.failed if s.failed else ""))
    text.append("%10s  in all" % progress.clock(elapsed))
    longest = slowest(seconds)
    if longest:
        text.append("slowest tests:")
        text += ["%8.1f s  %s" % pair for pair in longest]
    return text
