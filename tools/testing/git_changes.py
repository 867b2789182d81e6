"""What git says has changed in a checkout."""

import os
import subprocess

import changed


class GitError(Exception):
    """--changed cannot know what changed; says why and what to do."""


def git(root, *arguments):
    """(exit code, stdout)."""
    try:
        done = subprocess.run(["git", "-C", root] + list(arguments), capture_output=True, text=True,
                              check=False, errors="surrogateescape")
    except FileNotFoundError:
        raise GitError("--changed needs git, which is not installed") from None
    return done.returncode, done.stdout


def resolve(root, revision):
    """A commit's id; None where there is no such commit."""
    code, out = git(root, "rev-parse", "--verify", "--quiet", revision + "^{commit}")
    return out.strip() if code == 0 else None


def base_of(root, revision):
    """(commit, what to call it, notes) that the files are compared with."""
    code, top = git(root, "rev-parse", "--show-toplevel")
    if code != 0 or not same_folder(top.strip(), root):
        raise GitError("--changed: %s is no git checkout; run tools/test without it" % root)
    head = resolve(root, "HEAD")
    if head is None:
        raise GitError("--changed: this checkout has no commit yet; run tools/test without it")
    if revision:
        commit = resolve(root, revision)
        if commit is None:
            raise GitError("--changed %s: git knows no such revision" % revision)
        return commit, revision, []
    main = next((name for name in ("main", "origin/main") if resolve(root, name)), None)
    if main is None:
        raise GitError("--changed: there is no branch main here; name a revision: --changed REV")
    commit = resolve(root, main)
    if commit == head:
        return head, "the last commit", [
            "this is main, or no commit away from it: only uncommitted changes count; "
            "--changed REV compares with an earlier commit"]
    code, base = git(root, "merge-base", main, "HEAD")
    if code != 0:
        raise GitError("--changed: this branch has no commit in common with %s; name a revision: "
                       "--changed REV" % main)
    return base.strip(), "%s, where this branch left %s" % (base.strip()[:10], main), []


def same_folder(a, b):
    return os.path.realpath(a) == os.path.realpath(b)


def changes(root, revision):
    """A changed.Change and the commit that it was compared with."""
    commit, name, notes = base_of(root, revision)
    code, diff = git(root, "diff", "--name-status", "--no-renames", "-z", commit)
    other, untracked = git(root, "ls-files", "--others", "--exclude-standard", "-z")
    if code != 0 or other != 0:
        raise GitError("--changed: git diff and git ls-files do not work here")
    files, deleted = changed.read_status(diff, untracked)
    return changed.Change(name, files, deleted, notes), commit


def diff_of(root, commit):
    """A function: what differs in one file, without lines around; "" for a new file."""
    def call(path):
        return git(root, "diff", "-U0", "--no-renames", commit, "--", path)[1]
    return call
