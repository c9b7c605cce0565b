"""Simulators built ahead in a process of their own, while another simulation runs."""

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
from hw.child import module_path, python_command
from hw.registry import find_engine
from sim.build.design import simulated_design
from sim.host.process import Terminated, undone_when_terminated
from sim.run.launch import build_kernel


@contextlib.contextmanager
def built_ahead(board: Board) -> Iterator[Callable[[str, Any], None]]:
    """Return a function that orders the simulator of an engine by name and configuration.  Simulators are
    built one after another until the ``with`` block ends.

    Nothing is printed.  A later build waits for one under way (`sim.build.cache`), and fails as it did.
    """
    builder = subprocess.Popen(
        python_command(["-m", __name__]),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env=os.environ | {"PYTHONPATH": module_path()},
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
            build_kernel(simulated_design(find_engine(name), config, board))


def _listen(wanted: queue.SimpleQueue[tuple[str, Any, Board]]) -> None:
    """Pass orders on; end this program when the ordering process has ended."""
    with contextlib.suppress(EOFError):
        while True:
            wanted.put(pickle.load(sys.stdin.buffer))
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    _main()
