"""Simulators built ahead by a process of its own, so that no core waits while others run."""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from hw.board import Board
from hw.registry import find_engine
from sim.build.design import kernel_design
from sim.host.process import Terminated, undone_when_terminated
from sim.run.launch import build_kernel


@contextlib.contextmanager
def built_ahead(board: Board) -> Iterator[Callable[[str, Any], None]]:
    """Return a function that has the simulator of an engine built, by its name and configuration, while the
    ``with`` block goes on; one is built after the other.

    Nothing is shown: who wants one that is being built waits for it (`sim.build.cache`), and who wants one
    that does not build finds that out again.
    """
    builder = subprocess.Popen(
        [sys.executable, "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    given = builder.stdin
    assert given is not None

    def build(engine: str, config: Any) -> None:
        with contextlib.suppress(BrokenPipeError):
            given.write(pickle.dumps((engine, config, board)))
            given.flush()

    try:
        with undone_when_terminated():
            yield build
    finally:
        builder.terminate()
        builder.communicate()


def _main() -> None:
    wanted: queue.SimpleQueue[tuple[str, Any, Board]] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=[wanted], daemon=True).start()
    with contextlib.suppress(Terminated), undone_when_terminated():
        while True:
            name, config, board = wanted.get()
            build_kernel(kernel_design(find_engine(name), config, board))


def _listen(wanted: queue.SimpleQueue[tuple[str, Any, Board]]) -> None:
    """Pass on what is asked for, and end this program when whoever asks has ended, however it did."""
    with contextlib.suppress(EOFError):
        while True:
            wanted.put(pickle.load(sys.stdin.buffer))
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    _main()
