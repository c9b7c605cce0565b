"""Numbers as text: counts, ratios and bytes, the same on every page and terminal."""

#: Cell of a table without a figure.
MISSING = "–"


def whole(value: int) -> str:
    """Print a count."""
    return f"{value:,}"


def percent(value: float, *, places: int = 2) -> str:
    """Print a ratio as a percentage."""
    return f"{100 * value:.{places}f} %"


def signed_percent(value: float, *, places: int = 2) -> str:
    """Print a ratio as a percentage with its sign."""
    return f"{100 * value:+.{places}f} %"


def times(value: float, *, places: int = 3) -> str:
    """Print a ratio as a multiple."""
    return f"{value:,.{places}f} x"


def scaled(value: float) -> str:
    """Print a large number with a decimal prefix: ``1.50 M``."""
    for limit, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:.2f} {prefix}"
    return f"{value:.2f}"


def sized(size_bytes: float) -> str:
    """Print bytes with a binary unit: ``982 KiB``, ``1.43 MiB``."""
    value = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024 or unit == "GiB":
            break
        value /= 1024
    return f"{value:,.0f} {unit}" if value == int(value) or value >= 100 else f"{value:.3g} {unit}"
