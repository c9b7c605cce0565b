"""Coefficients: each has a source and a range; a file that is wrong is one error with its place."""

import pytest

from hw.energy.coefficients import FILE, WIDEST, load_coefficients, read_coefficients, sourced
from hw.energy.span import Span
from hw.errors import InputError


def test_every_coefficient_has_a_range_a_source_and_a_confidence():
    found = sourced()
    assert len(found) > 25
    for each in found:
        assert each.span.high <= WIDEST * each.span.low
        assert len(each.source) > 30, each.name
    assert {each.name for each in found if each.confidence == "fitted"} == {"fitted.scale", "fitted.toggles"}


def test_estimates_say_so():
    assert all(
        "stimate" in each.source or each.name.startswith("ultrascale_plus")
        for each in sourced()
        if each.confidence == "estimate"
    )


def test_parts_of_a_cell_add_up_to_the_published_site():
    """AMD's watts of a site at 500 MHz: those of a slice of 16 flip-flops, and of RAMs with both ports."""
    found = load_coefficients()
    for cell, milliwatts, cells, words in (
        ("ff", 1.39158, 16, 1),
        ("dsp", 10.96698, 1, 1),
        ("bram36", 48.27586, 1, 2),
        ("uram", 63.94737, 1, 2),
    ):
        each = found.part(cell, "clock").value + words * (
            found.part(cell, "access").value + found.part(cell, "data").value
        )
        assert cells * each * 500e-3 == pytest.approx(1000 * milliwatts / 1000, rel=2e-3), cell


def changed(tmp_path, old, new):
    text = FILE.read_text()
    assert text.count(old) == 1, old
    path = tmp_path / "coefficients.yaml"
    path.write_text(text.replace(old, new))
    return path


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("source: fgdram,", "source: folklore,", "memories.hbm2.activate.source must be a key of sources"),
        ("{value: 900,", "{value: 90,", "memories.hbm2.activate.value must be from low, 700, to high, 1250"),
        ("low: 700, high: 1250", "low: 700, high: 1450", "activate.high must be at most 2 times low, 700"),
        ("low: 700,", "low: -700,", "memories.hbm2.activate.value must be from low"),
        ("{value: 900,", "{value: much,", "memories.hbm2.activate.value must be a number, not 'much'"),
        ("confidence: fitted}\n  # Share", "confidence: sure}\n  # Share", "fitted.scale.confidence must be"),
        ("  leakage: {", "  leak: {", "ultrascale_plus"),
        ("    standby:  {value: 0.066", "    stand:  {value: 0.066", "memories.hbm2.stand"),
        ("{value: 0.922, low: 0.8, high: 1.1,", "{value: 0, low: 0, high: 0,", "fitted.scale.low must be "),
        ("low: 0.148, high: 0.27", "low: 0.148, high: .nan", "value must be a finite number, not '.nan'"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_one_error_with_its_place(tmp_path, old, new, complaint):
    with pytest.raises(InputError) as caught:
        read_coefficients(changed(tmp_path, old, new))
    assert complaint in str(caught.value)
    assert "coefficients.yaml:" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_memory_that_is_missing_is_named(tmp_path):
    text = FILE.read_text()
    start, end = text.index("  lpddr4:\n"), text.index("  # The link to the host")
    path = tmp_path / "coefficients.yaml"
    path.write_text(text[:start] + text[end:])
    with pytest.raises(InputError, match=r"memories must be a table with lpddr4\.activate, not 'missing'"):
        read_coefficients(path)


def test_spans_refuse_figures_outside_of_their_range():
    with pytest.raises(InputError, match=r"value must be from low, 2, to high, 3"):
        Span(1.0, 2.0, 3.0)
    assert Span(2.0, 1.0, 3.0).holds(1.0)
    assert not Span(2.0, 1.0, 3.0).holds(3.1)
