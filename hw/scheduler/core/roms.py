"""A program as ROM rows, and a ROM that is read as a stream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.scheduler.config import SchedulerConfig
from hw.scheduler.core.layouts import MODE_CODE, PATH_OF
from hw.scheduler.program.program import CoreWord, OperandWord, Program, StepWord, TransferWord

Row = Mapping[str, Any]


def step_rows(config: SchedulerConfig) -> list[Row]:
    """Give the rows of the step ROM."""
    program = config.program
    return [_step(program, step, config.cores, step is program.steps[-1]) for step in program.steps]


def _step(program: Program, step: StepWord, cores: int, last: bool) -> Row:
    commands = [_command(program, step, core) for core in step.cores]
    return {
        "wait_writes": step.wait_writes,
        "wait_reads": step.wait_reads,
        "active": 2 ** len(commands) - 1,
        "commands": commands + [{} for _ in range(cores - len(commands))],
        "last": int(last),
    }


def _command(program: Program, step: StepWord, core: CoreWord) -> Row:
    return {
        "operator": core.operator,
        "mode": MODE_CODE[step.mode],
        "inputs": core.inputs,
        "outputs": core.outputs,
        "input_words": sum(operand.words for operand in program.inputs_of(core)),
        "output_words": sum(operand.words for operand in program.outputs_of(core)),
        "compute_cycles": core.compute_cycles,
    }


def operand_rows(program: Program, core: int) -> tuple[list[Row], list[Row]]:
    """Give the rows of one core's two operand ROMs, inputs and outputs, in order of execution."""
    steps = [step.cores[core] for step in program.steps if core < len(step.cores)]
    return (
        [_operand(operand) for word in steps for operand in program.inputs_of(word)],
        [_operand(operand) for word in steps for operand in program.outputs_of(word)],
    )


def _operand(operand: OperandWord) -> Row:
    return {
        "address": operand.address,
        "words": operand.words,
        "ring": operand.ring,
        "tag": PATH_OF[operand.via],
    }


def transfer_rows(transfers: Iterable[TransferWord]) -> list[Row]:
    """Give the rows of a DMA ROM."""
    return [
        {
            "dram": transfer.dram_address,
            "address": transfer.address,
            "words": transfer.words,
            "ring": transfer.ring,
            "core": 1 << transfer.core,
            "start_step": transfer.start_step,
        }
        for transfer in transfers
    ]


class RomStream(wiring.Component):
    """Sends fixed rows, once after every ``start``.

    Parameters
    ----------
    layout
        Of a row.
    rows
        Field values; may be none.

    Members
    -------
    start : In(1)
        One-cycle pulse: begin with the first row, whatever was sent before.
    o : Out(stream.Signature(layout))

    Behaviour
    ---------
    The first row is offered two cycles after ``start``, then one row a cycle.

    Why
    ---
    A static schedule is read from front to back.  So no ROM needs an address from outside, and whoever takes
    the rows runs as far ahead of the others as its own rules let it.
    """

    def __init__(self, layout: data.StructLayout, rows: Sequence[Row]) -> None:
        self._layout = layout
        self._rows = list(rows)
        super().__init__({"start": In(1), "o": Out(stream.Signature(layout))})

    def elaborate(self, platform: object) -> Module:
        """Make the gates."""
        m = Module()
        if not self._rows:
            return m
        depth = max(2, len(self._rows))  # an address has at least one bit
        m.submodules.rom = rom = memory.Memory(
            shape=self._layout, depth=depth, init=self._rows, attrs={"ram_style": "block"}
        )
        read = rom.read_port()
        position = Signal(range(len(self._rows) + 1), init=len(self._rows))
        more = position != len(self._rows)
        advance = ~self.o.valid | self.o.ready
        m.d.comb += [
            read.addr.eq(position),
            read.en.eq(advance & more),
            self.o.payload.eq(read.data),
        ]
        with m.If(advance):
            m.d.sync += self.o.valid.eq(more)
            with m.If(more):
                m.d.sync += position.eq(position + 1)
        with m.If(self.start):
            m.d.sync += [self.o.valid.eq(0), position.eq(0)]
        return m
