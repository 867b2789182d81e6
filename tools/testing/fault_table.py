"""The table of faults that tests struck running clusters with, of all tests together.

A test prints what it did in lines "FAULTS: ROLE PHASE MODE KILLS STOPS PROXY CLOCK"
(tests/faults/matrix/fault_matrix.h).
"""

MARK = "FAULTS: "
BLOWS = 4


def read(log_paths):
    """{(role, phase, mode): [kills, stops, proxy, clock]} of what logs say, in their order."""
    cells = {}
    for path in log_paths:
        try:
            with open(path, encoding="utf-8", errors="replace") as log:
                lines = [line[len(MARK):].split() for line in log if line.startswith(MARK)]
        except OSError:
            continue
        for words in lines:
            if len(words) != 3 + BLOWS or not all(w.isdigit() for w in words[3:]):
                continue
            add(cells, {tuple(words[:3]): [int(w) for w in words[3:]]})
    return cells


def add(cells, more):
    """Adds the counts of `more` to `cells`."""
    for cell, counts in more.items():
        known = cells.setdefault(cell, [0] * BLOWS)
        for i, count in enumerate(counts):
            known[i] += count


def lines(cells):
    """A line for each role and phase, a column for each mode; the totals last."""
    if not cells:
        return []
    rows = list(dict.fromkeys((role, phase) for role, phase, _ in cells))
    roles = list(dict.fromkeys(role for role, _ in rows))
    rows.sort(key=lambda row: roles.index(row[0]))  # phases in the order of the tests
    modes = list(dict.fromkeys(mode for _, _, mode in cells))
    text = ["faults at running jobs (kills/stops/proxy/clock):",
            "%-10s %-11s" % ("role", "phase") + "".join("%14s" % mode for mode in modes)]
    for role, phase in rows:
        counts = [cells.get((role, phase, mode)) for mode in modes]
        text.append("%-10s %-11s" % (role, phase) + "".join(
            "%14s" % ("/".join(map(str, c)) if c else "-") for c in counts))
    totals = [sum(counts[i] for counts in cells.values()) for i in range(BLOWS)]
    text.append("%d kills, %d stops, %d proxy faults, %d clock steps" % tuple(totals))
    return text
