"""What each operator of a compiled network costs, and what bounds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hw.board import Board
from hw.network.commands import MatrixCommand
from hw.network.config import NetworkConfig
from hw.network.graph.network import Convolution, Network
from hw.network.matrix.timing import COMMAND_CYCLES, steps_of_blocks, sweep_cycles
from hw.network.program.program import NetworkProgram, Step
from hw.network.vector.timing import cycles

Bound = Literal["array", "weights", "vector unit"]

#: Share of a command's cycles from which its pixels bound it.
_ARRAY_SHARE = 0.9


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Cycles of one command, or of an operator's commands one after the other."""

    commands: int
    cycles: int  #: Without waits for transfers and the sequencer.
    slots: int  #: Cycles in which the array has a pixel.
    weight_bytes: int  #: Read from memory, once for each block of pixels.
    bound: Bound  #: Of most of the cycles.


@dataclass(frozen=True, kw_only=True)
class OperatorCost(Cost):
    """The cost of an operator."""

    name: str
    kind: str  #: ``copy`` for one that the network does not have.
    macs: int


def operator_costs(
    network: Network, program: NetworkProgram, config: NetworkConfig, board: Board
) -> list[OperatorCost]:
    """Return the cost of each operator that has commands of its own, in order of execution."""
    operators = {operator.name: operator for operator in network.operators}
    steps: dict[str, list[Step]] = {}
    for step in program.steps:
        steps.setdefault(step.operator, []).append(step)
    found = []
    for name, some in steps.items():
        costs = [_cost(step, program, config, board) for step in some]
        operator = operators.get(name)
        macs = 0
        if isinstance(operator, Convolution):
            height, width, _ = network.values[operator.output].shape
            macs = height * width * operator.macs_of_pixel
        found.append(
            OperatorCost(
                name=name,
                kind=operator.kind if operator is not None else "copy",
                macs=macs,
                commands=len(costs),
                cycles=sum(cost.cycles for cost in costs),
                slots=sum(cost.slots for cost in costs),
                weight_bytes=sum(cost.weight_bytes for cost in costs),
                bound=max(costs, key=lambda cost: cost.cycles).bound,
            )
        )
    return found


def _cost(step: Step, program: NetworkProgram, config: NetworkConfig, board: Board) -> Cost:
    command = step.command
    if not isinstance(command, MatrixCommand):
        taken = cycles(config.vector, command)
        return Cost(commands=1, cycles=taken, slots=0, weight_bytes=0, bound="vector unit")
    blocks = steps_of_blocks(command)
    slots = command.column_tiles * command.taps * sum(blocks)
    weight_bytes = len(blocks) * program.passes[command.weights].nbytes
    arrival = weight_bytes / weight_bytes_per_cycle(config, board)
    taken = max(sweep_cycles(command, config.matrix), int(arrival)) + COMMAND_CYCLES
    bound: Bound = "array" if slots >= _ARRAY_SHARE * (taken - COMMAND_CYCLES) else "weights"
    return Cost(commands=1, cycles=taken, slots=slots, weight_bytes=weight_bytes, bound=bound)


def weight_bytes_per_cycle(config: NetworkConfig, board: Board) -> float:
    """Return the bytes of weights that arrive in a cycle, by the ports' widths and the memory's channels."""
    ports, channels = config.weight_ports, min(config.weight_ports, board.memory.channels)
    return min(ports * config.port_bytes, channels * board.channel_bytes_per_cycle)
