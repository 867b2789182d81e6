"""events.py on build events of our own making."""

import json
import os
import tempfile
import unittest

import events


def result(label, status="PASSED", millis=1500, **more):
    return {"id": {"testResult": {"label": label}},
            "testResult": dict({"status": status, "testAttemptDurationMillis": str(millis),
                                "testActionOutput": [
                                    {"name": "test.log", "uri": "file:///a%20b/test.log"},
                                    {"name": "test.xml", "uri": "file:///a/test.xml"},
                                    {"name": "test.outputs", "uri": "file:///a/zip"}]}, **more)}


def summary(label, status):
    return {"id": {"testSummary": {"label": label}}, "testSummary": {"overallStatus": status}}


def shown(out="", err=""):
    return {"id": {"progress": {}}, "progress": {"stdout": out, "stderr": err}}


def told(*entries):
    read = events.Events()
    read.feed("".join(json.dumps(e) + "\n" for e in entries))
    return read


class EventsTest(unittest.TestCase):
    def test_a_test_has_status_files_and_seconds(self):
        read = told({"id": {"started": {}}}, result("//a:b"), summary("//a:b", "FLAKY"))
        self.assertEqual(read.tests["//a:b"], events.Test("FLAKY", ["/a/test.xml"],
                                                          ["/a b/test.log"], 1.5, False))

    def test_attempts_add_up_and_cached_results_say_so(self):
        twice = told(result("//a:b", "FAILED"), result("//a:b"), summary("//a:b", "FLAKY"))
        self.assertEqual(twice.tests["//a:b"].seconds, 3)
        self.assertTrue(told(result("//a:b", cachedLocally=True)).tests["//a:b"].cached)
        self.assertTrue(told(result("//a:b", executionInfo={"cachedRemotely": True}))
                        .tests["//a:b"].cached)

    def test_a_result_counts_before_its_summary(self):
        read = told(result("//a:b", "FAILED"), result("//a:c"))
        self.assertEqual(read.done(), {"//a:b", "//a:c"})
        self.assertEqual(read.failed(), {"//a:b"})

    def test_a_line_may_come_in_pieces(self):
        text = json.dumps(result("//a:b")) + "\n"
        read = events.Events()
        read.feed(text[:40])
        self.assertEqual(read.tests, {})
        read.feed(text[40:] + "{\"id\"")
        self.assertEqual(list(read.tests), ["//a:b"])

    def test_warnings_are_found_once_whatever_pieces_they_come_in(self):
        harmless = "x.cc: In function 'f':\n  3 | Warn(\"a warning: none\");\nWARNING: From x.cc:\n"
        self.assertEqual(told(shown(err=harmless)).warnings(), [])
        export = "/usr/bin/ld.gold: warning: Cannot export local symbol '%s'\n"
        self.assertEqual(told(shown(err=export % "__asan_extra_spill_area")).warnings(), [])
        self.assertEqual(told(shown(err=export % "x")).warnings(), [(export % "x").strip()])
        read = told(shown(err=harmless + "x.cc:3:14: warn"),
                    shown(err="ing: unused [-Wunused]\nx.cc:3:14: warning: unused [-Wunused]\n"),
                    shown(err="k.cu(7): warning #177-D: unused\ncc1plus: warning: b\n"),
                    shown(out="/usr/bin/ld: warning: c\n/usr/bin/ld: y.o: warning: d\n"))
        self.assertEqual(read.warnings(), [
            "/usr/bin/ld: warning: c", "/usr/bin/ld: y.o: warning: d", "cc1plus: warning: b",
            "k.cu(7): warning #177-D: unused", "x.cc:3:14: warning: unused [-Wunused]"])

    def test_a_file_is_read_from_where_it_was_left_by_whole_lines(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "events")
            self.assertEqual(events.read_appended(path, 0), ("", 0))
            with open(path, "wb") as file:
                file.write("ä\nbc".encode())
            self.assertEqual(events.read_appended(path, 0), ("ä\n", 3))
            with open(path, "ab") as file:
                file.write(b"d\n")
            self.assertEqual(events.read_appended(path, 3), ("bcd\n", 7))
