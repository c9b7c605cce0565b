"""The errors a user can cause: one line that names the field, the value and the legal range."""

from __future__ import annotations

from typing import Any


class LoomworkError(Exception):
    """Something the user can mend; the command line prints it as one line and exits with status 2."""


class InputError(LoomworkError, ValueError):
    """A field has a value outside its legal range.

    Parameters
    ----------
    field
        The name the user knows the value by (a YAML key, a tensor, an option).
    value
        What was given.
    legal
        The legal range, as a phrase that completes "must be ...".
    where
        File and line, when the value came from a file.
    """

    def __init__(self, field: str, value: Any, legal: str, *, where: str | None = None) -> None:
        self.field = field
        self.value = value
        self.legal = legal
        self.where = where
        place = f"{where}: " if where else ""
        super().__init__(f"{place}{field} must be {legal}, not {value!r}")


class ToolError(LoomworkError):
    """A tool of the machine is missing, too old, or failed; the message says what to do about it."""
