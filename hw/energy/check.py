"""Print the fits and the checks of the energy coefficients: ``python -m hw.energy.check``."""

from collections.abc import Iterator

from hw.energy.coefficients import load_coefficients
from hw.energy.published import fitted, load_designs


def table() -> Iterator[str]:
    """Yield the lines of a table in Markdown, and of the fitted values."""
    coefficients, designs = load_coefficients(), load_designs()
    yield "| design | use | published, W | predicted, W | of it idle, W | range, W | error | within |"
    yield "|---|---|---|---|---|---|---|---|"
    for design in designs:
        found = design.predicted(coefficients)
        use = f"fits {design.fits}" if design.fits else "check"
        error = f"{100 * (found.value / design.watts - 1):+.1f} %"
        within = "yes" if found.holds(design.watts) else "NO"
        spread = f"{found.low:.1f} to {found.high:.1f}"
        cells = (
            design.title,
            use,
            f"{design.watts:g}",
            f"{found.value:.1f}",
            f"{design.idle.value:g}",
            spread,
            error,
            within,
        )
        yield f"| {' | '.join(cells)} |"
    values = ", ".join(f"{name} {value:.3f}" for name, value in fitted(designs, coefficients).items())
    yield f"Fitted: {values}"


if __name__ == "__main__":
    for line in table():
        print(line)
