"""Work done beside the simulation: the golden model runs on the second core of the machine meanwhile."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

Result = TypeVar("Result")


def in_background(work: Callable[[], Result]) -> Future[Result]:
    """Run a function in a thread of its own from now on; an interrupted program does not wait for it."""
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future
