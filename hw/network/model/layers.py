"""The steps of a timeline by operator of the network: cycles, work and bytes of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hw.board import Board
from hw.network.commands import Core, MatrixCommand
from hw.network.config import WORD_BYTES, NetworkConfig
from hw.network.matrix.timing import steps_of_blocks
from hw.network.model.overlap import Overlap, Span, overlap
from hw.network.model.timeline import Bound, StepTime, Timeline, timeline
from hw.network.program.barriers import is_barriers
from hw.network.program.program import NetworkProgram, Step

#: The cause of all cycles of a command that overlaps with others: its own unit.
_OWN = {Core.MATRIX: Bound.ARRAY, Core.VECTOR: Bound.VECTOR, Core.ATTENTION: Bound.ATTENTION}


@dataclass(frozen=True, kw_only=True)
class Layer:
    """All steps of one operator."""

    name: str
    steps: int
    begin: int  #: First cycle of its first step.
    cycles: int  #: Of its steps.
    spent: Mapping[Bound, int]  #: These cycles by cause.
    macs: int  #: That its results need.
    weight_bytes: int  #: Of packets read.
    transfer_bytes: int  #: Of tensors that its steps wait for, or that are written after them.

    @property
    def bound(self) -> Bound:
        """The cause of most of its cycles."""
        return max(Bound, key=lambda each: self.spent.get(each, 0))

    @property
    def memory_bytes(self) -> int:
        """Bytes of the memory that it moves."""
        return self.weight_bytes + self.transfer_bytes


def play(program: NetworkProgram, config: NetworkConfig, board: Board) -> Timeline | Overlap:
    """Return the cycles of a launch, of barriers or of commands that overlap."""
    return (timeline if is_barriers(program) else overlap)(program, config, board)


def layers_of(program: NetworkProgram, played: Timeline | Overlap) -> list[Layer]:
    """Return the operators that have steps, in order of their first one.

    Where commands overlap, so do operators: the cycles of each command are those of its own unit.
    """
    moved = _transfer_bytes(program)
    times = played.steps if isinstance(played, Timeline) else tuple(map(_own_time, played.spans))
    found: dict[str, list[tuple[StepTime, int]]] = {}
    for made, size in zip(times, moved, strict=True):
        found.setdefault(made.step.operator, []).append((made, size))
    return [_layer(name, some, program) for name, some in found.items()]


def _own_time(span: Span) -> StepTime:
    """Return a command that overlaps with others, from its first read to its last word."""
    spent = {_OWN[span.step.core]: span.end - span.begin + 1}
    return StepTime(step=span.step, begin=span.begin, end=span.end, spent=spent, first=0)


def weight_bytes(program: NetworkProgram, step: Step) -> int:
    """Return the bytes of packets that a step reads: all of its pass once a block of pixels."""
    if not isinstance(step.command, MatrixCommand):
        return 0
    return len(steps_of_blocks(step.command)) * program.passes[step.command.weights].nbytes


def _layer(name: str, some: Sequence[tuple[StepTime, int]], program: NetworkProgram) -> Layer:
    times = [made for made, _ in some]
    spent = Counter[Bound]()
    for made in times:
        spent.update(made.spent)
    return Layer(
        name=name,
        steps=len(some),
        begin=times[0].begin,
        cycles=sum(made.cycles for made in times),
        spent=spent,
        macs=sum(made.step.macs for made in times),
        weight_bytes=sum(weight_bytes(program, made.step) for made in times),
        transfer_bytes=sum(size for _, size in some),
    )


def _transfer_bytes(program: NetworkProgram) -> list[int]:
    """Return the bytes of reads that each step waits for first, and of writes that begin after it."""
    found = [0] * len(program.steps)
    known = 0
    for number, step in enumerate(program.steps):
        found[number] += sum(each.moved_words for each in program.reads[known : step.wait_reads])
        known = max(known, step.wait_reads)
    for transfer in program.writes:
        found[sum(transfer.starts) - 1] += transfer.words
    return [WORD_BYTES * words for words in found]
