"""The arguments of tools/test, and its help."""

import dataclasses
import os

HELP = """\
Builds everything and runs every test: tools/test [FLAGS]

  --changed [REV]    instead: the tests of what differs from REV (default: where this branch left
                     main; on main itself, from the last commit), uncommitted and new files
                     included, of what depends on it over at most --depth rules, three end-to-end
                     tests, and the checks of tests/structure. Programs are built for these tests;
                     benchmarks and other tools are not, because linking each again takes minutes
  --depth N          for --changed: how many rules away from a changed file (default %(depth)d)
  --verbose          for --changed: lists the tests that depend on the change from farther away
  --long             full sizes (hours where a test says so)
  --data DIR         folder of real data sets (frappe/, criteo_tiny/) that quality tests train on;
                     without it those cases are skipped
  --seeds-seconds N  how long simulations run with fresh seeds (default %(seeds)d; 0: not at all)
  --seeds-base N     the first of these seeds (default: a new one in each run, which is printed)
  --rerun            runs tests again that passed with the same files before
  --sanitizers       instead: the unit tests of proto, ops, storage, server, scheduler and worker,
                     built anew with AddressSanitizer and UndefinedBehaviorSanitizer (about an hour
                     on two cores the first time)

Parts run beside each other: the ordinary tests; tests of storage under AddressSanitizer and
UndefinedBehaviorSanitizer, those of %(threads)s
under ThreadSanitizer, the fuzz targets for a few seconds each (tools/fuzz), and
five planted faults with the tests that find them (tests/mutations), by a Bazel server of their own;
the checks of tests/structure; and simulations with fresh seeds. Where NVIDIA's compiler is installed, kernels are built and tested
once more as it compiles them (tools/bazel/cuda.bzl); cases that want a GPU where there is none are
listed as skipped.

Progress is on stderr. On stdout: each part's time, the slowest tests, failed and skipped cases, and
what compilers warned of. The last line is "N passed, N failed", counting test cases, and a warning
as one that failed. Exit code: 0 when none failed, 1 otherwise, 2 for wrong usage, 130 when
interrupted.

Not run by default (tools/testing/plan.toml), and what runs it:

%(table)s
"""


class UsageError(Exception):
    """The arguments cannot be used; says why."""


@dataclasses.dataclass
class Options:
    help: bool = False
    changed: bool = False
    revision: str = ""       # of --changed; "" for the default
    depth: int = 0
    verbose: bool = False
    long: bool = False
    data: str = ""           # absolute
    seeds_seconds: int = 0
    seeds_base: int = -1     # -1: a new one
    rerun: bool = False
    sanitizers: bool = False


def help_text(plan):
    threads = plan.folders("tsan")
    return HELP % {"depth": plan.depth, "seeds": plan.seeds_seconds, "table": plan.table(),
                   "threads": ", ".join(threads[:-1]) + " and " + threads[-1]}


def number(flag, text, least, most=2**63 - 1):
    if not (text.isascii() and text.isdigit()) or not least <= int(text) <= most:
        raise UsageError("%s %s: wants a number, %d or more" % (flag, text, least))
    return int(text)


def parse(arguments, plan):
    """Options, or UsageError. Values stand after a blank or after "="."""
    options = Options(depth=plan.depth, seeds_seconds=plan.seeds_seconds)
    given, left = set(), list(arguments)

    def value(flag, inline, what):
        if inline is not None:
            return inline
        if not left:
            raise UsageError("%s wants %s" % (flag, what))
        return left.pop(0)

    while left:
        flag, equals, text = left.pop(0).partition("=")
        inline = text if equals else None
        given.add(flag)
        if flag in ("-h", "--help") and inline is None:
            options.help = True
        elif flag in ("--long", "--sanitizers", "--rerun", "--verbose") and inline is None:
            setattr(options, flag[2:], True)
        elif flag == "--changed":
            options.changed = True
            if inline is None and left and not left[0].startswith("-"):
                inline = left.pop(0)
            options.revision = inline or ""
            if inline == "":
                raise UsageError("--changed= wants a revision")
        elif flag == "--data":
            folder = value(flag, inline, "a folder")
            if not os.path.isdir(folder):
                raise UsageError("--data %s: no such folder" % folder)
            options.data = os.path.realpath(folder)
        elif flag == "--depth":
            options.depth = number(flag, value(flag, inline, "a number"), 1, 100)
        elif flag == "--seeds-seconds":
            options.seeds_seconds = number(flag, value(flag, inline, "a number"), 0)
        elif flag == "--seeds-base":
            options.seeds_base = number(flag, value(flag, inline, "a number"), 0)
        else:
            raise UsageError("unknown argument '%s'" % (flag if inline is None else
                                                        flag + "=" + inline))
    check(options, given)
    return options


def check(options, given):
    """Flags that contradict each other."""
    if options.changed and options.sanitizers:
        raise UsageError("--changed and --sanitizers: choose one")
    for flag in ("--depth", "--verbose"):
        if flag in given and not options.changed:
            raise UsageError("%s goes with --changed" % flag)
    if options.changed or options.sanitizers:
        for flag in ("--seeds-seconds", "--seeds-base"):
            if flag in given:
                raise UsageError("%s: no part `seeds` with %s" % (
                    flag, "--changed" if options.changed else "--sanitizers"))


def test_flags(options):
    """What they mean for Bazel."""
    flags = []
    if options.long:
        flags += ["--test_env=STRATA_LONG=1", "--test_timeout=-1,-1,-1,14400"]
    if options.data:
        flags.append("--test_env=STRATA_TEST_DATA=" + options.data)
    if options.rerun:
        flags.append("--nocache_test_results")
    return flags
