"""What lanes run one after the other. Each step has a progress.Status and tells an Outcome."""

import os
import re
import threading
import time

import bazel
import events
import processes
import progress
import seeds

# What Bazel tells beside errors, and nobody needs.
NOISE = re.compile(r"^(INFO: |Loading: |Analyzing: |Executed \d|There were tests whose )")
CHECKED = re.compile(r"^(passed|failed) (\S+)$")

# For a check and for fuzzing, which no Bazel limits.
LIMIT_SECONDS = 900


class Context:
    """What all steps share. Constant but for the events."""

    def __init__(self, root, plan, options_flags, children, screen, work, known_times, side):
        self.root = root
        self.plan = plan
        self.test_flags = options_flags
        self.children = children
        self.screen = screen
        self.work = work             # a folder for files of this run
        self.times = known_times
        self.side = side             # start-up flags of the side lane's Bazel
        self.unreadable = []         # parts whose tests Bazel cannot list
        self.skipped = []            # what does not run, and why
        self.built = threading.Event()  # programs and generated headers are there, or never will be

    def side_environment(self):
        """One flag a line (tools/common.sh reads them): a path may have blanks."""
        return dict(os.environ, STRATA_BAZEL_FLAGS="\n".join(self.side))


class Step:
    def __init__(self, context, name, lane):
        self.context = context
        self.status = progress.Status(name, lane)

    def execute(self):
        """On the lane's thread."""
        raise NotImplementedError

    def poll(self):
        """On the main thread, every second and after the end: refreshes what others tell."""

    def report(self, outcome):
        """After the end."""
        raise NotImplementedError

    def seconds_of_tests(self):
        """{name: seconds} of what ran now."""
        return {}

    def is_whole(self):
        """Whether its time tells how long it takes: nothing was looked up."""
        return True

    def running_for(self):
        return time.monotonic() - self.status.begun


class BazelStep(Step):
    """Builds, then runs the tests of one part."""

    def __init__(self, context, part, labels):
        super().__init__(context, part.name, part.lane)
        self.part = part
        self.labels = labels
        self.exit_code = 1
        self.told = events.Events()
        self.status.total = len(labels)
        self.status.waits_for_build = part.after_build
        self._files = []     # [path, offset]
        self._builds = bool(part.build)  # still, or yet
        self._phase_begun = 0

    def execute(self):
        wait_until_built(self.context, self.status)
        code = 0
        try:
            if self.part.build:
                self._begin("builds")
                code = self._call(bazel.build_command, (self.context.test_flags,))
        finally:
            if self.part.name == "tests" and self.part.build:
                self.context.built.set()
        self._begin("")
        targets = os.path.join(self.context.work, "targets-" + self.part.name)
        with open(targets, "w", encoding="utf-8") as file:
            file.write("\n".join(self.labels) + "\n")
        tested = self._call(bazel.test_command, (targets, self.context.test_flags,
                                                 self.context.side))
        # What is no test and does not build fails the first call alone.
        self.exit_code = tested or (1 if code else 0)
        if self.part.name == "tests":
            self.context.built.set()

    def _begin(self, phase):
        self.status.doing = phase
        self._builds = phase == "builds"
        self.status.actions = ()
        self._phase_begun = time.monotonic()

    def _call(self, command, arguments):
        path = os.path.join(self.context.work, "events-%s-%d" % (self.part.name, len(self._files)))
        self._files.append([path, 0])
        return self.context.children.run(
            command(self.part, self.context.plan.concurrency, path, *arguments), self._line,
            niceness=bazel.SIDE_NICENESS if self.part.lane == "side" else 0)

    def _line(self, line):
        actions = progress.read_actions(line)
        if actions:
            self.status.actions = actions
        elif line.strip() and not NOISE.match(line):
            self.context.screen.say(("[%s] " % self.part.name if self.part.suffix else "") + line)

    def poll(self):
        for entry in list(self._files):
            text, entry[1] = events.read_appended(*entry)
            self.told.feed(text)
        done = self.told.done()
        self.status.done = len(done)
        self.status.failed = len(self.told.failed())
        if self.status.waits_for_build:
            return  # as long as the last time
        names = [label + self.part.suffix for label in self.labels]
        concurrency = self.context.plan.concurrency
        at_once = progress.slots(concurrency["side" if self.part.lane == "side" else "tests"],
                                 os.cpu_count() or 1)
        left = progress.tests_left(self.context.times, names,
                                   {label + self.part.suffix for label in done}, at_once)
        build = progress.build_left(self.status.actions, time.monotonic() - self._phase_begun)
        self.status.build_left = build if self._builds else 0.0
        # Tests are among Bazel's actions as soon as they run.
        self.status.left = None if left is None else left + (0 if done else build or 0)

    def report(self, outcome):
        outcome.add_run(self.part, self.told, self.labels, self.exit_code)

    def seconds_of_tests(self):
        return {label + self.part.suffix: test.seconds for label, test in self.told.tests.items()
                if not test.cached and test.seconds > 0}

    def is_whole(self):
        return not any(test.cached for test in self.told.tests.values())


class ChecksStep(Step):
    """The checks of tests/structure: each is one case, and each one's own test is one more."""

    def __init__(self, context, name, lane, checks, after_build=False):
        super().__init__(context, name, lane)
        self._commands = [[check] + more for check in checks for more in ([], ["--self-test"])]
        self.status.waits_for_build = after_build
        self._states = []
        self._seconds = {}
        self.status.total = len(self._commands)

    def execute(self):
        wait_until_built(self.context, self.status)
        for command in self._commands:
            said = []
            name = " ".join([os.path.relpath(command[0], self.context.root)] + command[1:])
            begun = time.monotonic()
            try:
                code = self.context.children.run(command, said.append,
                                                 self.context.side_environment(),
                                                 bazel.SIDE_NICENESS, limit=LIMIT_SECONDS)
            except OSError as error:
                code, said = 1, [str(error)]
            self._seconds[name] = time.monotonic() - begun
            self._states.append(("failed" if code else "passed", name))
            self.status.done += 1
            if code:
                self.status.failed += 1
                self.context.screen.say("\n".join(["test: %s failed:" % name] + said[-60:]))

    def poll(self):
        if self.status.waits_for_build:
            return
        last = self.context.times.parts.get(self.status.part)
        self.status.left = None if last is None else max(0.0, last - self.running_for())

    def report(self, outcome):
        for state, name in self._states:
            outcome.add_case(state, name)
        for command in self._commands[len(self._states):]:
            outcome.add_case("failed", "%s did not run" % " ".join(command))

    def seconds_of_tests(self):
        return self._seconds


class ToolStep(Step):
    """A tool of ours that builds in the side lane, and says "passed NAME" or "failed NAME" of each case.
    `command`: words, the first below the root; `folder`: of the cases' names; `names`: those that must have a
    result."""

    def __init__(self, context, name, command, folder, names):
        super().__init__(context, name, "side")
        self._command = command
        self._folder = folder
        self._names = [folder + ":" + name for name in names]
        self._states = []
        self._code = None
        self.status.total = len(self._names)

    def execute(self):
        wait_until_built(self.context, self.status)
        self._code = self.context.children.run(
            [os.path.join(self.context.root, self._command[0])] + self._command[1:], self._line,
            self.context.side_environment(), bazel.SIDE_NICENESS, limit=LIMIT_SECONDS)

    def _line(self, line):
        found, actions = CHECKED.match(line), progress.read_actions(line)
        if found:
            self._states.append((found.group(1), self._folder + ":" + found.group(2)))
            self.status.done += 1
            self.status.failed += found.group(1) == "failed"
        elif actions:
            self.status.actions = actions
        elif line.strip():
            self.context.screen.say("[%s] %s" % (self.status.part, line))

    def poll(self):
        last = self.context.times.parts.get(self.status.part)
        self.status.left = None if last is None else max(0.0, last - self.running_for())

    def report(self, outcome):
        for state, name in self._states:
            outcome.add_case(state, name)
        complaint = self._complaint()
        if complaint:
            outcome.add_case("failed", complaint)

    def _complaint(self):
        """What failed beside the cases that say so; "" for nothing."""
        tool = self._command[0]
        ran = {name for _, name in self._states}
        missing = [name for name in self._names if name not in ran]
        if self._code is None:
            return tool + " broke off"
        if self._code and not any(state == "failed" for state, _ in self._states):
            return "%s exited with %d" % (tool, self._code)
        if missing:
            return "%s has no result of %s" % (tool, ", ".join(missing))
        return "" if ran else tool + " ran nothing"


class FuzzStep(ToolStep):
    """tools/fuzz: each target is one case. `labels`: those that must have a result."""

    def __init__(self, context, labels):
        super().__init__(context, "fuzz",
                         ["tools/fuzz", "--seconds", str(context.plan.fuzz_seconds)], "tests/fuzz",
                         [label.rpartition(":")[2] for label in labels])


class MutationsStep(ToolStep):
    """tests/mutations/run: each planted fault is one case."""

    TOOL = "tests/mutations/run"

    def __init__(self, context, names):
        super().__init__(context, "mutations", [self.TOOL] + names, "tests/mutations", names)
        self.status.waits_for_build = True


class SeedsStep(Step):
    """Simulations in turn, as many at a time as there are cores, until the time is over."""

    def __init__(self, context, labels, seconds, base):
        super().__init__(context, "seeds", "checks")
        self.status.waits_for_build = True
        self.status.left = float(seconds)
        self._labels = labels
        self._seconds = seconds
        self._base = base
        self._deadline = None
        self._mutex = threading.Lock()
        self._simulations = []
        self._broken = []    # tests whose simulations cannot be listed

    def execute(self):
        wait_until_built(self.context, self.status)
        self._find()
        self.status.total = len(self._simulations)
        self.context.screen.say("test: seeds of simulations: %d for %d s from base %d (again: "
                                "--seeds-base %d)" % (len(self._simulations), self._seconds,
                                                      self._base, self._base))
        self._deadline = time.monotonic() + self._seconds
        turns = list(self._simulations)
        threads = [threading.Thread(target=self._work, args=(turns, {}))
                   for _ in range(min(os.cpu_count() or 1, len(turns)))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()

    def _find(self):
        for label in self._labels:
            folder, _, name = label[2:].partition(":")
            binary = os.path.join(".bazel-bin", folder, name)
            listed = []
            try:
                # Catch2 exits with the number of cases that it lists.
                self.context.children.run([binary, "--list-test-names-only", "[seeds]"],
                                          listed.append)
            except OSError:
                listed = []
            cases = seeds.case_names("\n".join(listed))
            if not cases:
                self._broken.append(label)
            self._simulations += [seeds.Simulation(label, binary, case, self._base)
                                  for case in cases]

    def _work(self, turns, took):
        """A simulation is with one thread at a time: what nobody has is in `turns`."""
        while True:
            with self._mutex:
                if not turns or time.monotonic() >= self._deadline:
                    return
                simulation = seeds.next_turn(turns, self._base)
                turns.remove(simulation)
            try:
                took[simulation.name] = seeds.run_turn(simulation, took.get(simulation.name),
                                                       lambda f, c: self._run(simulation, f, c))
            except processes.Stopped:
                return
            except Exception as error:  # pylint: disable=broad-except
                simulation.failure = simulation.failure or "did not run: %r" % error
            if simulation.failure:
                self.context.screen.say("\n".join(["test: %s: %s:" % (
                    simulation.name, simulation.failure)] + simulation.said))
            with self._mutex:
                self.status.done = sum(1 for s in self._simulations if s.done or s.failure)
                self.status.failed = sum(1 for s in self._simulations if s.failure)
                if not simulation.failure:
                    turns.append(simulation)

    def _run(self, simulation, first, count):
        said = []
        begun = time.monotonic()
        code = self.context.children.run(
            ["timeout", str(seeds.HANGS_SECONDS)] + seeds.command(simulation), said.append,
            dict(os.environ, **seeds.environment(first, count)), bazel.SIDE_NICENESS)
        if code:
            simulation.said = said[-60:]
        return code == 0, time.monotonic() - begun

    def poll(self):
        if self._deadline is not None:
            self.status.left = max(0.0, self._deadline - time.monotonic())

    def report(self, outcome):
        for label in self._broken:
            outcome.add_case("failed", "seeds: %s has no simulation, or was not built" % label)
        for s in self._simulations:
            if s.failure:
                outcome.add_case("failed", "seeds: %s: %s" % (s.name, s.failure))
            elif s.done:
                outcome.add_case("passed", s.name)
            else:
                outcome.add_case("skipped", "seeds: %s: no time" % s.name)
        if not self._simulations and not self._broken:
            outcome.add_case("failed", "seeds: nothing ran")

    def lines(self):
        """For the report: how many seeds each simulation had."""
        return ["%8d seeds  %s" % (s.done, s.name) for s in self._simulations]


def wait_until_built(context, status):
    """Where that is what it waits for."""
    if not status.waits_for_build:
        return
    status.doing = "waits for the build"
    while not context.built.wait(0.2):
        context.children.check()
    status.doing = ""
    status.begun = time.monotonic()
    status.waits_for_build = False
