"""From a plan to the program of the sequencer: names become rows of tables, bytes become words.

Nothing is decided here but what the plan leaves open: where in the area of a pipelined group each buffer
lies, and, when several members of a group read streams, that a member takes what the one before makes first,
as the gates ask (`hw.scheduler.program.program.Program`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from hw.errors import InputError
from hw.scheduler.graph.graph import Operator, Tensor
from hw.scheduler.graph.groups import buffer_bytes
from hw.scheduler.plan.plan import Direction, Episode, Fifo, Plan, Stream, Transfer
from hw.scheduler.program.dataflow import Call, Dataflow, Item
from hw.scheduler.program.program import (
    OPERATOR_BITS,
    CoreWord,
    OperandWord,
    Program,
    StepWord,
    TransferWord,
    Via,
)


def lower(plan: Plan) -> Program:
    """Turn a plan into a program; a pipelined group takes a core a member.

    Raises
    ------
    InputError
        When the plan does not say where an operand is, needs more cores or more operators than there can be,
        or is one that the gates would wait for forever.
    """
    lowering = _Lowering(plan)
    count = len(lowering.operators)
    if count > 2**OPERATOR_BITS:
        raise InputError("operators of the plan", count, f"at most {2**OPERATOR_BITS}")
    steps: list[StepWord] = []
    operands: list[OperandWord] = []
    calls: list[Call] = []
    for number in range(len(plan.steps)):
        members = lowering.members(number)
        words = []
        for member in members:
            words.append(
                CoreWord(
                    operator=lowering.operators[member.operator.name],
                    first_operand=len(operands),
                    inputs=len(member.inputs),
                    outputs=len(member.outputs),
                    compute_cycles=plan.steps[number].compute_cycles,
                )
            )
            operands += [word for _, word in (*member.inputs, *member.outputs)]
            calls.append(
                Call(
                    operator=words[-1].operator,
                    inputs=tuple(lowering.items[name] for name, _ in member.inputs),
                    outputs=tuple(lowering.items[name] for name, _ in member.outputs),
                )
            )
        steps.append(StepWord(cores=tuple(words)))
    reads, wait_reads = lowering.queue(Direction.READ)
    writes, wait_writes = lowering.queue(Direction.WRITE)
    return Program(
        word_bytes=plan.word_bytes,
        steps=tuple(
            replace(step, wait_reads=read, wait_writes=write)
            for step, read, write in zip(steps, wait_reads, wait_writes, strict=True)
        ),
        operands=tuple(operands),
        reads=reads,
        writes=writes,
        dataflow=Dataflow(items=lowering.all_items(), calls=tuple(calls), name=plan.graph.name),
    )


#: An operand of a member: the tensor's name, and where it is.
_Operand = tuple[str, OperandWord]


@dataclass(frozen=True, kw_only=True)
class _Member:
    """An operator on its core, with its operands in the order it takes them."""

    operator: Operator
    inputs: list[_Operand]
    outputs: list[_Operand]


class _Lowering:
    """Looks things of a plan up; sizes and addresses come out in words."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        graph = plan.graph
        self._by_name = {operator.name: operator for operator in graph.operators}
        plain = [member for operator in graph.operators for member in operator.chain]
        inner = [tensor for operator in graph.operators for tensor in operator.inner]
        self._tensors: dict[str, Tensor] = {tensor.name: tensor for tensor in (*graph.tensors, *inner)}
        #: Numbers of plain operators and of tensors.
        self.operators = {operator.name: number for number, operator in enumerate(plain)}
        self.items = {name: number for number, name in enumerate(self._tensors)}
        self._episodes: dict[str, list[Episode]] = {}
        for episode in plan.episodes:
            self._episodes.setdefault(episode.tensor, []).append(episode)
        self._streams: dict[tuple[int, str], Stream] = {
            (stream.step, stream.tensor): stream for stream in plan.streams
        }
        self._fifos: dict[int, Fifo] = {fifo.step: fifo for fifo in plan.fifos}

    def all_items(self) -> tuple[Item, ...]:
        """Give every tensor, those inside of groups last."""
        return tuple(
            Item(
                name=tensor.name,
                size_bytes=tensor.size_bytes,
                kind=tensor.kind,
                dram_address=self._words(self._plan.homes[tensor.name])
                if tensor.name in self._plan.homes
                else None,
            )
            for tensor in self._tensors.values()
        )

    def _words(self, number: int) -> int:
        words, rest = divmod(number, self._plan.word_bytes)
        if rest:
            raise InputError("address of the plan", number, f"a multiple of {self._plan.word_bytes}")
        return words

    def _size(self, name: str) -> int:
        return -(-self._tensors[name].size_bytes // self._plan.word_bytes)

    @cached_property
    def _all_members(self) -> list[list[_Member]]:
        return [self._lower_step(number) for number in range(len(self._plan.steps))]

    def members(self, number: int) -> list[_Member]:
        """Give who works in a step, core by core."""
        return self._all_members[number]

    def _lower_step(self, number: int) -> list[_Member]:
        name = self._plan.steps[number].operator
        if name not in self._by_name:
            raise InputError(f"operator of step {number}", name, "one of the graph")
        operator = self._by_name[name]
        between = self._buffers(number, operator)
        members = [
            _Member(
                operator=member,
                inputs=[(name, between.get(name) or self._operand(number, name)) for name in member.inputs],
                outputs=[(name, between.get(name) or self._operand(number, name)) for name in member.outputs],
            )
            for member in operator.chain
        ]
        streaming = False
        for member in members:
            ways = [word.via for _, word in member.inputs]
            if streaming and Via.MEMORY in ways:
                member.inputs.sort(key=lambda operand: operand[1].via is not Via.FIFO)
            streaming = streaming or Via.MEMORY in ways
        return members

    def _buffers(self, number: int, operator: Operator) -> dict[str, OperandWord]:
        """Lay the buffers of a group one behind the other."""
        if not operator.members:
            return {}
        if number not in self._fifos:
            raise InputError(f"buffers of step {number}", "missing", "given: the step executes a group")
        address, found = self._words(self._fifos[number].address), {}
        end = address + self._words(self._fifos[number].size_bytes)
        for name, size in buffer_bytes(operator, self._plan.word_bytes).items():
            ring = self._words(size)
            found[name] = OperandWord(address=address, words=self._size(name), via=Via.FIFO, ring=ring)
            address += ring
        if address > end:
            raise InputError(f"buffers of step {number}", end, f"at least up to word {address}")
        return found

    def _operand(self, number: int, name: str) -> OperandWord:
        stream = self._streams.get((number, name))
        if stream is not None:
            return OperandWord(
                address=self._words(stream.address),
                words=self._size(name),
                via=Via.MEMORY,
                ring=self._words(stream.window_bytes),
            )
        for episode in self._episodes.get(name, ()):
            if episode.first_step <= number <= episode.last_step:
                return OperandWord(address=self._words(episode.address), words=self._size(name))
        raise InputError(f"tensor {name!r} in step {number}", "nowhere", "in an episode or a stream")

    def queue(self, direction: Direction) -> tuple[tuple[TransferWord, ...], list[int]]:
        """Give the transfers of one engine, and how many of them each step waits for."""
        listed = [transfer for transfer in self._plan.transfers if transfer.direction is direction]
        words = [self._transfer(transfer) for transfer in listed]
        self._sort_streams(listed, words)
        waits, count = [0] * (len(self._plan.steps) + 1), 0
        for count, transfer in enumerate(listed, 1):
            if not 0 <= transfer.deadline_step <= len(self._plan.steps):
                raise InputError(
                    f"deadline_step of {transfer.tensor!r}",
                    transfer.deadline_step,
                    f"from 0 to {len(self._plan.steps)}",
                )
            waits[transfer.deadline_step] = max(waits[transfer.deadline_step], count)
        for step in range(1, len(waits)):
            waits[step] = max(waits[step], waits[step - 1])
        return tuple(words), waits[:-1]

    def _transfer(self, transfer: Transfer) -> TransferWord:
        ring = core = 0
        if transfer.stream is not None:
            stream = self._plan.streams[transfer.stream]
            ring = self._words(stream.window_bytes)
            core = next(
                number
                for number, member in enumerate(self.members(stream.step))
                if stream.tensor in (*member.operator.inputs, *member.operator.outputs)
            )
        return TransferWord(
            dram_address=self._words(transfer.dram_address),
            address=self._words(transfer.scratchpad_address),
            words=self._words(transfer.size_bytes),
            start_step=transfer.start_step,
            ring=ring,
            core=core,
        )

    def _sort_streams(self, listed: list[Transfer], words: list[TransferWord]) -> None:
        """Put the streams of a step in the order in which the cores of a group take them."""
        places: dict[int, list[int]] = {}
        for index, word in enumerate(words):
            if word.ring:
                places.setdefault(word.start_step, []).append(index)
        for step, indices in places.items():
            members = self.members(step)
            rank = {
                name: (core, number)
                for core, member in enumerate(members)
                for number, (name, _) in enumerate((*member.inputs, *member.outputs))
            }
            ordered = sorted(indices, key=lambda index: rank[listed[index].tensor])
            chosen = [(listed[index], words[index]) for index in ordered]
            for index, (transfer, word) in zip(indices, chosen, strict=True):
                listed[index], words[index] = transfer, word
