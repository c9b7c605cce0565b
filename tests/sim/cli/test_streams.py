"""The command's standard streams where they are full, closed, or have no reader."""

import subprocess
import sys
import time

import pytest

from tests.support.command_line import call
from tests.support.processes import told


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
    assert (ended.returncode, told(ended.stderr)) == (status, said)


def test_an_interrupt_while_gates_are_made_is_one_line():
    """Amaranth warns of each gate that nobody used; after an interrupt these are all."""
    program = """
import sys, hw.lib.place, sim.cli.main
def interrupted(*_, **__):
    raise KeyboardInterrupt
hw.lib.place.to_verilog = interrupted
sim.cli.main.main()
"""
    command = [sys.executable, "-c", program, "verilog", "--board", "ultra96v2"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, told(ended.stderr)) == (130, "\nloomwork: interrupted\n")


def test_in_a_log_no_command_is_silent(monkeypatch):
    def slow():
        time.sleep(0.5)
        return []

    monkeypatch.setattr("sim.build.doctor.examine", slow)
    monkeypatch.setattr("sim.host.progress.SILENT_SECONDS", 0.1)
    assert "Working (0 s)\n" in call("doctor").stderr
