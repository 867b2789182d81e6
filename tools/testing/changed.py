"""tools/test --changed: from changed files to tests. Pure, but for `look` and `query` given.

A file is "deleted", or it is as it lies there. Files that no target knows (documents, scripts) are
named and have no tests; the checks of tests/structure look at them.
"""

import ast
import dataclasses
import fnmatch
import re

BUILD = "BUILD.bazel"
HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@", re.M)


@dataclasses.dataclass
class Change:
    """What differs from `since`."""
    since: str               # for people
    files: list              # that exist, sorted
    deleted: list
    notes: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Roots:
    """Where Bazel's query begins."""
    labels: list             # files and rules that may exist
    packages: list           # of which everything counts
    everything: list         # files that all targets depend on
    unknown: list            # files outside of every package


def read_status(diff, untracked):
    """(files, deleted) of `git diff --name-status --no-renames -z` and `git ls-files -z`."""
    fields = diff.split("\0")
    files, deleted = set(), set()
    for status, path in zip(fields[::2], fields[1::2]):
        (deleted if status.startswith("D") else files).add(path)
    files.update(path for path in untracked.split("\0") if path)
    return sorted(files), sorted(deleted - files)


def package_of(path, has_build):
    """The folder of the nearest BUILD file at or above; None without. `has_build`: of a folder."""
    folder = path.rpartition("/")[0]
    while True:
        if has_build(folder):
            return folder
        if not folder:
            return None
        folder = folder.rpartition("/")[0]


def label_of(path, package):
    name = path[len(package) + 1:] if package else path
    return "//%s:%s" % (package, name)


def changed_lines(diff):
    """[(first, last)] of the new file that `git diff -U0` names. Where lines were only taken away,
    the lines around."""
    found = []
    for match in HUNK.finditer(diff):
        first, count = int(match.group(1)), int(match.group(2) or 1)
        found.append((first, first + count - 1) if count else (first, first + 1))
    return found


def rules_at(text, lines):
    """Names of the rules of a BUILD file that these lines touch; None where it takes more than that
    to tell (a constant, a load, a rule in a loop)."""
    try:
        statements = ast.parse(text).body
    except SyntaxError:
        return None
    rules = set()
    for first, last in lines:
        for s in statements:
            if s.end_lineno < first or s.lineno > last:
                continue
            name = rule_name(s)
            if name is None:
                return None
            rules.add(name)
    return sorted(rules)


def rule_name(statement):
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return None
    for keyword in statement.value.keywords:
        if keyword.arg == "name" and isinstance(keyword.value, ast.Constant):
            return keyword.value.value
    return None


def is_everything(path, patterns):
    return any(fnmatch.fnmatch(path, p) or fnmatch.fnmatch(path.rpartition("/")[2], p)
               for p in patterns)


def roots(change, patterns, has_build, read, diff_of):
    """Roots of a change. `read`: a file's text; `diff_of`: what `git diff -U0` says of a file."""
    found = Roots([], [], [], [])
    for path in change.files:
        package = package_of(path, has_build)
        if is_everything(path, patterns):
            found.everything.append(path)
        if package is None:
            found.unknown.append(path)
        elif path.rpartition("/")[2] != BUILD:
            found.labels.append(label_of(path, package))
        else:
            diff = diff_of(path)
            rules = rules_at(read(path), changed_lines(diff)) if diff else None
            if rules is None:
                found.packages.append(package)
            else:
                found.labels += [label_of(rule, "") if not package else
                                 "//%s:%s" % (package, rule) for rule in rules]
    for path in change.deleted:
        found.everything += [path] if is_everything(path, patterns) else []
        package = package_of(path, has_build)
        # Who named it is in a BUILD file that changed as well; else a glob took it.
        if package is not None and (package + "/" + BUILD).lstrip("/") not in change.files:
            found.packages.append(package)
    found.packages = sorted(set(found.packages))
    return found


def start_set(found, known):
    """The query's expression of where it begins; "" for nothing. `known`: labels that exist."""
    parts = sorted(set(known)) + ["//%s:all" % package for package in found.packages]
    return "set(%s)" % " ".join(parts) if parts else ""


def tests_within(start, depth):
    """A query: tests that depend on `start` over at most `depth` rules, a file's own rule included;
    None: over any number."""
    far = "" if depth is None else ", %d" % (depth + 1)
    universe = "rdeps(//..., %s%s)" % (start, far)
    return "tests(%s) except attr(tags, '\\b(cuda|manual)\\b', tests(%s))" % (universe, universe)


def tested(start, known):
    """A query: those of `known` that a test depends on, be it one that does not run here."""
    return "set(%s) intersect deps(tests(rdeps(//..., %s)))" % (" ".join(known), start)


def not_built(start, tests):
    """A query: what depends on `start`, and is neither a test nor built for these tests."""
    rules = "kind(rule, rdeps(//..., %s))" % start
    return ("%s except tests(%s) except attr(tags, '\\b(cuda|manual)\\b', %s) "
            "except deps(set(%s))" % (rules, rules, rules, " ".join(tests)))


@dataclasses.dataclass
class Selection:
    tests: list              # labels, those that always run included, sorted
    left_out: list           # tests that depend on the change from farther away
    always: list             # that run whatever changed
    untested: list = dataclasses.field(default_factory=list)   # changed; no test depends on them
    not_built: list = dataclasses.field(default_factory=list)  # depend on the change; no test


def select(near, all_that_depend, always):
    chosen = set(near) | set(always)
    return Selection(sorted(chosen), sorted(set(all_that_depend) - chosen), list(always))


def full_run(found):
    """Why the whole run is wanted; "" where it is not."""
    if not found.everything:
        return ""
    return "everything depends on %s: run tools/test without --changed" % ", ".join(
        found.everything)


def describe(change, found, known, selection, depth, verbose):
    """What --changed tells before it runs."""
    lines = ["changed: %d files differ from %s" % (
        len(change.files) + len(change.deleted), change.since)]
    lines += ["changed: " + note for note in change.notes]
    silent = sorted((set(found.labels) - set(known)) | set(selection.untested))
    if silent or found.unknown:
        names = silent + found.unknown
        lines.append("changed: no test depends on %s%s" % (
            ", ".join(names[:8]), " and %d more" % (len(names) - 8) if len(names) > 8 else ""))
    for package in found.packages:
        lines.append("changed: everything of //%s counts as changed" % package)
    if full_run(found):
        lines += ["changed: " + full_run(found),
                  "changed: for that, this runs only the quick checks, the driver's own tests and "
                  "the end-to-end tests"]
    lines.append("changed: %d tests depend on it over at most %d rules, or are one of %d "
                 "that run in any case" % (len(selection.tests), depth, len(selection.always)))
    if selection.left_out:
        lines.append("changed: left out: %d tests that depend on it from farther away%s" % (
            len(selection.left_out), ":" if verbose else " (--verbose names them; --depth N)"))
        lines += ["  " + label for label in selection.left_out] if verbose else []
    if selection.not_built:
        lines.append("changed: not built: %d targets that depend on it, none a test or a program of "
                     "a cluster%s" % (len(selection.not_built),
                                      ":" if verbose else " (--verbose names them)"))
        lines += ["  " + label for label in selection.not_built] if verbose else []
    lines.append("changed: left out: %s" % LEFT_OUT_PARTS)
    return lines


LEFT_OUT_PARTS = ("AddressSanitizer beyond storage, ThreadSanitizer beyond what `tools/test --help` "
                  "says, nvcc's build, fuzzing, planted faults, fresh seeds, the thread-safety "
                  "analysis")
