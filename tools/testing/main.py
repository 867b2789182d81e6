"""The driver of tools/test: which parts there are, lanes that run them, and the end."""

import dataclasses
import glob
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import bazel
import changed
import command_line
import git_changes
import machine
import outcome
import plan as plans
import processes
import progress
import report
import screen
import seeds
import steps
import times

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
INTERRUPTED = 130


class Terminated(BaseException):
    """SIGTERM, or the terminal was closed: as Ctrl-C."""


def on_terminate(*_):
    raise Terminated


def take_signals():
    # A shell's background jobs ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, on_terminate)
    # Under nohup, the run goes on.
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, on_terminate)


def ignore_signals():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def checks():
    return sorted(glob.glob(os.path.join(ROOT, "tests", "structure", "check_*")))


def uses(check, word):
    with open(check, encoding="utf-8") as file:
        return word in file.read()


def check_steps(context, quick=False):
    """Those that ask Bazel stand in the side lane, whose server they use; those that read what
    Bazel made wait for the build, and are not quick."""
    asks = [c for c in checks() if uses(c, "STRATA_BAZEL_FLAGS")]
    reads = [c for c in checks() if c not in asks and uses(c, "STRATA_BAZEL_BIN")]
    others = [c for c in checks() if c not in asks + reads]
    found = [("side", "bazel checks", asks, False), ("checks", "checks", others, False),
             ("checks", "checks of the build", reads, True)]
    return [steps.ChecksStep(context, name, lane, names, after_build)
            for lane, name, names, after_build in found if names and not (quick and after_build)]


class Failure(Exception):
    """The run cannot begin; says why."""


def labels_of(expression):
    labels, complaint = bazel.query(ROOT, expression)
    if complaint:
        raise Failure("bazel query failed:\n" + complaint)
    return labels


def labels_found(context, part, expression):
    """As many as Bazel finds: a BUILD file that it cannot read fails the run, and ends nothing."""
    labels, complaint = bazel.query(ROOT, expression)
    if complaint:
        context.screen.say("test: bazel query failed for the part %s:\n%s" % (part, complaint))
        context.unreadable.append(part)
    return labels


def bazel_steps(context, parts):
    found = []
    for part in parts:
        if part.needs == "nvcc" and not machine.nvcc_found():
            context.screen.say("test: no nvcc: the part %s does not run" % part.name)
            context.skipped.append("the part %s: no nvcc" % part.name)
            continue
        found.append(steps.BazelStep(context, part, labels_found(context, part.name, part.tests)))
    return found


def mutations(context, is_long):
    """Names of faults to plant: five that the day draws, all under --long."""
    listed = subprocess.run([os.path.join(ROOT, steps.MutationsStep.TOOL), "--list"] +
                            (["--all"] if is_long else []), capture_output=True, text=True, check=False)
    if listed.returncode:
        context.screen.say("test: %s --list failed:\n%s" % (steps.MutationsStep.TOOL, listed.stderr))
    return listed.stdout.split()


def ordinary_steps(context, plan, options):
    if options.sanitizers:
        context.built.set()
        return bazel_steps(context, plan.sanitizer_parts())
    found = check_steps(context)
    found += bazel_steps(context, plan.parts(options.long, machine.gpus_found()))
    found.append(steps.FuzzStep(context, labels_found(context, "fuzz", plan.fuzz_targets)))
    found.append(steps.MutationsStep(context, mutations(context, options.long)))
    if options.seeds_seconds:
        labels = labels_found(context, "seeds",
                              "attr(tags, '\\b%s\\b', tests(//...))" % plan.seeds_tag)
        base = options.seeds_base if options.seeds_base >= 0 else seeds.new_base()
        found.append(steps.SeedsStep(context, labels, options.seeds_seconds, base))
    return found


def changed_steps(context, plan, options):
    """The steps of --changed; [] where nothing changed."""
    change, commit = git_changes.changes(ROOT, options.revision)
    if not change.files and not change.deleted:
        for note in change.notes:
            context.screen.say("changed: " + note)
        context.screen.say("changed: nothing differs from %s: no test to run" % change.since)
        return []

    def read(path):
        with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as file:
            return file.read()

    roots = changed.roots(
        change, plan.everything,
        lambda folder: os.path.isfile(os.path.join(ROOT, folder, changed.BUILD)),
        read, git_changes.diff_of(ROOT, commit))
    packages = sorted({label.rpartition(":")[0] for label in roots.labels})
    declared = set(labels_of(" + ".join(p + ":*" for p in packages))) if packages else set()
    known = [label for label in roots.labels if label in declared]
    start = changed.start_set(roots, known)
    near = labels_of(changed.tests_within(start, options.depth)) if start else []
    every = labels_of(changed.tests_within(start, None)) if start else []
    wants_all = changed.full_run(roots)
    always = plan.smoke + (labels_of(plan.driver) if wants_all else [])
    selection = changed.select(near, every, always)
    if known:
        selection.untested = sorted(set(known) - set(labels_of(changed.tested(start, known))))
    if start:
        selection.not_built = sorted(labels_of(changed.not_built(start, selection.tests)))
    for line in changed.describe(change, roots, known, selection, options.depth, options.verbose):
        context.screen.say(line)
    context.skipped += [wants_all] if wants_all else []
    found = check_steps(context, quick=True)
    found.append(steps.BazelStep(context, plans.Part("tests", "main", ""), selection.tests))
    for part in plan.parts():
        if start and part.lane == "side":
            within = changed.tests_within(start, plan.sanitizer_depth)
            labels = labels_of("(%s) intersect (%s)" % (part.tests, within))
            if labels:
                now = dataclasses.replace(part, after_build=False)  # nothing else is built
                found.append(steps.BazelStep(context, now, labels))
    return found


def run_lane(lane, context):
    """On a thread of its own. What a step raises fails it; the next ones run."""
    for step in lane:
        step.status.begun = time.monotonic()
        step.status.state = "runs"
        try:
            step.execute()
        except processes.Stopped:
            return
        except Exception as error:  # pylint: disable=broad-except
            context.screen.say("test: the part %s broke off: %r" % (step.status.part, error))
            step.status.failed += 1
        step.status.took = time.monotonic() - step.status.begun
        step.status.state = "over"


def wait_for(threads, seconds):
    """Until all are over, or so long."""
    deadline = time.monotonic() + seconds
    for t in threads:
        t.join(max(0.0, deadline - time.monotonic()))


def run_steps(found, context, begun):
    """Runs all lanes; progress meanwhile."""
    lanes = {}
    for step in found:
        lanes.setdefault(step.status.lane, []).append(step)
    threads = [threading.Thread(target=run_lane, args=(lane, context), daemon=True)
               for lane in lanes.values()]
    for t in threads:
        t.start()
    statuses = [step.status for step in found]
    while any(t.is_alive() for t in threads):
        wait_for(threads, 0.5)
        for step in found:
            if step.status.state == "runs":
                step.poll()
        elapsed = time.monotonic() - begun
        context.screen.progress(progress.line(statuses, context.times, elapsed), elapsed)
    for step in found:
        step.poll()
    context.screen.clear()


def finish(found, context, begun, is_full):
    """Prints the end on stdout; returns the exit code. `is_full`: each part has all its tests."""
    counts = outcome.Outcome()
    for part in context.unreadable:
        counts.add_case("failed", "bazel query for the part %s" % part)
    for part in context.skipped:
        counts.add_case("skipped", part)
    seconds = {}
    for step in found:
        step.report(counts)
        seconds.update(step.seconds_of_tests())
    known = context.times
    known.tests.update({name: round(s, 3) for name, s in seconds.items()})
    if is_full:
        known.parts.update({step.status.part: round(step.status.took, 1) for step in found
                            if step.is_whole()})
    try:
        times.save(known)
    except OSError as error:
        context.screen.say("test: the times of this run are not kept: %s" % error)
    text = report.lines([step.status for step in found], seconds, time.monotonic() - begun)
    for step in found:
        if isinstance(step, steps.SeedsStep):
            text += ["simulations with fresh seeds:"] + step.lines()
    print("\n".join(text + counts.lines()), flush=True)
    return counts.exit_code()


def run(options, plan, begun):
    code = subprocess.run([os.path.join(ROOT, "tools", "setup")], check=False).returncode
    if code != 0:
        return code
    is_live = sys.stdout.isatty() and sys.stderr.isatty()
    show = screen.Screen(is_live, width=lambda: shutil.get_terminal_size().columns)
    children = processes.Children(ROOT)
    with tempfile.TemporaryDirectory(prefix="strata-test-") as work:
        context = steps.Context(ROOT, plan, command_line.test_flags(options), children, show, work,
                                times.load(), bazel.side_flags(bazel.output_base(ROOT)))
        try:
            found = (changed_steps if options.changed else ordinary_steps)(context, plan, options)
            if not found:
                print("0 passed, 0 failed")
                return 0
            run_steps(found, context, begun)
            return finish(found, context, begun, not options.changed)
        except Failure as failure:
            show.say("test: %s" % failure)
            print("FAILED  the run could not begin\n0 passed, 1 failed")
            return 1
        except (KeyboardInterrupt, Terminated):
            ignore_signals()
            show.say("\ntest: interrupted; ending what runs")
            return INTERRUPTED
        finally:
            ignore_signals()
            children.stop()


def main(arguments):
    take_signals()
    begun = time.monotonic()
    plan = plans.load()
    try:
        options = command_line.parse(arguments, plan)
        if options.help:
            print(command_line.help_text(plan))
            return 0
        return run(options, plan, begun)
    except (command_line.UsageError, git_changes.GitError) as error:
        print("test: %s\nTry: tools/test --help" % error, file=sys.stderr)
        return 2
    except (KeyboardInterrupt, Terminated):
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
