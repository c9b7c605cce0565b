"""The bytes of long heads are those that the page has."""

from pathlib import Path

import pytest

from sim.engines.attention.long_heads import TOKENS, table

PAGE = Path(__file__).parents[4] / "docs" / "attention-figures.md"


@pytest.mark.parametrize(
    "lengths", [pytest.param(TOKENS[:1], id="8192"), pytest.param(TOKENS, id="all", marks=pytest.mark.soak)]
)
def test_the_page_has_the_table(lengths):
    assert "\n".join(table(lengths)) in PAGE.read_text()
