"""What each cell of UltraScale+ does to timing: paths through it, out of its clock, and into its clock."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from sim.timing.delays import Delays, Driver, Sink

#: Nets of a pin; None where a bit is constant.
Bits = list[int | None]
Pins = Mapping[str, Bits]


@dataclass(frozen=True)
class Arc:
    """A path through a cell: from an input bit to an output bit, in picoseconds."""

    start: int
    end: int
    delay: float


@dataclass(frozen=True)
class Cell:
    """The timing of one cell.

    Members
    -------
    drives
        What its outputs are, for the nets they drive.
    loads
        Every input bit that is no clock: the net, and what it is to the net.
    arcs
        Paths through it.
    launches
        Output bits that change with the clock: net, delay from the clock edge, and the net that the register
        behind it stores, if it is a flip-flop.
    captures
        Input bits the clock samples: net, what it is to the net, setup, pin.
    """

    drives: Driver
    loads: tuple[tuple[int, Sink], ...]
    arcs: tuple[Arc, ...] = ()
    launches: tuple[tuple[int, float, int | None], ...] = ()
    captures: tuple[tuple[int, Sink, float, str], ...] = ()


_CLOCKS = re.compile(r"C|CLK|WCLK|CLKARDCLK|CLKBWRCLK")
_FLIP_FLOP, _SHIFT = re.compile(r"FD[RSCP]E"), re.compile(r"SRL(C32|16)E")
_LUT, _LUT_RAM = re.compile(r"LUT[1-6]"), re.compile(r"RAM\d+[XM]\d*D?\d*")


def timing_of(kind: str, inputs: Pins, outputs: Pins, delays: Delays) -> Cell | None:
    """Give the timing of a cell, or None when its kind is not known.

    Parameters
    ----------
    kind
        Cell type of Yosys' netlist.
    inputs, outputs
        Nets of its pins.
    """
    makers: list[tuple[re.Pattern[str], Callable[[], Cell]]] = [
        (_LUT, lambda: _through(Driver.LUT, Sink.LUT, inputs, outputs, delays.lut)),
        (
            re.compile(r"MUXF[789]"),
            lambda: _through(Driver.MUX, Sink.MUX, inputs, outputs, delays.wide_mux),
        ),
        (re.compile(r"CARRY[48]"), lambda: _carry(inputs, outputs, delays)),
        (_FLIP_FLOP, lambda: _flip_flop(inputs, outputs, delays)),
        (_SHIFT, lambda: _lut_memory(inputs, outputs, delays)),
        (_LUT_RAM, lambda: _lut_memory(inputs, outputs, delays)),
        (
            re.compile(r"RAMB(18|36)E2"),
            lambda: _ram(
                Driver.BLOCK_RAM,
                Sink.BLOCK_RAM,
                inputs,
                outputs,
                delays.block_ram_clock_to_out,
                delays.block_ram_setup,
            ),
        ),
        (
            re.compile(r"URAM288"),
            lambda: _ram(
                Driver.ULTRA_RAM,
                Sink.ULTRA_RAM,
                inputs,
                outputs,
                delays.ultra_ram_clock_to_out,
                delays.ultra_ram_setup,
            ),
        ),
        (re.compile(r"DSP48E2"), lambda: _through(Driver.DSP, Sink.DSP, inputs, outputs, delays.dsp)),
    ]
    return next((make() for pattern, make in makers if pattern.fullmatch(kind)), None)


def _bits(pins: Pins) -> Iterator[tuple[str, int]]:
    for pin, bits in pins.items():
        if not _CLOCKS.fullmatch(pin):
            yield from ((pin, bit) for bit in bits if bit is not None)


def _through(drives: Driver, sink: Sink, inputs: Pins, outputs: Pins, delay: float) -> Cell:
    """Make a cell without a register: each output follows each input."""
    starts = [bit for _, bit in _bits(inputs)]
    return Cell(
        drives,
        tuple((start, sink) for start in starts),
        arcs=tuple(Arc(start, end, delay) for _, end in _bits(outputs) for start in dict.fromkeys(starts)),
    )


def _carry(inputs: Pins, outputs: Pins, delays: Delays) -> Cell:
    """Make a carry chain: CI and bit i reach the sums and carries of bits from i on."""
    sums, carries = outputs.get("O", []), outputs.get("CO", [])
    loads: list[tuple[int, Sink]] = []
    arcs: list[Arc] = []
    for pin, sink in (("S", Sink.PROPAGATE), ("DI", Sink.GENERATE)):
        for first, start in enumerate(inputs.get(pin, [])):
            if start is None:
                continue
            loads.append((start, sink))
            for bits, least in ((sums, first + (pin == "DI")), (carries, first)):
                for last, end in enumerate(bits):
                    if end is not None and last >= least:
                        steps = last - first
                        arcs.append(Arc(start, end, delays.carry_first_bit + steps * delays.carry_bit))
    for pin, sink in (("CI", Sink.CARRY), ("CYINIT", Sink.GENERATE), ("CI_TOP", Sink.GENERATE)):
        for start in inputs.get(pin, []):
            if start is not None:
                loads.append((start, sink))
                arcs += [Arc(start, end, delays.carry_sum) for end in sums if end is not None]
                arcs += [Arc(start, end, delays.carry_through) for end in carries if end is not None]
    return Cell(Driver.CARRY, tuple(loads), arcs=tuple(arcs))


def _flip_flop(inputs: Pins, outputs: Pins, delays: Delays) -> Cell:
    stored = next((bit for pin, bit in _bits(inputs) if pin == "D"), None)
    pins = [(pin, bit, Sink.FF if pin == "D" else Sink.CONTROL) for pin, bit in _bits(inputs)]
    return Cell(
        Driver.FF,
        tuple((bit, sink) for _, bit, sink in pins),
        launches=tuple((bit, delays.ff_clock_to_out, stored) for _, bit in _bits(outputs)),
        captures=tuple(
            (bit, sink, delays.ff_setup if sink is Sink.FF else delays.ff_control_setup, pin)
            for pin, bit, sink in pins
        ),
    )


def _lut_memory(inputs: Pins, outputs: Pins, delays: Delays) -> Cell:
    """Make a memory or shift register of LUTs: the address reaches the output, a write takes the clock.

    The port of address X reads at output DOX; other addresses (A, DPRA) reach every output.
    """
    write_address = "ADDRH" if "ADDRH" in inputs else "ADDRD"
    arcs, written = [], []
    for pin, start in _bits(inputs):
        read_only = pin.startswith(("ADDR", "DPRA")) and pin != write_address
        if not read_only and not (pin[0] == "A" and "CE" in inputs):  # a shift register writes at no address
            written.append((pin, start))
        if pin.startswith("ADDR"):
            read = [end for out, end in _bits(outputs) if out == "DO" + pin.removeprefix("ADDR")]
        else:
            read = [end for _, end in _bits(outputs)] if pin.startswith(("A", "DPRA")) else []
        arcs += [Arc(start, end, delays.lut) for end in read]
    return Cell(
        Driver.LUT_MEMORY,
        tuple((bit, Sink.LUT_MEMORY) for _, bit in _bits(inputs)),
        arcs=tuple(arcs),
        launches=tuple((bit, delays.lut_memory_clock_to_out, None) for _, bit in _bits(outputs)),
        captures=tuple((bit, Sink.LUT_MEMORY, delays.lut_memory_setup, pin) for pin, bit in written),
    )


def _ram(drives: Driver, sink: Sink, inputs: Pins, outputs: Pins, clock_to_out: float, setup: float) -> Cell:
    pins = list(_bits(inputs))
    return Cell(
        drives,
        tuple((bit, sink) for _, bit in pins),
        launches=tuple((bit, clock_to_out, None) for _, bit in _bits(outputs)),
        captures=tuple((bit, sink, setup, pin) for pin, bit in pins),
    )
