"""Cycles and weight bytes of the operators of a network, by the models of the units that run them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hw.network.attention.config import AttentionUnitConfig
from hw.network.attention.timing import steps as attention_steps
from hw.network.commands import Command, MatrixCommand, VectorCommand
from hw.network.compile.bands import Band
from hw.network.compile.lower import Lowered, Lowering
from hw.network.compile.planning import Cost
from hw.network.compile.steps import Step, Steps
from hw.network.matrix.config import BEAT_BITS, CELL_COLUMNS, MatrixConfig
from hw.network.matrix.timing import COMMAND_CYCLES, beats_of_pass, sweep_cycles
from hw.network.scratchpad.shape import GranuleShape
from hw.network.vector.config import VectorConfig
from hw.network.vector.timing import cycles

#: Cycles of the sequencer for each command.
_SEQUENCER_CYCLES = 3
#: Bits of a column in a beat; any width of ports that divides a beat has the same cycles.
_COLUMN_BITS, _PORT_BITS = BEAT_BITS // CELL_COLUMNS, 64


@dataclass(frozen=True, kw_only=True)
class Units:
    """The units that the cycles are for."""

    columns: int = 64  #: Of the matrix array.
    lanes: int = 64  #: Of the vector unit.
    lines: int = 1  #: Words of each weight port in a beat of packets.


def costs_of(steps: Steps, units: Units) -> Mapping[str, Cost]:
    """Return the cost of each step, by the value that it makes, with all values whole in the scratchpad."""
    found = lower_whole(steps, columns=units.columns).commands
    return {
        step.output: _cost(step, commands, units) for step, commands in zip(steps.steps, found, strict=True)
    }


def lower_whole(steps: Steps, *, columns: int) -> Lowered:
    """Return the commands of all steps without a plan: each value whole at address 0, no weights packed."""
    lowering = Lowering(steps, columns=columns, packs=False)
    for step in steps.steps:
        places = {name: [_whole(steps, name)] for name in step.inputs}
        lowering.add(step, dict(places), _whole(steps, step.output))
    return lowering.lowered()


def _whole(steps: Steps, name: str) -> Band:
    return Band(first=0, last=steps.forms[name].rows, address=0)


def _cost(step: Step, commands: tuple[Command, ...], units: Units) -> Cost:
    beat_bits = units.columns * _COLUMN_BITS
    ports = beat_bits // (_PORT_BITS * units.lines)
    matrix = MatrixConfig(columns=units.columns, port_bits=_PORT_BITS, ports=ports)
    vector = VectorConfig(shape=GranuleShape(), lanes=units.lanes)
    total = weight_bytes = 0
    for command in commands:
        total += _SEQUENCER_CYCLES
        if isinstance(command, MatrixCommand):
            packed = beats_of_pass(command, matrix) * matrix.packet_bits // 8
            total += sweep_cycles(command, matrix) + COMMAND_CYCLES
            weight_bytes += packed
        elif isinstance(command, VectorCommand):
            total += cycles(vector, command)
        else:
            total += attention_steps(AttentionUnitConfig(shape=GranuleShape()), command)
    return Cost(cycles=total, weight_bytes=weight_bytes)
