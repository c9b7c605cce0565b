"""Log and report of a launch that never was: commands when the model predicts them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hw.board import Board
from hw.network.commands import Core
from hw.network.config import NetworkConfig
from hw.network.kernel.signals import signals
from hw.network.model.overlap import overlap
from hw.network.predict import predict
from hw.network.program.program import NetworkProgram
from sim.report.report import Report
from tests.support.pages.reports import arguments, synthetic

#: Cycles of the simulation before the launch's start.
BEFORE = 100


def write_log(path: Path, program: NetworkProgram, config: NetworkConfig, board: Board) -> int:
    """Write the log, and return the launch's cycles.

    Units work from a command's first read to its last word; a core's commands end in cycles of their own.
    Words come in before the first command, and go out after the last one.
    """
    played = overlap(program, config, board)
    names = [*signals(config)]
    bits = np.zeros((played.cycles + 2, len(names)), bool)

    def high(name: str, begin: int, end: int) -> None:
        bits[begin:end, names.index(name)] = True

    for core in Core:
        own = [span for span in played.spans if span.step.core is core]
        taken = ended = 0
        for span in own:
            taken, ended = max(span.begin, taken + 1), max(span.end, ended + 1)
            prefix = core.name.lower()
            high(f"{prefix}_takes", taken, taken + 1)
            high(f"{prefix}_works", taken, ended)
            high(f"{prefix}_ends", ended, ended + 1)
    first, last = (pick(each.begin for each in played.spans) for pick in (min, max))
    for name, begin, end in (
        ("gmem0_R", 10, first),
        ("gmem1_R", first, last),
        ("gmem0_W", last + 1, played.cycles),
    ):
        high(name, begin, end)
        high(f"{name}_ready", begin, end)
    high("launch_done", played.cycles, played.cycles + 1)
    lines = bits @ (1 << np.arange(len(names)))
    changes = np.flatnonzero(np.diff(lines, prepend=0))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{BEFORE + n} {lines[n]}\n" for n in changes))
    return played.cycles


def launch_report(
    job: Any, config: NetworkConfig, board: Board, cycles: int, *, bit_exact: bool = True
) -> Report:
    """Return the report of a job's launch in so many cycles, with the bytes of its prediction."""
    given, prediction = arguments(), predict(job.program, config, board)
    ports = config.weight_ports
    counters = {
        "cycles_total": cycles,
        "cycles_busy": cycles - 5000,
        "cycles_stall_load": 5000,
        "cycles_idle": 0,
        "gmem0_read_bytes": prediction.read_bytes["program"] + prediction.read_bytes["tensors"],
        "gmem0_write_bytes": prediction.write_bytes["tensors"],
        **{f"gmem{1 + n}_read_bytes": prediction.read_bytes["weights"] // ports for n in range(ports)},
    }
    memory = [
        row
        | {f"bus_{way}_bytes": counters.get(f"gmem{n}_{way}_bytes", 0) for way in ("read", "write")}
        | {"ports": {f"gmem{n}": {}} if n <= ports else {}}
        for n, row in enumerate(given["memory"])
    ]
    simulation = given["simulation"] | {"cycles_start_to_done": cycles + 2, "cycles_simulated": cycles + 400}
    changed = {"counters": counters, "prediction": prediction, "memory": memory, "simulation": simulation}
    return synthetic(**changed, engine="network", bit_exact=bit_exact)
