"""machine.py: which GPUs nvidia-smi tells, and none where it is missing or fails."""

import os
import tempfile
import unittest
from unittest import mock

import machine


def gpus_found(script=None):
    """Where nvidia-smi is this shell script, or is missing."""
    with tempfile.TemporaryDirectory() as folder:
        if script is not None:
            path = os.path.join(folder, "nvidia-smi")
            with open(path, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\n" + script)
            os.chmod(path, 0o755)
        with mock.patch.dict(os.environ, {"PATH": folder}):
            return machine.gpus_found()


class MachineTest(unittest.TestCase):
    def test_each_gpu_has_its_capability(self):
        self.assertEqual(gpus_found("echo 9.0\necho 8.6\necho 12.0\n"), ((9, 0), (8, 6), (12, 0)))

    def test_the_capability_alone_is_asked_for(self):
        self.assertEqual(gpus_found('[ "$*" = "--query-gpu=compute_cap --format=csv,noheader" ] '
                                    '&& echo 9.0\n'), ((9, 0),))

    def test_a_gpu_that_does_not_say_it_may_be_any(self):
        self.assertEqual(gpus_found("echo '[N/A]'\n"), (machine.UNKNOWN,))

    def test_without_nvidia_smi_or_its_driver_there_is_none(self):
        self.assertEqual(gpus_found(), ())
        self.assertEqual(gpus_found("echo 'no driver'\nexit 9\n"), ())
        self.assertEqual(gpus_found(""), ())
