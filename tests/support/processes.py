"""Output of a program in a process of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def printed(program, *, hash_seed="1"):
    """Run a Python program with the project importable; return its output."""
    environ = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", program]
    return subprocess.run(command, env=environ, check=True, stdout=subprocess.PIPE).stdout


def running(mark):
    """Return the processes whose environment has ``mark``, as their folders in ``/proc``."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (process / "environ").read_bytes():
                found.append(process)
        except OSError:
            continue  # gone, or somebody else's
    return found


def told(stderr):
    """Return the errors of a command without lines of progress, which a loaded machine makes it write."""
    return re.sub(r"^.* \(\d+ s\)\n", "", stderr, flags=re.MULTILINE)
