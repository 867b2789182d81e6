"""tools/test as it is typed, in a checkout of its own with a Bazel of this test's making."""

import compileall
import json
import os
import shutil
import signal
import subprocess
import tempfile
import unittest

import main

SIMULATION = r'''#!/bin/bash
if [[ "$1" == --list* ]]; then echo "a simulation, of faults"; exit 1; fi
[[ "$1" == "a simulation\\, of faults" ]] || exit 9
echo "$STRATA_SEED $STRATA_SEED_COUNT" >>seeds_that_ran
bad="$(cat told/seed 2>/dev/null)"
after=$((STRATA_SEED + STRATA_SEED_COUNT))
if [[ -e told/together && "$STRATA_SEED_COUNT" -ge 4 ]]; then
  echo "they lost a step together"
  exit 1
fi
if [[ -n "$bad" && "$STRATA_SEED" -le "$bad" && "$bad" -lt "$after" ]]; then
  echo "it lost a step"
  exit 1
fi
'''


TOOLS = os.path.dirname(os.path.dirname(os.path.abspath(main.__file__)))
FAKE_BAZEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fake_bazel")


class MainTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """What lies in each case's checkout: scripts, and the driver, which is compiled once."""
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.made = folder.name
        driver = os.path.join(cls.made, "tools", "testing")
        shutil.copytree(os.path.join(TOOLS, "testing"), driver)
        compileall.compile_dir(driver, quiet=1)
        for name in ("common.sh", "fuzz", "test"):
            shutil.copy(os.path.join(TOOLS, name), os.path.join(cls.made, "tools", name))
        os.mkdir(os.path.join(cls.made, "bin"))
        shutil.copy(FAKE_BAZEL, os.path.join(cls.made, "bin", "bazel"))

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="with a blank ")
        self.addCleanup(folder.cleanup)
        self.root = os.path.realpath(folder.name)
        shutil.copytree(self.made, self.root, dirs_exist_ok=True)
        self.write("tools/setup", "#!/bin/bash\n")
        self.write("base/tests/fuzz/x_fuzz", "#!/bin/bash\n")
        self.write("tests/mutations/run", "#!/bin/bash\n"
                   "if [[ $1 == --list ]]; then echo m.one; exit; fi\n"
                   "echo \"passed $1\"\n")
        self.write("tests/structure/check_a", "#!/bin/bash\n[[ ! -e told/check_a ]]\n")
        self.write("tests/structure/check_b", "#!/bin/bash\nset -e\nsource tools/common.sh\n"
                   "bazel \"${BAZEL_FLAGS[@]}\" info check_b\n"
                   "echo \"$STRATA_BAZEL_FLAGS\" >flags\n")
        self.write(".bazel-bin/tests/sim", SIMULATION)
        os.makedirs(os.path.join(self.root, "told"))
        self.environment = {"HOME": self.root + "/home", "CUDA_HOME": self.root + "/none",
                            "PATH": self.root + "/bin:/usr/bin:/bin",
                            "GIT_CEILING_DIRECTORIES": os.path.dirname(self.root),
                            "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}

    def write(self, name, text):
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        if text.startswith("#!"):
            os.chmod(path, 0o755)

    def read(self, name):
        with open(os.path.join(self.root, name), encoding="utf-8") as file:
            return file.read()

    def run_test(self, *arguments):
        """(exit code, lines of stdout, stderr)."""
        done = subprocess.run([self.root + "/tools/test"] + list(arguments), env=self.environment,
                              cwd="/", capture_output=True, text=True, check=False, timeout=120)
        return done.returncode, done.stdout.splitlines(), done.stderr

    def run_shortly(self, *arguments):
        return self.run_test("--seeds-seconds", "1", *arguments)

    def git(self, *arguments):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", self.root] +
                       list(arguments), env=self.environment, check=True, capture_output=True)

    def checkout(self):
        self.write(".gitignore", "*\n!a.cc\n!BUILD.bazel\n")
        self.write("BUILD.bazel", "")
        self.write("a.cc", "1\n")
        self.git("init", "-q", "-b", "main")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "x")

    def test_everything_passes_and_is_counted(self):
        code, out, err = self.run_shortly()
        # 2 tests, asan's, tsan's; 2 checks and their own tests; a fuzz target; a planted
        # fault; a simulation.
        self.assertEqual((code, out[-1]), (0, "11 passed, 0 failed"), err)
        text = "\n".join(out)
        for part in ("tests", "asan", "tsan", "checks", "fuzz", "mutations", "seeds"):
            self.assertRegex(text, r"(?m)^ +0:\d\d  %s " % part)
        self.assertIn("     2.5 s  //tests:m [asan]", out)
        self.assertIn("again: --seeds-base", err)
        calls = self.read("calls")
        self.assertRegex(calls, r"(?m)^build //\.\.\. --keep_going")
        self.assertRegex(calls, r"(?m)^--output_base=%s/base-side --max_idle_secs=\d+ test .*"
                         r"--config=asan" % self.root)
        self.assertNotIn("--config=cuda", calls)
        kept = json.loads(self.read("home/.cache/strata/test_times.json"))
        self.assertEqual(kept["tests"]["//tests:m [asan]"], 2.5)
        self.assertIn("asan", kept["parts"])

    def test_times_of_parts_are_kept_where_all_of_them_ran(self):
        self.checkout()
        self.write("a.cc", "2\n")
        self.run_test("--changed")
        kept = json.loads(self.read("home/.cache/strata/test_times.json"))
        self.assertIn("//tests:b", kept["tests"])
        self.assertEqual(kept["parts"], {})
        self.write("told/cached", "//tests:m")
        self.run_test("--seeds-seconds=0")
        kept = json.loads(self.read("home/.cache/strata/test_times.json"))
        self.assertNotIn("asan", kept["parts"])
        for part in ("tests", "tsan", "checks", "fuzz"):
            self.assertIn(part, kept["parts"])

    def test_a_part_that_cannot_run_is_told_and_skipped(self):
        code, out, err = self.run_test("--seeds-seconds=0")
        self.assertEqual((code, out[-2:]), (0, ["SKIPPED the part cuda: no nvcc",
                                                "10 passed, 0 failed"]))
        self.assertIn("test: no nvcc: the part cuda does not run", err)

    def test_the_side_lane_has_more_time_under_long_as_well(self):
        for flags, main_lane, side in ((["--long"], "-1,-1,-1,14400", "180,900,2700,14400"),
                                       ([], None, "180,900,2700,10800")):
            self.write("calls", "")
            self.run_test("--seeds-seconds=0", *flags)
            given = {}
            for call in self.read("calls").splitlines():
                if " test " in " " + call:
                    times = [f for f in call.split() if f.startswith("--test_timeout=")]
                    # The last one counts.
                    given["config" in call] = times[-1].partition("=")[2] if times else None
            self.assertEqual(given, {False: main_lane, True: side})

    def test_a_check_that_asks_bazel_uses_the_side_lanes_server(self):
        self.run_test("--seeds-seconds=0")
        side = "--output_base=%s/base-side" % self.root
        self.assertEqual(self.read("flags").splitlines(), [side, "--max_idle_secs=600"])
        for call in ("info check_b", "query attr(tags, fuzz", "build "):
            self.assertIn("\n%s --max_idle_secs=600 %s" % (side, call), self.read("calls"))

    def test_what_fails_is_listed_and_fails_the_run(self):
        self.write("told/b", "FAILED")
        self.write("told/m", "TIMEOUT")
        self.write("told/check_a", "x")
        self.write("tools/fuzz", "#!/bin/bash\necho passed x_fuzz\necho failed y_fuzz\nexit 1\n")
        code, out, _ = self.run_test("--seeds-seconds=0")
        self.assertEqual((code, out[-6:]), (1, [
            "FAILED  tests/structure/check_a", "FAILED  tests/structure/check_a --self-test",
            "FAILED  //tests:b: first", "FAILED  //tests:m [asan]: first",
            "FAILED  tests/fuzz:y_fuzz", "6 passed, 5 failed"]))

    def test_fuzzing_that_ends_badly_has_failed_whatever_passed(self):
        for script, why in (("echo passed x_fuzz; exit 3", "exited with 3"),
                            ("echo passed y_fuzz", "has no result of tests/fuzz:x_fuzz"),
                            ("exit 0", "has no result of tests/fuzz:x_fuzz")):
            self.write("tools/fuzz", "#!/bin/bash\n%s\n" % script)
            code, out, _ = self.run_test("--seeds-seconds=0")
            self.assertEqual((code, out[-2]), (1, "FAILED  tools/fuzz " + why))
        os.remove(os.path.join(self.root, "tools/fuzz"))
        code, out, _ = self.run_test("--seeds-seconds=0")
        self.assertEqual((code, out[-2:]), (1, ["FAILED  tools/fuzz exited with 127",
                                                "9 passed, 1 failed"]))

    def test_a_build_that_breaks_has_failed(self):
        self.write("told/build", "1")
        code, out, _ = self.run_test("--seeds-seconds=0")
        self.assertEqual(code, 1)
        self.assertIn("FAILED  bazel test exited with 1", out)

    def test_a_query_that_fails_is_no_success_and_ends_nothing(self):
        self.write("told/query", "1")
        code, out, err = self.run_shortly()
        self.assertEqual((code, out[-1]), (1, "11 passed, 5 failed"))
        self.assertIn("FAILED  bazel query for the part asan", out)
        self.assertIn("bazel query failed for the part seeds", err)
        self.checkout()
        self.write("a.cc", "2")
        code, out, err = self.run_test("--changed")
        self.assertEqual((code, out[-1]), (1, "0 passed, 1 failed"))

    def test_setup_that_fails_ends_it(self):
        self.write("tools/setup", "#!/bin/bash\nexit 7\n")
        self.assertEqual(self.run_shortly()[:2], (7, []))

    def test_a_seed_that_fails_is_found_and_printed(self):
        self.write("told/seed", "1002")
        code, out, err = self.run_test("--seeds-seconds", "60", "--seeds-base", "1000")
        self.assertEqual(code, 1)
        self.assertIn("from base 1000", err)
        self.assertIn("it lost a step", err)
        self.assertIn("FAILED  seeds: //tests:sim: a simulation, of faults: seed 1002 failed; "
                      "again: STRATA_SEED=1002 .bazel-bin/tests/sim 'a simulation\\, of faults'; then add "
                      "it to tests/sim/seeds", out)
        self.assertTrue(self.read("seeds_that_ran").startswith("1000 1\n1001 "))

    def test_seeds_that_fail_together_alone_are_printed_too(self):
        self.write("told/together", "x")
        code, out, err = self.run_test("--seeds-seconds", "60", "--seeds-base", "1000")
        self.assertEqual(code, 1)
        self.assertIn("they lost a step together", err)
        self.assertIn("failed together, no half alone; again: STRATA_SEED=1001 STRATA_SEED_COUNT=4",
                      "\n".join(out))

    def test_simulations_that_are_not_there_have_failed(self):
        os.remove(os.path.join(self.root, ".bazel-bin/tests/sim"))
        code, out, _ = self.run_shortly()
        self.assertEqual((code, out[-2]), (
            1, "FAILED  seeds: //tests:sim has no simulation, or was not built"))

    def test_no_seconds_no_seeds(self):
        code, out, _ = self.run_test("--seeds-seconds=0")
        self.assertEqual((code, out[-1]), (0, "10 passed, 0 failed"))
        self.assertNotIn("seeds", "\n".join(out))

    def test_ctrl_c_ends_what_runs(self):
        self.write("told/hang", "1")
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            running = self.running_test()
            running.send_signal(number)
            out, err = running.communicate(timeout=120)
            self.assertEqual((running.returncode, out), (130, ""), err)
            self.assertIn("interrupted", err)
            self.expect_nothing_left()

    def test_an_error_of_its_own_ends_what_runs(self):
        self.write("told/hang", "1")
        self.write("told/events", "no event\n")
        running = self.running_test()
        out, err = running.communicate(timeout=120)
        self.assertEqual((running.returncode, out), (1, ""), err)
        self.assertIn("JSONDecodeError", err)
        self.expect_nothing_left()

    def running_test(self):
        """tools/test, when one of its tests runs."""
        running = subprocess.Popen([self.root + "/tools/test"], env=self.environment,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))
        # The other output says nothing of that.
        while not os.path.exists(self.root + "/sleeps") and running.poll() is None:
            signal.sigtimedwait([], 0.05)
        return running

    def expect_nothing_left(self):
        left = subprocess.run(["pgrep", "-f", self.root], capture_output=True, text=True,
                              check=False).stdout
        self.assertEqual(left, "")
        pid = self.read("sleeps")
        self.assertFalse(os.path.exists("/proc/%s" % pid) and
                         "Z" not in self.stat(pid), "a test's child is left")
        os.remove(self.root + "/sleeps")

    def stat(self, pid):
        try:
            with open("/proc/%s/stat" % pid, encoding="utf-8") as file:
                return file.read().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return "Z"

    def test_wrong_usage(self):
        for arguments, why in ((("--nothing",), "unknown argument '--nothing'"),
                               (("--data", "/nowhere"), "no such folder"),
                               (("--changed",), "is no git checkout")):
            code, out, err = self.run_test(*arguments)
            self.assertEqual((code, out), (2, []))
            self.assertIn(why, err)
            self.assertIn("Try: tools/test --help", err)
        self.checkout()
        code, _, err = self.run_test("--changed", "gone")
        self.assertEqual(code, 2)
        self.assertIn("no such revision", err)

    def test_help(self):
        code, out, _ = self.run_test("--help")
        self.assertEqual(code, 0)
        self.assertTrue(out[0].startswith("Builds everything and runs every test: tools/test"))

    def test_nothing_changed_runs_nothing(self):
        self.checkout()
        code, out, err = self.run_test("--changed")
        self.assertEqual((code, out), (0, ["0 passed, 0 failed"]))
        self.assertIn("nothing differs from the last commit", err)
        self.assertIn("only uncommitted changes count", err)

    def test_a_change_runs_what_depends_on_it_and_three_more(self):
        self.checkout()
        self.write("a.cc", "2\n")
        code, out, err = self.run_test("--changed")
        # 4 tests, the sanitizers' two, 2 checks and their own tests.
        self.assertEqual((code, out[-1]), (0, "10 passed, 0 failed"), err)
        self.assertIn("left out: 1 tests that depend on it from farther away", err)
        self.assertIn("not built: 1 targets that depend on it, none a test", err)
        self.assertNotIn("no test depends", err)
        calls = self.read("calls")
        self.assertNotRegex(calls, r"(?m)^build ")
        self.assertEqual(len([c for c in calls.splitlines() if " test " in " " + c]), 3)

    def test_a_change_without_a_test_is_told(self):
        self.checkout()
        self.write("a.cc", "2\n")
        self.write("told/tested", "//:other")
        self.assertIn("no test depends on //:a.cc\n", self.run_test("--changed")[2])

    def test_documents_alone_run_the_smoke_tests(self):
        self.checkout()
        self.write("BUILD.bazel", "# a comment\n")
        code, out, err = self.run_test("--changed")
        self.assertEqual((code, out[-1]), (0, "7 passed, 0 failed"), err)

    def test_what_everything_depends_on_wants_a_full_run(self):
        self.write("tools/bazel/x.bzl", "")
        self.checkout()
        self.git("add", "-f", "tools/bazel/x.bzl")
        self.write("tools/bazel/x.bzl", "x = 1\n")
        code, out, err = self.run_test("--changed")
        # The driver's own tests as well.
        self.assertEqual((code, out[-2:]), (0, [
            "SKIPPED everything depends on tools/bazel/x.bzl: run tools/test without --changed",
            "8 passed, 0 failed"]), err)
        self.assertIn("changed: everything depends on tools/bazel/x.bzl: run tools/test", err)
