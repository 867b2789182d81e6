#!/usr/bin/env python3
"""Runs the unittest cases of one file: run_cases.py FILE FOLDER, both as paths in the checkout.

The modules of FOLDER can be imported. Each case stands in the JUnit file that Bazel names in
XML_OUTPUT_FILE.
"""

import importlib.util
import os
import sys
import unittest
import xml.etree.ElementTree as ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.environ.get("TEST_SRCDIR") and os.path.join(os.environ["TEST_SRCDIR"], "strata")


class Results(unittest.TextTestResult):
    """Remembers each case in the order in which they ran."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.cases = []

    def startTest(self, test):
        super().startTest(test)
        self.cases.append(test.id())


def write_xml(path, results):
    wrong = {test.id(): text for test, text in results.failures + results.errors}
    suite = ElementTree.Element("testsuite")
    for name in results.cases + [n for n in wrong if n not in results.cases]:
        case = ElementTree.SubElement(suite, "testcase", name=name)
        if name in wrong:
            ElementTree.SubElement(case, "failure").text = wrong[name]
    top = ElementTree.Element("testsuites")
    top.append(suite)
    ElementTree.ElementTree(top).write(path)


def main():
    sys.dont_write_bytecode = True
    root = ROOT or os.path.dirname(HERE)
    file, folder = sys.argv[1:]
    sys.path.insert(0, os.path.join(root, folder))
    spec = importlib.util.spec_from_file_location("cases", os.path.join(root, file))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    tests = unittest.defaultTestLoader.loadTestsFromModule(module)
    results = unittest.TextTestRunner(resultclass=Results, verbosity=2).run(tests)
    if os.environ.get("XML_OUTPUT_FILE"):
        write_xml(os.environ["XML_OUTPUT_FILE"], results)
    return 0 if results.wasSuccessful() and results.testsRun else 1


if __name__ == "__main__":
    sys.exit(main())
