"""changed.py: from changed files to what is asked of Bazel."""

import unittest

import changed

RULES = """\
load("//x:y.bzl", "rule")

rule(
    name = "a",
    deps = [
        ":b",
    ],
)

rule(
    name = "b",
)

[rule(name = n) for n in ["c", "d"]]
"""


def change(files=(), deleted=()):
    return changed.Change("main", list(files), list(deleted))


def roots(a_change, diffs=None):
    packages = ("", "storage", "storage/gpu", "tools/testing")
    return changed.roots(a_change, [".bazelrc", "*.bzl", "tools/bazel/*"],
                         lambda folder: folder in packages, lambda path: RULES,
                         lambda path: (diffs or {}).get(path, ""))


class ChangedTest(unittest.TestCase):
    def test_gits_lists_are_read(self):
        self.assertEqual(
            changed.read_status("M\0b.cc\0A\0a b.cc\0D\0gone.cc\0T\0link\0", "new.cc\0"),
            (["a b.cc", "b.cc", "link", "new.cc"], ["gone.cc"]))
        self.assertEqual(changed.read_status("", ""), ([], []))
        # Deleted in the index and there again, untracked.
        self.assertEqual(changed.read_status("D\0a\0", "a\0"), (["a"], []))

    def test_a_file_belongs_to_the_nearest_package(self):
        found = roots(change(["README.md", "storage/log/x.cc", "storage/gpu/y.h", "storage/z.cc"]))
        self.assertEqual(found.labels, ["//:README.md", "//storage:log/x.cc", "//storage/gpu:y.h",
                                        "//storage:z.cc"])
        self.assertEqual((found.packages, found.everything, found.unknown), ([], [], []))
        self.assertIsNone(changed.package_of("docs/x.md", lambda folder: folder == "storage"))
        outside = changed.roots(change(["docs/x.md"]), [], lambda folder: False, None, None)
        self.assertEqual((outside.labels, outside.unknown), ([], ["docs/x.md"]))

    def test_lines_of_a_build_file_are_rules(self):
        self.assertEqual(changed.changed_lines("@@ -5 +6 @@ x\n-a\n+b\n@@ -9,0 +11,2 @@\n"),
                         [(6, 6), (11, 12)])
        # Taken away between 6 and 7.
        self.assertEqual(changed.changed_lines("@@ -7,3 +6,0 @@"), [(6, 7)])
        self.assertEqual(changed.rules_at(RULES, [(6, 6)]), ["a"])
        self.assertEqual(changed.rules_at(RULES, [(6, 11)]), ["a", "b"])
        self.assertEqual(changed.rules_at(RULES, [(9, 9)]), [])
        for lines in ([(1, 1)], [(14, 14)], [(4, 4), (14, 15)]):
            self.assertIsNone(changed.rules_at(RULES, lines))
        self.assertIsNone(changed.rules_at("rule(name = ", [(1, 1)]))

    def test_a_build_file_counts_by_its_rules_or_as_a_whole(self):
        path = "storage/BUILD.bazel"
        found = roots(change([path]), {path: "@@ -6 +6 @@"})
        self.assertEqual((found.labels, found.packages), (["//storage:a"], []))
        for diff in ("@@ -14 +14 @@", ""):  # a loop; a new file
            found = roots(change([path]), {path: diff})
            self.assertEqual((found.labels, found.packages), ([], ["storage"]))
        found = roots(change(["BUILD.bazel"]), {"BUILD.bazel": "@@ -6 +6 @@"})
        self.assertEqual(found.labels, ["//:a"])

    def test_a_deleted_file_counts_by_the_build_file_that_named_it(self):
        self.assertEqual(roots(change(deleted=["storage/x.cc"])).packages, ["storage"])
        both = roots(change(["storage/BUILD.bazel"], ["storage/x.cc"]),
                     {"storage/BUILD.bazel": "@@ -6 +6 @@"})
        self.assertEqual((both.labels, both.packages), (["//storage:a"], []))

    def test_files_that_everything_depends_on_are_named(self):
        found = roots(change([".bazelrc", "tools/bazel/prelude.h", "storage/x.bzl"], ["old.bzl"]))
        self.assertEqual(found.everything,
                         [".bazelrc", "tools/bazel/prelude.h", "storage/x.bzl", "old.bzl"])

    def test_a_query_begins_at_what_is_known(self):
        found = changed.Roots(["//a:x", "//a:y"], ["b"], [], [])
        self.assertEqual(changed.start_set(found, ["//a:x"]), "set(//a:x //b:all)")
        self.assertEqual(changed.start_set(changed.Roots(["//a:y"], [], [], []), []), "")

    def test_depth_counts_rules_and_not_the_file(self):
        self.assertIn("rdeps(//..., set(//a:x), 4)", changed.tests_within("set(//a:x)", 3))
        self.assertIn("rdeps(//..., set(//a:x))", changed.tests_within("set(//a:x)", None))
        self.assertIn("except attr(tags, '\\b(cuda|manual)\\b'",
                      changed.tests_within("set(//a:x)", 3))

    def test_smoke_tests_always_run_and_are_not_left_out(self):
        chosen = changed.select(["//t:b"], ["//t:a", "//t:b", "//e:s"], ["//e:s"])
        self.assertEqual((chosen.tests, chosen.left_out), (["//e:s", "//t:b"], ["//t:a"]))

    def test_what_is_not_built_is_no_test_and_no_part_of_one(self):
        asked = changed.not_built("set(//a:x)", ["//t:b", "//e:s"])
        self.assertTrue(asked.startswith("kind(rule, rdeps(//..., set(//a:x))) except tests("))
        self.assertIn("except attr(tags, '\\b(cuda|manual)\\b'", asked)
        self.assertTrue(asked.endswith(" except deps(set(//t:b //e:s))"))
        self.assertEqual(changed.tested("set(//a:x //b:all)", ["//a:x"]),
                         "set(//a:x) intersect deps(tests(rdeps(//..., set(//a:x //b:all))))")

    def test_it_tells_what_it_does_not_build_and_what_has_no_test(self):
        for verbose, rest in ((False, " (--verbose names them)\n"),
                              (True, ":\n  //l:x\n  //l:y\n")):
            said = self.description(change(["a.cc"]), changed.Roots(["//:a.cc"], [], [], []),
                                    ["//:a.cc"], verbose, untested=["//:a.cc"],
                                    not_built=["//l:x", "//l:y"])
            self.assertIn("no test depends on //:a.cc\n", said)
            self.assertIn("not built: 2 targets that depend on it, none a test or a program of a "
                          "cluster" + rest, said)

    def description(self, a_change, found, known, verbose=False, **more):
        selection = changed.select(["//t:b"], ["//t:a", "//t:b"], ["//e:s"])
        for name, value in more.items():
            setattr(selection, name, value)
        return "\n".join(changed.describe(a_change, found, known, selection, 3, verbose))

    def test_it_tells_what_it_chose_and_left_out(self):
        said = self.description(change(["a.cc"], ["b.cc"]), changed.Roots(["//:a.cc"], [], [], []),
                                ["//:a.cc"])
        self.assertIn("2 files differ from main", said)
        self.assertIn("2 tests depend on it over at most 3 rules, or are one of 1 that run", said)
        self.assertIn("left out: 1 tests that depend on it from farther away (--verbose", said)
        self.assertNotIn("no test depends", said)
        self.assertNotIn("//t:a", said)

    def test_it_names_what_is_left_out_where_that_is_wanted(self):
        said = self.description(change(["a.cc"]), changed.Roots([], [], [], []), [], True)
        self.assertIn("farther away:\n  //t:a\n", said)

    def test_it_warns_of_what_it_cannot_cover(self):
        found = changed.Roots(["//:x.md"], ["storage"], [".bazelrc"], ["docs/y"])
        said = self.description(change([".bazelrc"]), found, [])
        self.assertIn("no test depends on //:x.md, docs/y", said)
        self.assertIn("everything of //storage counts as changed", said)
        self.assertIn("changed: everything depends on .bazelrc: run tools/test without --changed\n"
                      "changed: for that, this runs only the quick checks, the driver's own tests",
                      said)

    def test_a_full_run_is_wanted_for_what_everything_depends_on_alone(self):
        self.assertEqual(changed.full_run(changed.Roots(["//:a.cc"], ["b"], [], [])), "")
        self.assertEqual(changed.full_run(changed.Roots([], [], ["WORKSPACE", "x.bzl"], [])),
                         "everything depends on WORKSPACE, x.bzl: run tools/test without --changed")
