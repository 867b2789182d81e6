# shellcheck shell=bash
# Shared by the scripts in tools/. Sourced by bash from anywhere; sets ROOT, the checkout's folder.
ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"

say() { printf '%s\n' "$*" >&2; }
fail() {
  say "$(basename "$0"): $*"
  exit 1
}
usage_error() {
  say "$(basename "$0"): $*"
  say "Try: $0 --help"
  exit 2
}

# Prints the comment block at the top of the calling script, its help text.
print_help() { awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"; }

# Flags of Bazel itself, before its command: of another server than the usual one. One a line: a path
# may have blanks.
BAZEL_FLAGS=()
if [[ -n "${STRATA_BAZEL_FLAGS-}" ]]; then mapfile -t BAZEL_FLAGS <<<"$STRATA_BAZEL_FLAGS"; fi

# Bazel with output that reads well in a terminal and in a log. The output is on stderr.
run_bazel() {
  local command="$1"
  shift
  local progress=(--show_progress_rate_limit=30 --curses=no)
  if [[ -t 2 ]]; then progress=(); fi
  (cd "$ROOT" && bazel "${BAZEL_FLAGS[@]}" "$command" "${progress[@]}" --ui_event_filters=-info,-debug "$@" >&2)
}

# Where a built program lies: built_program //scheduler:strata-scheduler
built_program() {
  local label="${1#//}"
  printf '%s/.bazel-bin/%s/%s\n' "$ROOT" "${label%%:*}" "${label##*:}"
}

# The programs that make a cluster, and the command line.
# shellcheck disable=SC2034  # used by the scripts that source this file
PROGRAMS=(
  //tools/cli:strata
  //scheduler:strata-scheduler
  //server:strata-server
  //worker:strata-worker
)
