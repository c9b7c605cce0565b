"""Waveforms of unit tests: ``WAVES=x.vcd`` in the environment makes every simulation write a file."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

from amaranth.sim import Simulator

VARIABLE = "WAVES"
_NUMBERS = itertools.count(1)


def run(simulator: Simulator) -> None:
    """Run a simulator; with `VARIABLE` set, write ``x.vcd``, then ``x-2.vcd``, ``x-3.vcd`` and so on."""
    if not (asked := os.environ.get(VARIABLE)):
        simulator.run()
        return
    path, number = Path(asked), next(_NUMBERS)
    if number > 1:
        path = path.with_stem(f"{path.stem}-{number}")
    with path.open("w") as file, simulator.write_vcd(file):
        simulator.run()
