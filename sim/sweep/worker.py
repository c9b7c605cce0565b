"""A process that answers questions of a sweep: pickled tasks on its input, outcomes on its output."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
from pathlib import Path

from sim.host.tree import kill, tree
from sim.sweep.task import evaluate


def main() -> None:
    """Answer until the input ends; when the process that asks is gone, end with all that was started."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who asks says when to end
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)  # what is printed is no answer
        while True:
            try:
                tasks, directory = pickle.load(sys.stdin.buffer)
            except EOFError:
                return
            pickle.dump([evaluate(task, Path(directory)) for task in tasks], answers)
            answers.flush()


def _end_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    own = os.getpid()
    kill([member for member in tree(own) if member.pid != own])
    os._exit(1)


if __name__ == "__main__":
    main()
