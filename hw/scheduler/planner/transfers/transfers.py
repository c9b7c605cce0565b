"""The last stage of a plan: episodes, streams and their transfers, with steps and addresses.

Residency and addresses are decided before.  This stage decides the first step and the deadline of each
transfer, the order of the two queues, and each tensor's DRAM address.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hw.scheduler.graph.graph import Operator
from hw.scheduler.plan.array import compute_cycles
from hw.scheduler.plan.plan import Direction, Episode, GroupFifo, Stream, Transfer
from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.address.blocks import AddressBlock
from hw.scheduler.planner.residency.stays import Residency, steps_of
from hw.scheduler.planner.transfers.hiding import LATENCY_CYCLES, Hiding, Move, queue_key


class Movements(NamedTuple):
    """The fields of a `Plan` that `make_transfers` decides.

    Transfers are all reads in their queue's order, then all writes in theirs.
    """

    episodes: tuple[Episode, ...]
    streams: tuple[Stream, ...]
    fifos: tuple[GroupFifo, ...]
    transfers: tuple[Transfer, ...]
    homes: Mapping[str, int]
    memory_bytes: int


def blocks_of(problem: Problem, order: Sequence[int], residency: Residency) -> list[AddressBlock]:
    """Return the blocks to be placed, in words: stays, then streams, then buffers of pipelined groups."""
    spans = [(stay.first_step, stay.last_step, problem.size[stay.tensor]) for stay in residency.stays]
    spans += [
        (stream.step, stream.step, problem.window(order[stream.step], stream.tensor))
        for stream in residency.streams
    ]
    buffers = [problem.fifo[operator] for operator in order]
    spans += [(step, step, words) for step, words in enumerate(buffers) if words]
    return [AddressBlock(first=first, last=last, size=size) for first, last, size in spans]


def least_step_cycles(problem: Problem, order: Sequence[int], macs_per_cycle: int) -> tuple[int, ...]:
    """Return the cycles of each step once its operands have arrived: its arithmetic, or a word a cycle.

    The members of a pipelined group overlap, each from the first word of the member before.
    """
    return tuple(
        max(_word_cycles(problem, index), compute_cycles(problem.graph.operators[index], macs_per_cycle))
        for index in order
    )


def _word_cycles(problem: Problem, index: int) -> int:
    """Return the cycles to move an operator's words: one of its inputs and one of its outputs a cycle."""
    operator = problem.graph.operators[index]
    inner = {tensor.name: problem.words(tensor.size_bytes) for tensor in operator.inner}
    tensors = (*problem.inputs[index], *problem.outputs[index])
    words = inner | {problem.graph.tensors[tensor].name: problem.size[tensor] for tensor in tensors}
    cycles = 0
    for member in operator.chain:
        own = sum(words[name] for name in member.inputs if name not in inner)
        handed_on = sum(words[name] for name in member.inputs if name in inner)
        # A member takes one input after the other: its own, before or after those from the member before.
        cycles = max(own + max(cycles, handed_on), sum(words[name] for name in member.outputs))
    return cycles


def make_transfers(
    problem: Problem,
    order: Sequence[int],
    residency: Residency,
    addresses: Sequence[int],
    *,
    step_cycles: Sequence[int] | None = None,
    latency_cycles: int = LATENCY_CYCLES,
) -> Movements:
    """Decide steps, queues and DRAM addresses of all transfers.

    ``addresses``: in words, of `blocks_of` in their order. ``step_cycles``: cycles of each step once its
    operands have arrived. With them, fetches start early and writes end late where that shortens the plan;
    addresses, words, peak and number of transfers stay. Without them, every transfer keeps the steps of the
    residency. ``latency_cycles``: as for `hw.scheduler.planner.transfers.hiding.simulate`.
    """
    blocks = blocks_of(problem, order, residency)
    owners = [stay.tensor for stay in residency.stays] + [stream.tensor for stream in residency.streams]
    moves = latest_moves(problem, order, residency)
    if step_cycles is not None:
        owners_or_none = [*owners, *[-1] * (len(blocks) - len(owners))]
        moves = Hiding(moves, blocks, addresses, owners_or_none, step_cycles, latency_cycles).run()
    tensors, word = problem.graph.tensors, problem.word_bytes
    names, stays = [tensors[tensor].name for tensor in owners], len(residency.stays)
    first, last = [block.first for block in blocks], [block.last for block in blocks]
    for move in moves:
        if move.reads and not move.streams:
            first[move.block] = move.start
        elif not move.streams:
            last[move.block] = move.deadline - 1
    homes, end = {}, 0
    for tensor in sorted({owners[move.block] for move in moves}):
        homes[tensors[tensor].name] = end
        end += problem.size[tensor] * word

    def transfer(move: Move) -> Transfer:
        return Transfer(
            tensor=names[move.block],
            direction=Direction.READ if move.reads else Direction.WRITE,
            episode=None if move.streams else move.block,
            stream=move.block - stays if move.streams else None,
            size_bytes=problem.size[owners[move.block]] * word,
            dram_address=homes[names[move.block]],
            scratchpad_address=addresses[move.block] * word,
            start_step=move.start,
            deadline_step=move.deadline,
        )

    queued = sorted(moves, key=queue_key)
    rows = [(low * word, block.size * word) for low, block in zip(addresses, blocks, strict=True)]
    return Movements(
        episodes=tuple(
            Episode(
                tensor=name,
                address=rows[block][0],
                size_bytes=rows[block][1],
                first_step=first[block],
                last_step=last[block],
            )
            for block, name in enumerate(names[:stays])
        ),
        streams=tuple(
            Stream(
                tensor=names[block],
                direction=stream.direction,
                step=stream.step,
                address=rows[block][0],
                window_bytes=rows[block][1],
            )
            for block, stream in enumerate(residency.streams, stays)
        ),
        fifos=tuple(
            GroupFifo(step=block.first, address=low, size_bytes=size)
            for block, (low, size) in zip(blocks[len(names) :], rows[len(names) :], strict=True)
        ),
        transfers=tuple(transfer(move) for reads in (True, False) for move in queued if move.reads is reads),
        homes=homes,
        memory_bytes=end,
    )


def latest_moves(problem: Problem, order: Sequence[int], residency: Residency) -> list[Move]:
    """Return all transfers at their latest start and earliest deadline, streams in the order of use.

    A move's block is the index of its stay, or the number of stays plus the index of its stream.
    """
    steps = steps_of(problem, order)
    made = [steps[writer] if writer >= 0 else -1 for writer in problem.producer]
    stays, streams = residency.stays, residency.streams
    read_again = {stream.tensor for stream in streams if stream.direction is Direction.READ}
    read_again |= {stay.tensor for stay in stays if stay.first_step != made[stay.tensor]}
    moves: list[Move] = []
    for block, stay in enumerate(stays):
        reads = stay.first_step != made[stay.tensor]
        if not reads and not problem.written[stay.tensor] and stay.tensor not in read_again:
            continue
        start, deadline = (stay.first_step,) * 2 if reads else (stay.first_step, stay.last_step + 1)
        moves.append(Move(problem.size[stay.tensor], start, deadline, reads, False, block))
    ranks = {step: _ranks(problem, order[step]) for step in {stream.step for stream in streams}}
    listed = sorted(
        enumerate(streams, len(stays)), key=lambda each: (each[1].step, ranks[each[1].step][each[1].tensor])
    )
    for block, stream in listed:
        reads = stream.direction is Direction.READ
        moves.append(Move(problem.size[stream.tensor], stream.step, stream.step + 1, reads, True, block))
    return moves


def _ranks(problem: Problem, index: int) -> dict[int, int]:
    """Return the order in which an operator reads and writes its tensors."""
    operator = problem.graph.operators[index]
    names = {problem.graph.tensors[tensor].name: tensor for tensor in problem.inputs[index]}
    sequence = [names[name] for name in reading_order(operator)] + list(problem.outputs[index])
    return {tensor: rank for rank, tensor in enumerate(sequence)}


def reading_order(operator: Operator) -> tuple[str, ...]:
    """Return the inputs of an operator in the order it reads them.

    An operator reads one input after the other, as listed.  In a pipelined group a member's inputs listed
    before its buffer come ahead of the inputs of the member before, the others after them.
    """
    sequence: list[str] = []
    made: set[str] = set()
    for member in operator.chain:
        shared = [place for place, name in enumerate(member.inputs) if name in made]
        first = shared[0] if shared else 0
        sequence = [
            *member.inputs[:first],
            *sequence,
            *(name for name in member.inputs[first:] if name not in made),
        ]
        made.update(member.outputs)
    return tuple(sequence)
