"""From a compiled network to a program: commands become steps, bytes of transfers become words.

Steps are barriers: each waits for all before it.  The transfers of a plan's step begin with its first command
and end with its last one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from hw.errors import InputError
from hw.network.attention.config import AttentionUnitConfig
from hw.network.attention.fields import attention_fields
from hw.network.commands import AttentionCommand, Command, MatrixCommand, VectorCommand
from hw.network.compile.compile import Compiled
from hw.network.compile.form import GRANULE, WORD_BYTES
from hw.network.graph.network import Convolution
from hw.network.matrix.config import MatrixConfig
from hw.network.matrix.unit_command import unit_command
from hw.network.program.barriers import finished_before
from hw.network.program.gathers import Gathers
from hw.network.program.parts import in_parts
from hw.network.program.program import Counts, Home, NetworkProgram, Step, Transfer
from hw.network.scratchpad.shape import GranuleShape
from hw.network.vector.config import VectorConfig
from hw.network.vector.fields import Places, vector_fields
from hw.scheduler.plan.plan import Direction
from hw.scheduler.plan.plan import Transfer as PlannedTransfer

#: Tables of a vector unit of the largest configuration.
_LARGEST = {"taps": 4096, "scales": 4096, "tables": 256, "exponentials": 16, "channels": 4096}
#: Tokens of an attention unit of the largest configuration.
_MOST_TOKENS = 4096


def program_of(compiled: Compiled) -> NetworkProgram:
    """Return the program of a compiled network.

    Raises `InputError`, with the operator's name, for a command beyond the limits of every kernel.
    """
    network, plan, lowered = compiled.network, compiled.plan, compiled.lowered
    homes = list(_homes(compiled))
    before = finished_before([command for commands in lowered.commands for command in commands])
    firsts = list(itertools.accumulate((len(commands) for commands in lowered.commands), initial=0))
    starts = [before[first] for first in firsts]
    wait_reads, wait_writes = (_waits(compiled, direction) for direction in (Direction.READ, Direction.WRITE))
    gathers = Gathers(compiled, homes)
    reads = _transfers(compiled, Direction.READ, starts, wait_writes, gathers)
    writes = _transfers(compiled, Direction.WRITE, starts[1:], [0] * len(starts), gathers)
    operators = [work.operator for step in compiled.steps.steps for work in step.works]
    convolutions = {each.name: each for each in operators if isinstance(each, Convolution)}
    steps = tuple(
        Step(
            command=command,
            operator=operator,
            planned=number,
            waits=before[firsts[number] + place],
            wait_reads=wait_reads[number],
            wait_writes=wait_writes[number],
            macs=_macs(convolutions.get(operator), command),
        )
        for number, commands in enumerate(lowered.commands)
        for place, (command, operator) in enumerate(zip(commands, lowered.operators[number], strict=True))
    )
    missing = {*network.outputs} - {home.value.name for home in homes}
    if missing:
        raise InputError("output of the network", min(missing), "a value that an operator makes")
    program = NetworkProgram(
        name=network.name,
        columns=lowered.columns,
        scratchpad_bytes=plan.scratchpad_bytes,
        steps=steps,
        reads=reads,
        writes=writes,
        taps=lowered.taps,
        passes=lowered.passes,
        tables=lowered.tables,
        exponentials=lowered.exponentials,
        norms=lowered.norms,
        inputs=(*(home for home in homes if home.value.name in network.inputs), *gathers.numbers),
        constants=(*(home for home in homes if home.value.name in network.constants), *gathers.tables),
        outputs=tuple(home for home in homes if home.value.name in network.outputs),
        contents={**network.constants, **gathers.contents},
        parameter_bytes=network.weight_bytes + sum(map(_column_bytes, convolutions.values())),
    )
    _check(program)
    if not gathers.rows:
        return program
    (tokens,) = {each.rows for each in gathers.rows.values()}
    return in_parts(program, tokens)


def _column_bytes(convolution: Convolution) -> int:
    """Return the bytes of a convolution's biases and scales, int32 and float32."""
    return 8 * convolution.weights.shape[3]


def _macs(convolution: Convolution | None, command: Command) -> int:
    """Return the multiply-accumulates of a command: its share of the convolution's columns."""
    if convolution is None or not isinstance(command, MatrixCommand):
        return 0
    # Commands that share the columns have whole granules of them.
    granules = -(-convolution.weights.shape[3] * command.bits // (8 * GRANULE))
    pixels = command.rows * command.columns
    return pixels * convolution.macs_of_pixel * command.target.granules // granules


def _listed(compiled: Compiled, direction: Direction) -> list[PlannedTransfer]:
    """Return the transfers of one direction."""
    return [transfer for transfer in compiled.plan.transfers if transfer.direction is direction]


def _waits(compiled: Compiled, direction: Direction) -> list[int]:
    """Return the number of transfers that each step of the plan waits for."""
    counts = [0] * (len(compiled.plan.steps) + 1)
    for count, transfer in enumerate(_listed(compiled, direction), 1):
        counts[transfer.deadline_step] = count
    return list(itertools.accumulate(counts, max))


def _transfers(
    compiled: Compiled, direction: Direction, starts: list[Counts], others: list[int], gathers: Gathers
) -> tuple[Transfer, ...]:
    """Return the transfers of one direction; ``starts`` and ``others`` are those of each step of the plan."""
    return tuple(
        Transfer(
            dram_address=transfer.dram_address // WORD_BYTES,
            address=transfer.scratchpad_address // WORD_BYTES,
            words=transfer.size_bytes // WORD_BYTES,
            starts=starts[transfer.start_step],
            others=others[transfer.start_step],
            gathered=gathers.rows.get(transfer.tensor) if direction is Direction.READ else None,
        )
        for transfer in _listed(compiled, direction)
    )


def _homes(compiled: Compiled) -> Iterator[Home]:
    """Yield the home of each tensor that is ever in memory, bands in the order of rows."""
    reached: dict[str, int] = {}
    for tensor in compiled.plan.graph.tensors:
        name, rows = tensor.origin or tensor.name, tensor.shape[0]
        first = reached.get(name, 0)
        reached[name] = first + rows
        if tensor.name in compiled.plan.homes:
            yield Home(
                value=compiled.steps.values[name],
                form=compiled.steps.forms[name],
                address=compiled.plan.homes[tensor.name],
                first_row=first,
                rows=rows,
            )


def _check(program: NetworkProgram) -> None:
    """Refuse commands that no unit can run."""
    shape = GranuleShape()
    matrix = MatrixConfig(columns=program.columns, ports=max(1, program.columns // 8))
    vector = VectorConfig(shape=shape, **_LARGEST)
    for step in program.steps:
        try:
            _fields(program, step.command, shape, matrix, vector)
        except InputError as error:
            field = f"{error.field} of operator {step.operator!r}"
            raise InputError(field, error.value, error.legal) from None


def _fields(
    program: NetworkProgram,
    command: Command,
    shape: GranuleShape,
    matrix: MatrixConfig,
    vector: VectorConfig,
) -> None:
    """Make the fields of a command."""
    if isinstance(command, AttentionCommand):
        attention_fields(AttentionUnitConfig(shape=shape, tokens=_MOST_TOKENS), command)
    elif isinstance(command, VectorCommand):
        vector_fields(vector, command, Places())
    else:
        taps = program.taps[command.first_tap : command.first_tap + command.taps]
        unit_command(command, taps, shape, matrix)
