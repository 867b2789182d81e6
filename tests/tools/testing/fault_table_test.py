"""fault_table.py on logs of our own making."""

import os
import tempfile
import unittest

import fault_table


class FaultTableTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def log(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def test_tables_of_several_tests_are_one(self):
        one = self.log("one", "a line\nFAULTS: server pull bsp 3 1 4 0\n"
                              "FAULTS: worker pull bsp 2 1 0 3\n3 kills\n")
        two = self.log("two", "FAULTS: server pull async 10 2 5 0\n"
                              "FAULTS: worker pull async 1 1 1 0\n")
        three = self.log("three", "FAULTS: server forward bsp 7 0 0 1\n")
        cells = fault_table.read([one, two])
        fault_table.add(cells, fault_table.read([three, self.folder + "/gone"]))
        fault_table.add(cells, fault_table.read([three]))
        self.assertEqual(fault_table.lines(cells), [
            "faults at running jobs (kills/stops/proxy/clock):",
            "role       phase                 bsp         async",
            "server     pull              3/1/4/0      10/2/5/0",
            "server     forward          14/0/0/2             -",
            "worker     pull              2/1/0/3       1/1/1/0",
            "30 kills, 5 stops, 10 proxy faults, 5 clock steps"])

    def test_what_is_no_line_of_the_table_does_not_count(self):
        log = self.log("log", "FAULTS: server pull bsp 3 1 2\nFAULTS: server pull bsp 3 x 1 2\n"
                              " FAULTS: server pull bsp 3 1 1 2\n")
        self.assertEqual(fault_table.read([log]), {})
        self.assertEqual(fault_table.lines({}), [])
