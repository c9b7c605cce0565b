"""Simulators built ahead by a process of its own, so that no core waits while others run."""

from __future__ import annotations

import contextlib
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from hw.board import Board
from hw.registry import find_engine
from sim.build.design import kernel_design
from sim.run.launch import build_kernel


@contextlib.contextmanager
def built_ahead(board: Board, configs: Mapping[str, Any]) -> Iterator[None]:
    """Build the simulators of configurations, by engine, one after the other while the ``with`` block runs.

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
    assert builder.stdin is not None
    try:
        with builder.stdin as given:
            given.write(pickle.dumps((board, dict(configs))))
        yield
    finally:
        builder.terminate()
        builder.wait()


def _main() -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # compilers end as they do by Ctrl-C
    board, configs = pickle.load(sys.stdin.buffer)
    for name, config in configs.items():
        engine = find_engine(name)
        build_kernel(kernel_design(engine, config, board), engine.arguments(config, board), board)


if __name__ == "__main__":
    _main()
