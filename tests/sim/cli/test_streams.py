"""The command's standard streams where they are full, closed, or have no reader."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("redirected", "status", "said"),
    [
        (">&-", 0, ""),
        (">&- 2>&-", 0, ""),
        ("<&- >/dev/null", 0, ""),
        ("> /dev/full", 2, "loomwork: No space left on device\n"),
        ("| head -c 1 >/dev/null", 0, ""),
    ],
)
def test_streams_that_take_nothing(redirected, status, said):
    line = f'"$0" -c "from sim.cli.main import main; main()" boards u55c {redirected}'
    ended = subprocess.run(["sh", "-c", line, sys.executable], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (status, said)
