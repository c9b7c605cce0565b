"""Errors caused by users: one line with the field, the legal range and the value."""

from collections.abc import Collection, Iterable
from typing import Any

#: How a legal range begins that lists names.
_ONE_OF = "one of "


class LoomworkError(Exception):
    """An error the user can correct; the command line prints one line and exits with status 2."""


class InputError(LoomworkError, ValueError):
    """A field has a value outside its legal range.

    ``field``: the user's name of the value (a YAML key, a tensor, an option). ``legal``: the legal range, as
    a phrase that completes "must be ...". ``where``: file and line, for a value from a file. ``known``: the
    legal names, where ``legal`` does not list them as "one of a, b". The message ends with the nearest one.

    >>> str(InputError("rows", 3, "a power of two", where="a.yaml:4"))
    'a.yaml:4: rows must be a power of two, not 3'
    """

    def __init__(
        self, field: str, value: Any, legal: str, *, where: str | None = None, known: Iterable[str] = ()
    ) -> None:
        self.field = field
        self.value = value
        self.legal = legal
        self.where = where
        place = f"{where}: " if where else ""
        names = [*known] or (legal.removeprefix(_ONE_OF).split(", ") if legal.startswith(_ONE_OF) else [])
        close = nearest(value, names) if isinstance(value, str) else ""
        hint = f"; did you mean {close!r}?" if close else ""
        super().__init__(f"{place}{field} must be {legal}, not {value!r}{hint}")


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the known name that a name, or the last part of a dotted one, is likely misspelt for; else
    nothing.
    """
    from difflib import get_close_matches

    by_lower = {each.lower(): each for each in known}
    for text in (name, name.rpartition(".")[2]):
        if close := get_close_matches(text.lower(), by_lower, 1):
            return by_lower[close[0]]
    return ""


class ToolError(LoomworkError):
    """A tool of the machine is missing, too old, or failed; the message names the remedy."""


def check_field_types(config: Any) -> None:
    """Raise `InputError` for a field whose default is a bool or an int and whose value is not."""
    for name, field in type(config).__dataclass_fields__.items():
        value, default = getattr(config, name), field.default
        if isinstance(default, bool):
            if not isinstance(value, bool):
                raise InputError(name, value, "true or false")
        elif isinstance(default, int) and (not isinstance(value, int) or isinstance(value, bool)):
            raise InputError(name, value, "a whole number")


def check_range(field: str, value: float, low: float, high: float | None = None) -> None:
    """Raise `InputError` unless ``low <= value <= high``; without ``high`` there is no upper limit.

    >>> check_range("rows", 3, 1, 64)
    """
    if not low <= value or (high is not None and value > high):
        raise InputError(field, value, f"at least {low}" if high is None else f"from {low} to {high}")


def check_whole(field: str, value: Any, low: int, high: int | None = None) -> None:
    """Raise `InputError` unless ``value`` is a whole number in the range, as of `check_range`."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or value < low or (high is not None and value > high):
        legal = f"of at least {low}" if high is None else f"from {low} to {high}"
        raise InputError(field, value, f"a whole number {legal}")


def check_one_of(field: str, value: Any, legal: Collection[Any]) -> None:
    """Raise `InputError` unless ``value`` is among the legal ones, which the message lists."""
    if value not in legal:
        raise InputError(field, value, _ONE_OF + ", ".join(map(str, legal)))


def check_power_of_two(
    field: str, value: Any, low: int = 1, high: int | None = None, *, or_zero: bool = False
) -> None:
    """Raise `InputError` unless ``value`` is a power of two from ``low`` to ``high``, or an allowed 0."""
    power = isinstance(value, int) and low <= value and value & (value - 1) == 0
    if not (or_zero and value == 0) and not (power and (high is None or value <= high)):
        limits = f" from {low} to {high}" if high is not None else f" of at least {low}" if low > 1 else ""
        raise InputError(field, value, f"{'0 or ' if or_zero else ''}a power of two{limits}")
