"""bazel.py: a query that does not end."""

import os
import tempfile
import unittest

import bazel


class BazelTest(unittest.TestCase):
    def test_a_query_that_does_not_end_is_a_complaint(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "bazel"), "w", encoding="utf-8") as file:
                file.write("#!/bin/bash\nexec sleep 20\n")
            os.chmod(file.name, 0o755)
            self.addCleanup(os.environ.__setitem__, "PATH", os.environ["PATH"])
            os.environ["PATH"] = folder + ":" + os.environ["PATH"]
            self.addCleanup(setattr, bazel, "QUERY_SECONDS", getattr(bazel, "QUERY_SECONDS", 0))
            bazel.QUERY_SECONDS = 0.3
            self.assertEqual(bazel.query(folder, "//..."), ([], "no answer in 0.3 s"))
