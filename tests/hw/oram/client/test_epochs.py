"""Epochs rise, whoever takes them, and whether the file or the clock is lost."""

import subprocess
import sys
import time

import pytest

from hw.oram.client.epochs import EpochFile
from hw.oram.client.errors import EpochError
from tests.support.processes import ROOT


@pytest.fixture
def clock(monkeypatch):
    class Clock:
        now = 1_800_000_000

        def time_ns(self):
            return self.now * 10**9

    clock = Clock()
    monkeypatch.setattr(time, "time_ns", clock.time_ns)
    return clock


def test_epochs_follow_the_clock_or_the_last_one(tmp_path, clock):
    file = EpochFile(tmp_path / "epochs")
    first = file.take()
    assert first == clock.now * 10**6
    assert file.take() == first + 1
    clock.now += 1
    assert file.take() == first + 10**6
    clock.now -= 1000  # set back
    assert file.take() == first + 10**6 + 1
    assert file.take(above=first + 10**7) == first + 10**7 + 1
    clock.now = 0
    assert file.take() == first + 10**7 + 2


def test_a_lost_file_leaves_the_clock(tmp_path, clock):
    file = EpochFile(tmp_path / "epochs")
    first = file.take()
    (tmp_path / "epochs").unlink()
    clock.now += 1
    assert file.take() > first
    (tmp_path / "epochs").write_bytes(b"")
    clock.now = 1000
    with pytest.raises(EpochError, match="has no epoch, and the clock is not set"):
        file.take()


def test_a_damaged_file_is_refused(tmp_path, clock):
    file = EpochFile(tmp_path / "epochs")
    for _ in range(3):
        file.take()
    content = bytearray((tmp_path / "epochs").read_bytes())
    content[22] ^= 1
    (tmp_path / "epochs").write_bytes(content)
    with pytest.raises(EpochError, match="damaged at byte 0"):
        file.take()


def test_processes_never_take_one_epoch(tmp_path):
    program = (
        "import sys; from pathlib import Path; from hw.oram.client.epochs import EpochFile\n"
        "for _ in range(50): print(EpochFile(Path(sys.argv[1])).take())"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "epochs")]
    processes = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    taken = [int(line) for process in processes for line in process.communicate()[0].splitlines()]
    assert len(set(taken)) == len(taken) == 150
