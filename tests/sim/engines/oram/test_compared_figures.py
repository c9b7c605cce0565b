"""Tables of docs/oram.md under "Compared": every figure is computed again."""

import re
from pathlib import Path

import pytest

from hw.board import load_board
from hw.oram.config import OramConfig
from sim.compare.table import cells, titles
from sim.engines.oram.compare.compare import BOLT, COLUMNS, LAUNCH, METHODS, OramFigures, figures_of, variant

PAGE = Path(__file__).parents[4] / "docs" / "oram.md"
FIRST = METHODS[0]


@pytest.fixture(scope="module")
def section() -> str:
    return PAGE.read_text().split("\n## Compared\n")[1]


def figures(method: str, log_n: int) -> OramFigures:
    return figures_of(variant(OramConfig(), method, log_n, 8), load_board("u55c"), method)


def shown(method: str, log_n: int) -> dict[str, str]:
    return dict(zip(titles(COLUMNS), cells(COLUMNS, figures(method, log_n)), strict=True))


def table(section: str, first: str) -> tuple[list[str], list[list[str]]]:
    """Return titles and lines of the table whose first column is named so."""
    (text,) = re.findall(rf"^\| {first} \|(?:.*\n)+?(?=\n)", section, re.MULTILINE)
    head, _, *lines = ([word.strip() for word in line.strip("|").split("|")] for line in text.splitlines())
    return head, lines


def test_maps_of_2_20_keys(section):
    assert "`loomwork compare oram --log-n 20 --values 8`" in section
    head, lines = table(section, "map")
    expected = [shown(method, 20) for method in METHODS]
    assert lines == [[found[title] for title in head] for found in expected]


def test_larger_maps(section):
    assert "`loomwork compare oram --log-n 22,24,26 --values 8`" in section
    head, lines = table(section, "keys")
    assert head == ["keys", "cycles", "M ops/s", "BOLT's", "host memory", "HBM", "BOLT's"]
    expected = []
    for log_n in (22, 24, 26):
        ours, bolt = shown(FIRST, log_n), shown(BOLT, log_n)
        assert ours["host memory"] == bolt["host memory"]
        rates = [ours["M ops/s"], bolt["M ops/s"]]
        expected.append([ours["keys"], ours["cycles"], *rates, ours["host memory"], ours["HBM"], bolt["HBM"]])
    assert lines == expected


def test_the_launch_and_the_rate_in_words(section):
    assert f"{LAUNCH.operations:,} operations, with rings of {LAUNCH.ring_slots:,} slots" in section
    assert f"{figures(FIRST, 20).operations_per_second / 1e6:.1f} M operations a second predicted" in section
