"""times.py: what earlier runs took."""

import os
import tempfile
import unittest

import times


class TimesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "below", "times.json")

    def write(self, text):
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(text)

    def test_what_is_saved_is_loaded(self):
        times.save(times.Times({"//a:b [asan]": 2.5}, {"asan": 60}), self.path)
        times.save(times.Times({"//a:b [asan]": 3.5}, {"asan": 61}), self.path)
        read = times.load(self.path)
        self.assertEqual((read.tests, read.parts), ({"//a:b [asan]": 3.5}, {"asan": 61.0}))
        self.assertEqual(os.listdir(os.path.dirname(self.path)), ["times.json"])

    def test_a_file_that_is_no_such_file_is_as_good_as_none(self):
        self.assertEqual(times.load(self.path).tests, {})
        for text in ("", "[]", "{}", "{\"tests\": [], \"parts\": {}}", "{\"tests\": {}}", "\x00"):
            self.write(text)
            self.assertEqual((times.load(self.path).tests, times.load(self.path).parts), ({}, {}))

    def test_what_is_no_time_is_left_out(self):
        self.write("{\"tests\": {\"a\": 1, \"b\": \"x\", \"c\": -1}, \"parts\": {}}")
        self.assertEqual(times.load(self.path).tests, {"a": 1.0})

    def test_unknown_tests_count_as_the_known_ones_do(self):
        known = times.Times({"a": 2, "b": 4})
        self.assertEqual(known.of_tests(["a", "b"]), 6)
        self.assertEqual(known.of_tests(["a", "b", "c", "d"]), 12)
        self.assertIsNone(known.of_tests(["c"]))
        self.assertEqual(known.of_tests([]), 0)
