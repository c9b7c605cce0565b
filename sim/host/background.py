"""Work done beside the simulation: the golden model has the second core while the simulator has the first."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Result = TypeVar("Result")


class Background(Generic[Result]):
    """A function that runs in a thread of its own from now on.

    Behaviour
    ---------
    `result` waits for it and gives what it gave, or raises what it raised.  An interrupted program does not
    wait for it.
    """

    def __init__(self, work: Callable[[], Result]) -> None:
        self._work = work
        self._results: list[Result] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._results.append(self._work())
        except BaseException as error:
            self._error = error

    def result(self) -> Result:
        """Give the function's result."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._results[0]
