"""Packing of rectangles by CP-SAT: a process that answers a line of JSON with another.

One search at a time runs on one thread.  It stops after a counted number of conflicts or amount of work, so
the result does not depend on the machine.  The search places the rectangle with the lowest possible height,
among equals the first of a list (as in MiniMalloc's canonical solutions).  Each attempt has its own list.
"""

import json
import os
import queue
import sys
import threading
import time
from typing import Any

import ortools
from ortools.sat.python import cp_model


def pack(payload: dict[str, Any]) -> dict[str, Any]:
    """Find addresses for blocks.

    ``payload``: ``blocks``: lists of first step, last step, size; ``capacity``; ``attempts``: dicts with
    ``order`` (indices of blocks), ``presolve``, ``conflicts`` and ``work`` (OR-tools' deterministic time);
    ``seconds``: safety net of wall-clock time for all of them.

    Returns ``status``: ``placed``, ``infeasible`` or ``unknown``; ``addresses``; ``version`` of OR-tools;
    ``timed``: whether the safety net ended the search.
    """
    end = time.monotonic() + payload["seconds"]
    found: dict[str, Any] = {"status": "unknown", "addresses": [], "timed": False}
    for attempt in payload["attempts"]:
        left = end - time.monotonic()
        if left <= 0:
            found["timed"] = True
            break
        found |= _attempt(payload["blocks"], payload["capacity"], attempt, left)
        if found["status"] != "unknown":
            break
    return found | {"version": ortools.__version__}


def _attempt(
    blocks: list[list[int]], capacity: int, attempt: dict[str, Any], seconds: float
) -> dict[str, Any]:
    model = cp_model.CpModel()
    addresses, spans, heights = [], [], []
    for first, last, size in blocks:
        address = model.new_int_var(0, capacity - size, "")
        addresses.append(address)
        spans.append(model.new_fixed_size_interval_var(first, last + 1 - first, ""))
        heights.append(model.new_fixed_size_interval_var(address, size, ""))
    model.add_no_overlap_2d(spans, heights)
    model.add_decision_strategy(
        [addresses[index] for index in attempt["order"]],
        cp_model.CHOOSE_LOWEST_MIN,
        cp_model.SELECT_MIN_VALUE,
    )
    solver = cp_model.CpSolver()
    parameters = solver.parameters
    parameters.num_workers = 1
    parameters.random_seed = 0
    parameters.linearization_level = 0
    parameters.cp_model_presolve = attempt["presolve"]
    parameters.max_number_of_conflicts = attempt["conflicts"]
    parameters.max_deterministic_time = attempt["work"]
    parameters.max_time_in_seconds = seconds
    status = solver.solve(model)
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return {"status": "placed", "addresses": [solver.value(address) for address in addresses]}
    if status == cp_model.INFEASIBLE:
        return {"status": "infeasible"}
    if status == cp_model.MODEL_INVALID:
        raise ValueError(model.validate())
    return {"timed": solver.wall_time >= seconds}


def _listen(requests: queue.SimpleQueue[str]) -> None:
    """Pass on requests, and end this program when the requesting process has ended."""
    for line in sys.stdin:
        requests.put(line)
    os._exit(0)


if __name__ == "__main__":
    # Output printed by a library must not be taken for an answer.
    with os.fdopen(os.dup(sys.stdout.fileno()), "w") as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        requests: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=_listen, args=[requests], daemon=True).start()
        while True:
            print(json.dumps(pack(json.loads(requests.get()))), file=answers, flush=True)
