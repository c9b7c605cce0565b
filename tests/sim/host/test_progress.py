"""Progress lines in a log, and on a terminal."""

import io
import time

import pytest

from sim.host import progress
from sim.host.progress import ProgressLine


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(progress, "_FIRST_SECONDS", 0.05)
    monkeypatch.setattr(progress, "_NEXT_SECONDS", 0.05)


def wait(stream, count):
    ends = time.monotonic() + 10
    while stream.getvalue().count("\n") < count:
        assert time.monotonic() < ends
        time.sleep(0.01)


def test_work_that_says_nothing_is_not_silent():
    stream = io.StringIO()
    with ProgressLine("Working", stream):
        wait(stream, 2)
    assert stream.getvalue().splitlines()[0] == "Working (0 s)"


def test_the_last_detail_is_told():
    stream = io.StringIO()
    with ProgressLine("Working", stream) as activity:
        activity.update("1 of 2")
        activity.update("2 of 2")
        wait(stream, 1)
    assert stream.getvalue().splitlines()[0] == "Working: 2 of 2 (0 s)"


def test_what_is_over_at_once_says_nothing(monkeypatch):
    monkeypatch.setattr(progress, "_FIRST_SECONDS", 2.0)
    stream = io.StringIO()
    with ProgressLine("Working", stream) as activity:
        activity.update("done")
    assert stream.getvalue() == ""


def test_an_activity_within_another_takes_its_place():
    stream, inner = io.StringIO(), io.StringIO()
    with ProgressLine("Comparing", stream):
        with ProgressLine("Simulating", inner):
            before = stream.getvalue()
            wait(inner, 3)
            assert stream.getvalue().count("\n") <= before.count("\n") + 1
        wait(stream, stream.getvalue().count("\n") + 1)


def test_nothing_is_told_after_the_end():
    stream = io.StringIO()

    def fail():
        with ProgressLine("Working", stream):
            wait(stream, 1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    told = stream.getvalue()
    time.sleep(0.2)
    assert stream.getvalue() == told


def test_a_terminal_has_a_live_line():
    stream = Terminal()
    with ProgressLine("Working", stream) as activity:
        activity.update("half")
        ends = time.monotonic() + 10
        while "Working: half" not in stream.getvalue():
            assert time.monotonic() < ends
            time.sleep(0.01)
