"""The delays of ``delays.yaml``, and the delay of a net by its driver, its sink and its number of loads."""

import enum
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from pydantic import BaseModel, ConfigDict, TypeAdapter

from hw.edge import read_document, validate

FILE = Path(__file__).with_name("delays.yaml")

#: Classes of a net's driver, and of its sinks.
Driver = enum.IntEnum(
    "Driver", "FF LUT MUX SUM CARRY LUT_MEMORY BLOCK_RAM ULTRA_RAM DSP CLOCKED_DSP PORT", start=0
)
Sink = enum.IntEnum(
    "Sink",
    "LUT MUX PROPAGATE GENERATE CARRY FF CONTROL LUT_MEMORY BLOCK_RAM ULTRA_RAM DSP CLOCKED_DSP",
    start=0,
)

_Cell = Literal[
    "lut", "wide_mux", "carry_first_bit", "carry_bit", "carry_through", "carry_sum", "carry_exit",
    "ff_clock_to_out", "ff_setup", "ff_control_setup", "lut_memory_clock_to_out", "lut_memory_setup",
    "block_ram_clock_to_out", "block_ram_register_clock_to_out", "block_ram_setup", "ultra_ram_clock_to_out",
    "ultra_ram_register_clock_to_out", "ultra_ram_setup", "dsp", "dsp_register_in", "dsp_register_out",
    "dsp_register_clock_to_out", "dsp_setup",
]  # fmt: skip
_Net = Literal[
    "lut_to_ff", "lut_to_carry", "lut_to_mux", "carry_to_ff", "fabric_to_ff", "routed", "routed_spread",
    "routed_deviation", "long_wire",
]  # fmt: skip
#: Picoseconds by name; comments in ``delays.yaml`` explain each.
Delays = Mapping[_Cell | _Net, float]


class _SourcedDelay(BaseModel):
    model_config = ConfigDict(extra="ignore")  # unknown keys are found by `validate`
    value: float
    source: str


class _DelaysForm(BaseModel):
    model_config = ConfigDict(extra="ignore")
    cells: dict[_Cell, _SourcedDelay]
    nets: dict[_Net, _SourcedDelay]
    observed: dict[str, list[tuple[int, float]]]
    sources: dict[str, str]


def load_delays(path: Path = FILE) -> Delays:
    """Read the delays; `InputError` for a missing or unknown name, or a source missing from the table."""
    document = read_document(path)
    form = validate(document, TypeAdapter(_DelaysForm))
    for group, entries, kind in (("cells", form.cells, _Cell), ("nets", form.nets, _Net)):
        for name in get_args(kind):
            if name not in entries:
                raise document.error((group,), f"a table with {name}", value="missing")
            if entries[name].source not in form.sources:
                legal = "a key of sources: " + ", ".join(form.sources)
                raise document.error((group, name, "source"), legal, value=entries[name].source)
    return {name: entry.value for name, entry in [*form.cells.items(), *form.nets.items()]}


def net_delays(delays: Delays, drivers: Any, sinks: Any, loads: Any, apart: Any = False) -> Any:
    """Return the delay of nets in ps, each from its driver to one of its sinks; arrays of equal shape.

    A net inside a slice has the slice's delay: from a LUT to its carry bit or wide multiplexer, and from a
    LUT or sum to its only flip-flop.  A flip-flop that is the only load of a RAM or DSP output becomes its
    output register.  One that drives only a DSP becomes its input register.  Every other net, and one whose
    ends lie ``apart``, is routed; its delay grows with the area of its loads.
    """
    drivers, sinks, loads = np.asarray(drivers), np.asarray(sinks), np.asarray(loads)
    delay = delays["routed"] + delays["routed_spread"] * np.sqrt(loads)
    delay = delay + np.where(sinks == Sink.FF, delays["fabric_to_ff"], 0.0)
    # A carry bit's propagate always passes a LUT of its slice.
    delay = delay + np.where((sinks == Sink.PROPAGATE) & (drivers != Driver.LUT), delays["lut"], 0.0)
    delay = delay + np.where(drivers == Driver.CARRY, delays["carry_exit"], 0.0)
    near = ~np.broadcast_to(apart, delay.shape)
    delay[near & (drivers == Driver.LUT) & (sinks == Sink.PROPAGATE)] = delays["lut_to_carry"]
    delay[near & (drivers == Driver.CARRY) & (sinks == Sink.CARRY)] = 0.0
    for driver, sink, within in (
        (Driver.LUT, Sink.GENERATE, delays["lut_to_carry"]),
        (Driver.LUT, Sink.FF, delays["lut_to_ff"]),
        (Driver.LUT, Sink.MUX, delays["lut_to_mux"]),
        (Driver.MUX, Sink.MUX, delays["lut_to_mux"]),
        (Driver.MUX, Sink.FF, 0.0),
        (Driver.CARRY, Sink.FF, delays["carry_to_ff"]),
        (Driver.SUM, Sink.FF, delays["carry_to_ff"]),
        (Driver.BLOCK_RAM, Sink.FF, 0.0),
        (Driver.ULTRA_RAM, Sink.FF, 0.0),
        (Driver.DSP, Sink.FF, delays["dsp_register_out"]),
        (Driver.FF, Sink.DSP, delays["dsp_register_in"] - delays["ff_clock_to_out"]),
    ):
        delay[near & (drivers == driver) & (sinks == sink) & (loads == 1)] = within
    return delay
