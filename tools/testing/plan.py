"""Reads plan.toml: what tools/test runs, and what it leaves out by default."""

import dataclasses
import os
import re
import textwrap
import tomllib

import machine

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "plan.toml")


@dataclasses.dataclass(frozen=True)
class Part:
    """One configuration's tests."""
    name: str
    lane: str
    tests: str               # a Bazel query
    flags: tuple = ()        # of Bazel
    build: str = ""          # what is built beside the tests
    needs: str = ""          # a program without which the part is not run
    after_build: bool = False  # waits until the ordinary build is over

    @property
    def suffix(self):
        """Tells the part's tests from those of the ordinary build."""
        return "" if self.name == "tests" else " [%s]" % self.name


class Plan:
    def __init__(self, text):
        self.raw = tomllib.loads(text)
        self.concurrency = self.raw["concurrency"]
        self.fuzz_seconds = self.raw["fuzz"]["seconds"]
        self.fuzz_targets = self.raw["fuzz"]["targets"]
        self.seeds_tag = self.raw["seeds"]["tag"]
        self.seeds_seconds = self.raw["seeds"]["seconds"]
        self.depth = self.raw["changed"]["depth"]
        self.sanitizer_depth = self.raw["changed"]["sanitizer_depth"]
        self.smoke = self.raw["changed"]["smoke"]
        self.everything = self.raw["changed"]["everything"]
        self.driver = self.raw["changed"]["driver"]
        self.left_out = self.raw["left_out"]

    def parts(self, is_long=False, gpus=()):
        """The parts of an ordinary run, in the order in which each lane runs them. `gpus`: compute
        capabilities of those that are present, as machine.gpus_found() has them."""
        chosen = []
        for part in self.raw["part"]:
            tests = part["tests"]
            if is_long and "long_tests" in part:
                tests = part["long_tests"]
            flags = list(part.get("flags", []))
            least = machine.capability(part.get("short_flags_gpu", ""))
            if not is_long and all(gpu >= least for gpu in gpus):
                flags += part.get("short_flags", [])
            chosen.append(Part(part["name"], part["lane"], " ".join(tests.split()),
                               tuple(flags), part.get("build", ""),
                               part.get("needs", ""), part.get("after_build", False)))
        return chosen

    def sanitizer_parts(self):
        """The parts of --sanitizers."""
        tests = "tests(//tests/%s/...) except attr(tags, '\\bcuda\\b', tests(//tests/%s/...))"
        return [Part("asan-" + folder, "main", tests % (folder, folder), ("--config=asan",))
                for folder in self.raw["sanitizers"]["folders"]]

    def folders(self, name):
        """The folders below tests/ of which the ordinary run of the part takes tests, in order."""
        tests, = [part["tests"] for part in self.raw["part"] if part["name"] == name]
        return re.findall(r"//tests/([\w/]+)/\.\.\.", tests)

    def table(self, width=100):
        """What is not run by default, and where it runs, for people."""
        indent = max(len(row["where"]) for row in self.left_out) + 4
        lines = []
        for row in self.left_out:
            what = textwrap.wrap(row["what"], width - indent)
            lines.append("  %-*s%s" % (indent - 2, row["where"], what[0]))
            lines += [" " * indent + line for line in what[1:]]
        return "\n".join(lines)


def load(path=FILE):
    with open(path, encoding="utf-8") as file:
        return Plan(file.read())
