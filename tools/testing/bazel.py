"""Calls of Bazel: the main server's, and the side lane's own."""

import subprocess

QUIET = ["--ui_event_filters=-info,-debug", "--show_progress_rate_limit=5", "--curses=no",
         "--noshow_loading_progress"]
# Of the side lane. It counts where Linux does not share the cores by session (sched_autogroup).
SIDE_NICENESS = 10
SIDE_TIMEOUTS = "--test_timeout=180,900,2700,10800"
# Beside those of --long.
LONG_SIDE_TIMEOUTS = "--test_timeout=180,900,2700,14400"
QUERY_SECONDS = 900  # no query takes that long


def side_flags(main_output_base):
    """Start-up flags of the side lane's server. It ends when it has nothing to do for a while."""
    return ["--output_base=%s-side" % main_output_base, "--max_idle_secs=600"]


def output_base(root):
    return subprocess.run(["bazel", "info", "output_base"], cwd=root, capture_output=True,
                          text=True, check=False).stdout.strip()


def query(root, expression):
    """(labels, Bazel's complaint or "")."""
    try:
        done = subprocess.run(["bazel", "query", "--noshow_progress", "--keep_going", expression],
                              cwd=root, capture_output=True, text=True, check=False,
                              timeout=QUERY_SECONDS)
    except subprocess.TimeoutExpired:
        return [], "no answer in %g s" % QUERY_SECONDS
    return done.stdout.split(), "" if done.returncode == 0 else (
        done.stderr or "exit code %d" % done.returncode)


def build_command(part, concurrency, events, flags):
    """With the flags of the tests that follow: Bazel forgets its analysis when they change."""
    return (["bazel", "build", part.build, "--keep_going"] + QUIET +
            ["--local_cpu_resources=" + concurrency["build"], "--jobs=HOST_CPUS*2",
             "--build_event_json_file=" + events] + list(part.flags) + list(flags))


def side_timeouts(flags):
    """Of tests that are instrumented, and have a low priority. `flags`: of all lanes."""
    is_long = any("test_timeout" in flag for flag in flags)
    return LONG_SIDE_TIMEOUTS if is_long else SIDE_TIMEOUTS


def test_command(part, concurrency, events, targets, flags, startup):
    """`targets`: a file of labels."""
    side = part.lane == "side"
    slots = concurrency["side" if side else "tests"]
    # A compiler beside tests: so many of both, together.
    timeouts = [side_timeouts(flags)] if side else []
    return (["bazel"] + (startup if side else []) +
            ["test", "--target_pattern_file=" + targets, "--keep_going", "--test_output=errors",
             "--test_summary=none", "--build_event_json_file=" + events] + QUIET +
            (["--symlink_prefix=/"] if side else []) +  # .bazel-bin stays the main lane's
            ["--local_cpu_resources=" + slots,
             "--jobs=" + ("HOST_CPUS" if side else "HOST_CPUS*3")] +
            list(part.flags) + list(flags) + timeouts)
