"""git_changes.py in checkouts of our own making."""

import os
import subprocess
import tempfile
import unittest

import git_changes


class GitChangesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = os.path.realpath(folder.name)
        # Settings and repositories of this machine play no part.
        before = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(before)))
        for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
            os.environ.pop(name, None)
        os.environ.update(GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_SYSTEM="/dev/null",
                          GIT_CEILING_DIRECTORIES=os.path.dirname(self.root),
                          GIT_AUTHOR_NAME="a", GIT_AUTHOR_EMAIL="a@b", GIT_COMMITTER_NAME="a",
                          GIT_COMMITTER_EMAIL="a@b")

    def git(self, *arguments):
        subprocess.run(["git", "-C", self.root] + list(arguments), check=True, capture_output=True)

    def write(self, name, text):
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def commit(self, *names):
        for name in names:
            self.write(name, "1\n2\n3\n")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "x", "--allow-empty")

    def checkout(self):
        self.git("init", "-q", "-b", "main")
        self.write(".gitignore", "*.o\n")
        self.commit("a.cc", "b.cc", "c.cc")

    def refused(self, why, revision=""):
        with self.assertRaises(git_changes.GitError) as caught:
            git_changes.changes(self.root, revision)
        self.assertIn(why, str(caught.exception))

    def test_a_branch_is_compared_with_where_it_left_main(self):
        self.checkout()
        self.git("checkout", "-q", "-b", "work")
        self.commit("committed.cc")
        self.write("a.cc", "1\nchanged\n3\n")
        self.write("staged.cc", "")
        self.git("add", "staged.cc")
        self.write("x/new file.cc", "")
        self.write("x.o", "")
        os.remove(os.path.join(self.root, "b.cc"))
        # What came to main since is not this branch's.
        self.git("stash", "-q", "-u")
        self.git("checkout", "-q", "main")
        self.commit("of_main.cc")
        self.git("checkout", "-q", "work")
        self.git("stash", "pop", "-q", "--index")
        change, commit = git_changes.changes(self.root, "")
        self.assertEqual(change.files, ["a.cc", "committed.cc", "staged.cc", "x/new file.cc"])
        self.assertEqual((change.deleted, change.notes), (["b.cc"], []))
        self.assertIn("where this branch left main", change.since)
        diff_of = git_changes.diff_of(self.root, commit)
        self.assertIn("@@ -2 +2 @@", diff_of("a.cc"))
        self.assertEqual(diff_of("x/new file.cc"), "")

    def test_on_main_what_is_not_committed_counts(self):
        self.checkout()
        self.write("a.cc", "changed")
        change, _ = git_changes.changes(self.root, "")
        self.assertEqual((change.files, change.since), (["a.cc"], "the last commit"))
        self.assertIn("only uncommitted changes count", change.notes[0])

    def test_a_revision_is_compared_with_itself(self):
        self.checkout()
        self.commit("d.cc")
        self.assertEqual(git_changes.changes(self.root, "HEAD~1")[0].files, ["d.cc"])
        self.assertEqual(git_changes.changes(self.root, "HEAD")[0].files, [])

    def test_what_cannot_be_compared_says_what_to_do(self):
        self.refused("is no git checkout; run tools/test without it")
        self.git("init", "-q", "-b", "main")
        self.refused("has no commit yet")
        self.commit("a.cc")
        self.refused("--changed nothing: git knows no such revision", "nothing")
        self.refused("no such revision", "--all")
        self.git("branch", "-m", "other")
        self.refused("no branch main here; name a revision")
        self.git("checkout", "-q", "--orphan", "main")
        self.commit("z.cc")
        self.git("checkout", "-q", "other")
        self.refused("no commit in common with main")

    def test_a_folder_inside_another_checkout_is_none(self):
        self.checkout()
        self.root = os.path.join(self.root, "inside")
        os.mkdir(self.root)
        self.refused("is no git checkout")
