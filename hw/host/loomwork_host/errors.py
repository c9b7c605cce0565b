"""What a program may catch: every exception of the library is a `HostError`."""

from __future__ import annotations

from typing import Any, Mapping


class HostError(Exception):
    """Any error of this library."""


class InputError(HostError, ValueError):
    """A value of the caller, or of a file, is out of its legal range.

    ``field``: name of the value. ``legal``: the legal range, completing "must be ...". ``value``: found.

    >>> str(InputError("shape of q", (2, 8), "(4, 8)"))
    'shape of q must be (4, 8), not (2, 8)'
    """

    def __init__(self, field: str, value: Any, legal: str) -> None:
        self.field, self.value, self.legal = field, value, legal
        super().__init__(f"{field} must be {legal}, not {value!r}")


class CardError(HostError):
    """The card, its library, its image or the kernel in it is missing, or refuses."""


class BusyError(HostError):
    """The kernel has a launch whose end nobody has waited for."""


class LateError(HostError, TimeoutError):
    """A launch did not end within the time; it may be waited for again."""


class FailedError(HostError):
    """XRT ended a launch without the kernel's end; ``state`` is XRT's."""

    def __init__(self, message: str, state: str) -> None:
        self.state = state
        super().__init__(message)


class FaultError(HostError):
    """The kernel ended a launch with an error: ``status`` is not 0, and there are no results.

    ``counters``: all of the launch by name.
    """

    def __init__(self, message: str, counters: Mapping[str, int]) -> None:
        self.status, self.counters = counters["status"], dict(counters)
        super().__init__(message)
