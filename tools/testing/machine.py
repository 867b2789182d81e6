"""What the machine has for the part "cuda": nvcc, and which GPUs."""

import os
import re
import subprocess

GPU_SECONDS = 60  # until nvidia-smi has answered
UNKNOWN = (0, 0)  # the capability of a GPU that does not say it
CAPABILITY = re.compile(r"(\d+)\.(\d+)")


def nvcc_found():
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    return os.access(os.path.join(home, "bin", "nvcc"), os.X_OK) or subprocess.run(
        ["bash", "-c", "command -v nvcc"], capture_output=True, check=False).returncode == 0


def capability(text):
    """(9, 0) for "9.0"."""
    found = CAPABILITY.fullmatch(text.strip())
    return (int(found.group(1)), int(found.group(2))) if found else UNKNOWN


def gpus_found():
    """The compute capability of each GPU that is present; none where nvidia-smi is missing or finds
    no driver."""
    try:
        done = subprocess.run(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"],
                              capture_output=True, text=True, check=False, timeout=GPU_SECONDS)
    except OSError:
        return ()
    except subprocess.TimeoutExpired:
        return (UNKNOWN,)
    if done.returncode != 0:
        return ()
    return tuple(capability(line) for line in done.stdout.splitlines() if line.strip())
