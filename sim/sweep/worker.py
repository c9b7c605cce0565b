"""A worker of a sweep: pickled tasks on its input, evaluations on its output."""

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
    """Evaluate until the input ends; when the parent is gone, end with all children."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # only the parent ends its workers
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)  # printed text must not reach the pipe of results
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
