"""Text of files on the terminal: shown as it is, and never obeyed."""

import dataclasses

from sim.host.console import print_table
from sim.host.plain import plain
from sim.report.figures import summary
from tests.support.pages.reports import synthetic

CLEARS = "HiGHS\x1b[2J\nnothing is claimed"


def test_what_prints_stays():
    assert plain("Netz für größere 画像 (2 µs)") == "Netz für größere 画像 (2 µs)"


def test_what_steers_is_shown():
    assert plain(CLEARS) == r"HiGHS\x1b[2J\nnothing is claimed"
    assert plain("a\u202eb\x9bc\udcff") == r"a\u202eb\x9bc\udcff"


def test_tables_show_it(capsys):
    print_table(CLEARS, ("",), [(CLEARS,)])
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert shown.count(plain(CLEARS)) == 2
    named = summary([dataclasses.replace(synthetic(), label=CLEARS)]).columns[1].header
    assert str(named) == plain(CLEARS)
