"""Sweeps to test: written as files, and answered without other processes."""

import copy

import yaml

from sim.sweep.executor import Answered
from sim.sweep.task import evaluate

SMALL = {"shape": {"heads": 2, "queries": [40], "keys": [64], "query_size": 32, "value_size": 32}}


def plain(**changes):
    """A sweep of twelve attention engines as plain values, of which six are illegal."""
    return {
        "boards": ["ultra96v2"],
        "engines": {
            "attention": {
                "config": {"folds": 1, "cached_keys": 0, "ports_per_stream": 1},
                "parameters": {
                    "rows": [1, 2, 3],
                    "lanes": [32, 48],
                    "tile_keys": [16, 32],
                    "merge_lanes": {"expression": "lanes // 16"},
                },
                "workloads": {"small": copy.deepcopy(SMALL)},
            }
        },
        "objectives": {"cycles": "min", "dsp": "min"},
        **changes,
    }


def write(path, document):
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return path


class Inline:
    """Answers at once, in this process; ``evaluate`` may be another."""

    slots = 1

    def __init__(self, answer=evaluate):
        self.evaluate = answer
        self.asked = []
        self._found = []

    def submit(self, tasks):
        self.asked += tasks
        self._found.append(Answered(tasks, [self.evaluate(task) for task in tasks]))

    def answered(self, timeout_seconds):
        found, self._found = self._found, []
        return found

    def close(self):
        pass


def essence(results):
    """The reproducible part of results: all but times."""
    timed = ("run_seconds", "build_seconds", "build_cached", "simulated_cycles_per_second", "tool_versions")

    def lasting(document):
        if isinstance(document, dict):
            return {name: lasting(value) for name, value in document.items() if name not in timed}
        return document

    return [
        (
            result.point,
            result.figures,
            result.failure,
            result.on_front,
            {
                (one.fidelity, one.engine, one.workload): (one.figures, one.failure, lasting(one.document))
                for one in result.outcomes
            },
        )
        for result in results.points
    ]
