"""Timing of each cell of UltraScale+: paths through it, from its clock, and to its clock."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sim.timing.delays import Delays, Driver, Sink

#: Nets of each pin; None where a bit is constant.
Pins = Mapping[str, list[int | None]]


@dataclass(kw_only=True)
class Cell:
    """The timing of one cell; times in picoseconds."""

    drives: Driver  #: Driver class of its output nets.
    #: Paths: input bit, output bit, delay, sink class of the input pin.
    arcs: list[tuple[int, int, float, Sink]] = field(default_factory=list)
    #: Output bits that change with the clock: net, clock to out, and the net that a flip-flop stores, or -1.
    launches: list[tuple[int, float, int]] = field(default_factory=list)
    #: Input bits that the clock samples: net, setup, sink class, pin.
    captures: list[tuple[int, float, Sink, str]] = field(default_factory=list)


_CLOCKS = re.compile(r"C|CLK|WCLK|CLKARDCLK|CLKBWRCLK")


def timing_of(kind: str, inputs: Pins, outputs: Pins, delays: Delays) -> Cell | None:
    """Return the timing of a cell by its type in Yosys' netlist, or None for an unknown type."""
    if re.fullmatch(r"LUT[1-6]", kind):
        return _through(Driver.LUT, Sink.LUT, inputs, outputs, delays["lut"])
    if re.fullmatch(r"MUXF[789]", kind):
        return _through(Driver.MUX, Sink.MUX, inputs, outputs, delays["wide_mux"])
    if kind == "DSP48E2" and inputs.get("CLK"):
        # Placed by the generator, with all registers; inferred ones have no registers and no clock.
        times = delays["dsp_register_clock_to_out"], delays["dsp_setup"]
        return _ram(Driver.CLOCKED_DSP, Sink.CLOCKED_DSP, inputs, outputs, *times)
    if kind == "DSP48E2":
        return _through(Driver.DSP, Sink.DSP, inputs, outputs, delays["dsp"])
    if re.fullmatch(r"CARRY[48]", kind):
        return _carry(inputs, outputs, delays)
    if re.fullmatch(r"FD[RSCP]E", kind):
        return _flip_flop(inputs, outputs, delays)
    if re.fullmatch(r"SRL(C32|16)E|RAM\d+[XM]\d*[DS]?\d*", kind):
        return _lut_memory(inputs, outputs, delays)
    if re.fullmatch(r"RAMB(18|36)E2", kind):
        times = delays["block_ram_clock_to_out"], delays["block_ram_setup"]
        return _ram(Driver.BLOCK_RAM, Sink.BLOCK_RAM, inputs, outputs, *times)
    if kind == "URAM288":
        times = delays["ultra_ram_clock_to_out"], delays["ultra_ram_setup"]
        return _ram(Driver.ULTRA_RAM, Sink.ULTRA_RAM, inputs, outputs, *times)
    return None


def data_bits(pins: Pins) -> Iterator[tuple[str, int]]:
    """Yield pin and net of each bit that is neither a clock nor constant."""
    for pin, bits in pins.items():
        if not _CLOCKS.fullmatch(pin):
            yield from ((pin, bit) for bit in bits if bit is not None)


def _through(drives: Driver, sink: Sink, inputs: Pins, outputs: Pins, delay: float) -> Cell:
    """Make a cell without a register: each output follows each input."""
    starts = dict.fromkeys(bit for _, bit in data_bits(inputs))
    return Cell(
        drives=drives, arcs=[(start, end, delay, sink) for _, end in data_bits(outputs) for start in starts]
    )


def _carry(inputs: Pins, outputs: Pins, delays: Delays) -> Cell:
    """Make a carry chain: CI and bit i reach the sums and carries of bits from i on."""
    found = Cell(drives=Driver.CARRY)
    for pin, bits in inputs.items():
        sink = {"S": Sink.PROPAGATE, "CI": Sink.CARRY}.get(pin, Sink.GENERATE)
        for first, start in enumerate(bits):
            if start is None:
                continue
            for out, ends in outputs.items():
                chained = delays["carry_sum" if out == "O" else "carry_through"]
                least = first + (pin == "DI" and out == "O")
                for last, end in enumerate(ends):
                    if end is not None and (pin.startswith("C") or last >= least):
                        steps = delays["carry_first_bit"] + (last - first) * delays["carry_bit"]
                        found.arcs.append((start, end, chained if pin.startswith("C") else steps, sink))
    return found


def _flip_flop(inputs: Pins, outputs: Pins, delays: Delays) -> Cell:
    pins = list(data_bits(inputs))
    stored = next((bit for pin, bit in pins if pin == "D"), -1)
    captures = [
        (bit, delays["ff_setup"], Sink.FF, pin)
        if pin == "D"
        else (bit, delays["ff_control_setup"], Sink.CONTROL, pin)
        for pin, bit in pins
    ]
    return Cell(
        drives=Driver.FF,
        launches=[(bit, delays["ff_clock_to_out"], stored) for _, bit in data_bits(outputs)],
        captures=captures,
    )


def _lut_memory(inputs: Pins, outputs: Pins, delays: Delays) -> Cell:
    """Make a memory or shift register of LUTs: reads are combinational, writes are clocked.

    The port of address X reads at output DOX; other addresses (A, DPRA) reach every output.
    """
    write_address = "ADDRH" if "ADDRH" in inputs else "ADDRD"
    times = delays["lut_memory_clock_to_out"], delays["lut_memory_setup"]
    found = _ram(Driver.LUT_MEMORY, Sink.LUT_MEMORY, inputs, outputs, *times)
    found.captures = [
        capture
        for capture in found.captures
        if not (capture[3].startswith(("ADDR", "DPRA")) and capture[3] != write_address)
        and not (capture[3][0] == "A" and "CE" in inputs)  # a shift register writes at no address
    ]
    for pin, start in data_bits(inputs):
        if pin.startswith(("A", "DPRA")):
            read = pin.replace("ADDR", "DO") if pin.startswith("ADDR") else None
            ends = [end for out, end in data_bits(outputs) if read in (None, out)]
            found.arcs += [(start, end, delays["lut"], Sink.LUT_MEMORY) for end in ends]
    return found


def _ram(drives: Driver, sink: Sink, inputs: Pins, outputs: Pins, clock_to_out: float, setup: float) -> Cell:
    pins = list(data_bits(inputs))
    return Cell(
        drives=drives,
        launches=[(bit, clock_to_out, -1) for _, bit in data_bits(outputs)],
        captures=[(bit, setup, sink, pin) for pin, bit in pins],
    )
