"""The delays of ``delays.yaml``, and what a net takes by its driver, its sink and its number of loads."""

from __future__ import annotations

import enum
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, TypeAdapter

from hw.edge import read_document, validate

FILE = Path(__file__).with_name("delays.yaml")


class Driver(enum.IntEnum):
    """What drives a net."""

    FF = 0
    LUT = 1
    MUX = 2
    SUM = 3
    CARRY = 4
    LUT_MEMORY = 5
    BLOCK_RAM = 6
    ULTRA_RAM = 7
    DSP = 8
    PORT = 9


class Sink(enum.IntEnum):
    """What a net drives."""

    LUT = 0
    MUX = 1
    PROPAGATE = 2
    GENERATE = 3
    CARRY = 4
    FF = 5
    CONTROL = 6
    LUT_MEMORY = 7
    BLOCK_RAM = 8
    ULTRA_RAM = 9
    DSP = 10
    PORT = 11


class _Form(BaseModel):
    model_config = ConfigDict(extra="ignore")  # unknown keys are found by `validate`


class _Sourced(_Form):
    value: float
    source: str


class _DelaysForm(_Form):
    cells: dict[str, _Sourced]
    nets: dict[str, _Sourced]
    observed: dict[str, list[tuple[int, float]]]
    sources: dict[str, str]


_DELAYS = TypeAdapter(_DelaysForm)


@dataclass(frozen=True, kw_only=True)
class Delays:
    """Delays of cells and nets in picoseconds; the comments of ``delays.yaml`` say what each is."""

    lut: float
    wide_mux: float
    carry_first_bit: float
    carry_bit: float
    carry_through: float
    carry_sum: float
    carry_exit: float
    ff_clock_to_out: float
    ff_setup: float
    ff_control_setup: float
    lut_memory_clock_to_out: float
    lut_memory_setup: float
    block_ram_clock_to_out: float
    block_ram_register_clock_to_out: float
    block_ram_setup: float
    ultra_ram_clock_to_out: float
    ultra_ram_register_clock_to_out: float
    ultra_ram_setup: float
    dsp: float
    dsp_register_in: float
    dsp_register_out: float
    dsp_register_clock_to_out: float
    lut_to_ff: float
    lut_to_carry: float
    lut_to_mux: float
    carry_to_ff: float
    fabric_to_ff: float
    routed: float
    routed_spread: float

    def net(self, drivers: Any, sinks: Any, loads: Any) -> Any:
        """Give the delay of nets, each from its driver to one of its sinks.

        Parameters
        ----------
        drivers, sinks, loads
            Arrays of equal shape: `Driver`, `Sink`, and pins the net drives.

        Behaviour
        ---------
        What the packer puts into one slice takes the delay inside of the slice: a LUT before its carry bit or
        wide multiplexer, and a LUT or sum before the one flip-flop it drives.  A flip-flop that is the only
        load of a RAM or DSP output becomes its output register, and one that drives only a DSP its input
        register.  Every other net is routed and pays for the area its loads fill.
        """
        drivers, sinks, loads = np.asarray(drivers), np.asarray(sinks), np.asarray(loads)
        alone = loads == 1
        delay = self.routed + self.routed_spread * np.sqrt(loads)
        delay = delay + np.where(sinks == Sink.FF, self.fabric_to_ff, 0.0)
        # A carry bit's propagate comes through a LUT of its slice in any case.
        delay = delay + np.where((sinks == Sink.PROPAGATE) & (drivers != Driver.LUT), self.lut, 0.0)
        delay = delay + np.where(drivers == Driver.CARRY, self.carry_exit, 0.0)
        slices = [
            ((drivers == Driver.LUT) & (sinks == Sink.PROPAGATE), self.lut_to_carry),
            ((drivers == Driver.LUT) & (sinks == Sink.GENERATE) & alone, self.lut_to_carry),
            ((drivers == Driver.CARRY) & (sinks == Sink.CARRY), 0.0),
            ((drivers == Driver.CARRY) & (sinks == Sink.FF) & alone, self.carry_to_ff),
            ((drivers == Driver.SUM) & (sinks == Sink.FF) & alone, self.carry_to_ff),
            ((drivers == Driver.LUT) & (sinks == Sink.FF) & alone, self.lut_to_ff),
            ((drivers == Driver.LUT) & (sinks == Sink.MUX) & alone, self.lut_to_mux),
            ((drivers == Driver.MUX) & (sinks == Sink.MUX) & alone, self.lut_to_mux),
            ((drivers == Driver.MUX) & (sinks == Sink.FF) & alone, 0.0),
            ((drivers == Driver.BLOCK_RAM) & (sinks == Sink.FF) & alone, 0.0),
            ((drivers == Driver.ULTRA_RAM) & (sinks == Sink.FF) & alone, 0.0),
            ((drivers == Driver.DSP) & (sinks == Sink.FF) & alone, self.dsp_register_out),
            (
                (drivers == Driver.FF) & (sinks == Sink.DSP) & alone,
                self.dsp_register_in - self.ff_clock_to_out,
            ),
        ]
        return np.select([where for where, _ in slices], [value for _, value in slices], delay)


def load_delays(path: Path = FILE) -> Delays:
    """Read the delays.

    Raises
    ------
    InputError
        For a key that is missing or unknown, or a source that is not in the table.
    """
    document = read_document(path)
    form = validate(document, _DELAYS)
    values: dict[str, float] = {}
    for group, entries in (("cells", form.cells), ("nets", form.nets)):
        for name, entry in entries.items():
            if entry.source not in form.sources:
                legal = "a key of sources: " + ", ".join(form.sources)
                raise document.error((group, name, "source"), legal, value=entry.source)
            values[name] = entry.value
    wanted = [field.name for field in fields(Delays)]
    for name in wanted:
        if name not in values:
            raise document.error(("cells",), f"a table with {name}", value="missing")
    for name in values:
        if name not in wanted:
            group = "cells" if name in form.cells else "nets"
            raise document.error((group, name), "a delay of " + ", ".join(wanted))
    return Delays(**values)


def observed_nets(path: Path = FILE) -> list[tuple[int, float]]:
    """Give loads and delay of the routed nets that ``routed`` and ``routed_spread`` are fitted to."""
    form = validate(read_document(path), _DELAYS)
    return [net for nets in form.observed.values() for net in nets]
