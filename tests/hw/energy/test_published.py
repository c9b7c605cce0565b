"""Published power: two designs fit two coefficients, others check them, and none does both."""

import subprocess
import sys
from pathlib import Path

import pytest

from hw.energy.coefficients import load_coefficients
from hw.energy.published import FILE, fitted, load_designs
from hw.errors import InputError

PAGE = Path(__file__).parents[3] / "docs" / "energy.md"
DESIGNS = {design.name: design for design in load_designs()}
FITS = {name for name, design in DESIGNS.items() if design.fits}
CHECKS = DESIGNS.keys() - FITS


def test_two_fit_and_at_least_three_others_check():
    assert len(FITS) == 2
    assert len(CHECKS) >= 3
    assert {DESIGNS[name].fits for name in FITS} == {"scale", "toggles"}


def test_no_design_is_fitted_and_checked():
    """Designs are told apart by their power, cells and clock: no second name for one of them."""
    for fit in FITS:
        for check in CHECKS:
            one, other = DESIGNS[fit], DESIGNS[check]
            assert one.cells != other.cells
            assert one.watts != other.watts


def test_fitted_coefficients_are_those_of_the_fits():
    known = load_coefficients()
    found = fitted(DESIGNS.values(), known)
    assert known.scale.value == pytest.approx(found["scale"], rel=0.01)
    assert known.toggles.value == pytest.approx(found["toggles"], rel=0.01)


def test_the_page_has_the_scale_that_is_printed_and_the_shares_of_the_file():
    """The file's scale is the fit's, rounded as `python -m hw.energy.check` prints it."""
    page, known = PAGE.read_text(), load_coefficients()
    assert f"{known.scale.value:.3f}" == f"{fitted(DESIGNS.values(), known)['scale']:.3f}"
    assert f"| scale of all cells | {known.scale.value:.3f} |" in page
    for cell, part, decimals in (
        ("dsp", "clock", "{:.1f} pJ a cycle | {:.2f} to {:.1f} |"),
        ("ff", "clock", "{:.3f} pJ a cycle | {:.3f} to {:.3f} |"),
    ):
        span = known.part(cell, part)
        assert f"| its clock | {decimals.format(span.value, span.low, span.high)}" in page
    for title, part, unit in (
        ("its access, whatever the bits", "access", "pJ"),
        ("block RAM, UltraRAM, clock", "clock", "pJ a cycle"),
    ):
        block, ultra = (known.part(cell, part) for cell in ("bram36", "uram"))
        values = f"{block.value:.1f} pJ, {ultra.value:.1f} {unit}"
        ranges = f"{block.low:.1f} to {block.high:.1f}, {ultra.low:.1f} to {ultra.high:.1f}"
        assert f"| {title} | {values} | {ranges} | estimate |" in page


def test_checks_do_not_move_the_fit():
    only = [design for design in DESIGNS.values() if design.fits]
    assert fitted(only, load_coefficients()) == fitted(DESIGNS.values(), load_coefficients())


@pytest.mark.parametrize("name", sorted(CHECKS))
def test_published_power_is_within_the_range(name):
    design = DESIGNS[name]
    found = design.predicted(load_coefficients())
    assert found.holds(design.watts), (found, design.watts)
    assert found.high <= 2 * found.low


@pytest.mark.parametrize("name", sorted(DESIGNS))
def test_a_design_of_thrice_the_power_would_be_seen(name):
    design = DESIGNS[name]
    found = design.predicted(load_coefficients())
    assert not found.holds(3 * design.watts)
    assert not found.holds(design.watts / 3)


def test_the_table_is_printed():
    printed = subprocess.run(
        [sys.executable, "-m", "hw.energy.check"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert len(printed) == 2 + len(DESIGNS) + 1
    assert all("| yes |" in line for line in printed[2:-1])
    assert set(printed[:-1]) <= set(PAGE.read_text().splitlines())


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("    coefficient: scale\n", "", "designs.xbtest_u55c.use must be fit with a coefficient"),
        (
            "    source: u50lv\n",
            "    source: hearsay\n",
            "designs.xbtest_u50lv.source must be a key of sources",
        ),
        ("    watts: 32.49\n", "", "designs.ubimoe_u280.watts must be"),
        ("    watts: 32.49\n", "    watts: 32.49\n    colour: red\n", "designs.ubimoe_u280.colour"),
        ("    cells: {lut: 316100,", "    cells: {", "designs.ubimoe_u280.cells.lut must be"),
    ],
)
def test_a_wrong_file_is_one_error_with_its_place(tmp_path, old, new, complaint):
    text = FILE.read_text()
    assert text.count(old) == 1
    path = tmp_path / "published.yaml"
    path.write_text(text.replace(old, new))
    with pytest.raises(InputError) as caught:
        load_designs(path)
    assert complaint in str(caught.value)
    assert "published.yaml:" in str(caught.value)
