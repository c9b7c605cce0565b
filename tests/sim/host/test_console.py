"""Tables on the terminal."""

import pytest
from rich.console import Console

from sim.host import console


@pytest.mark.parametrize("width", [40, 60, 80])
def test_numbers_of_a_table_are_never_broken(width, monkeypatch, capsys):
    monkeypatch.setattr(console, "console", lambda: Console(width=width))
    rows = [("cycles_total", "12,345,678", "a sentence of several words " * 3), ("x", "1", "y")]
    console.print_table("Title", ("figure", "value", "what it is of"), rows)
    lines = capsys.readouterr().out.splitlines()
    assert any("12,345,678" in line and "cycles_total" in line for line in lines)
    assert max(map(len, lines)) <= max(width, 60)
    assert " ".join(" ".join(lines).split()).count("several") == 3
