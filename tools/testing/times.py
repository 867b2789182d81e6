"""How long tests and parts took in earlier runs: ~/.cache/strata/test_times.json.

{"tests": {"//x:y_test [asan]": seconds}, "parts": {"asan": seconds}}; times of results that were
only looked up are not kept, nor are those of their parts and of the parts of --changed. A file that
cannot be read is as good as none.
"""

import json
import os
import tempfile

FILE = os.path.join(os.path.expanduser("~"), ".cache", "strata", "test_times.json")


def numbers(table):
    return {name: float(value) for name, value in table.items()
            if isinstance(value, (int, float)) and value >= 0}


class Times:
    def __init__(self, tests=None, parts=None):
        self.tests = tests or {}
        self.parts = parts or {}

    def of_tests(self, names):
        """Seconds of all; None where no time of any is known. Unknown ones count as the others."""
        known = [self.tests[name] for name in names if name in self.tests]
        if not names:
            return 0.0
        if not known:
            return None
        return sum(known) * len(names) / len(known)


def load(path=FILE):
    try:
        with open(path, encoding="utf-8") as file:
            read = json.load(file)
        return Times(numbers(read["tests"]), numbers(read["parts"]))
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return Times()


def save(times, path=FILE):
    """Replaces the file in one step: another run reads the old one or the new one."""
    folder = os.path.dirname(path)
    os.makedirs(folder, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=folder, delete=False) as file:
        json.dump({"tests": times.tests, "parts": times.parts}, file, indent=1, sort_keys=True)
    os.replace(file.name, path)
