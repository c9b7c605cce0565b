"""Lowers a plan to a program of the sequencer: names become table rows, bytes become words.

The only decision left to it is the order of the buffers within a group's area.
"""

import itertools

from hw.scheduler.graph.graph import Operator, Tensor
from hw.scheduler.graph.groups import buffer_bytes
from hw.scheduler.plan.plan import Direction, Episode, Plan, Transfer
from hw.scheduler.program.dataflow import Dataflow, OperatorCall
from hw.scheduler.program.program import CoreWord, OperandWord, SchedulerProgram, StepWord, TransferWord, Via


def lower(plan: Plan) -> SchedulerProgram:
    """Lower a plan that `hw.scheduler.check` accepts; a pipelined group uses a core a member.

    Raises InputError when it needs more cores, operators or operands than a program can have.
    """
    lowering = _Lowering(plan)
    reads, wait_reads = lowering.queue(Direction.READ)
    writes, wait_writes = lowering.queue(Direction.WRITE)
    return SchedulerProgram(
        word_bytes=plan.word_bytes,
        steps=tuple(
            StepWord(cores=tuple(core for core, _ in members), wait_reads=read, wait_writes=write)
            for members, read, write in zip(lowering.members, wait_reads, wait_writes, strict=True)
        ),
        reads=reads,
        writes=writes,
        dataflow=Dataflow(
            tensors=tuple(lowering.tensors.values()),
            calls=tuple(call for members in lowering.members for _, call in members),
            homes={name: lowering.words(address) for name, address in plan.homes.items()},
            name=plan.graph.name,
        ),
    )


class _Lowering:
    """Looks up operands and transfers of a plan; returns sizes and addresses in words."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        graph = plan.graph
        self._by_name = {operator.name: operator for operator in graph.operators}
        plain = [member for operator in graph.operators for member in operator.chain]
        inner = [tensor for operator in graph.operators for tensor in operator.inner]
        #: All tensors; those inside of groups are last.
        self.tensors: dict[str, Tensor] = {tensor.name: tensor for tensor in (*graph.tensors, *inner)}
        self._index = {name: number for number, name in enumerate(self.tensors)}
        #: Numbers of plain operators.
        self._operators = {operator.name: number for number, operator in enumerate(plain)}
        self._episodes: dict[str, list[Episode]] = {}
        for episode in plan.episodes:
            self._episodes.setdefault(episode.tensor, []).append(episode)
        self._streams = {(stream.step, stream.tensor): stream for stream in plan.streams}
        self._fifos = {fifo.step: fifo for fifo in plan.fifos}
        #: For each step and core: the row the core executes, and the operator call it performs.
        self.members = [self._lower_step(number) for number in range(len(plan.steps))]

    def words(self, number: int) -> int:
        """Return an address or a size in words."""
        return number // self._plan.word_bytes

    def _size(self, name: str) -> int:
        return -(-self.tensors[name].size_bytes // self._plan.word_bytes)

    def _lower_step(self, number: int) -> list[tuple[CoreWord, OperatorCall]]:
        step = self._plan.steps[number]
        group = self._by_name[step.operator]
        between = self._buffers(number, group)
        found = []
        for operator in group.chain:
            inputs, outputs = (
                {name: between.get(name) or self._operand(number, name) for name in names}
                for names in (operator.inputs, operator.outputs)
            )
            core = CoreWord(
                operator=self._operators[operator.name],
                inputs=tuple(inputs.values()),
                outputs=tuple(outputs.values()),
                compute_cycles=step.compute_cycles,
            )
            call = OperatorCall(
                operator=core.operator,
                inputs=tuple(self._index[name] for name in inputs),
                outputs=tuple(self._index[name] for name in outputs),
            )
            found.append((core, call))
        return found

    def _buffers(self, number: int, operator: Operator) -> dict[str, OperandWord]:
        """Place the buffers of a group one after the other."""
        if not operator.members:
            return {}
        address, found = self.words(self._fifos[number].address), {}
        for name, size in buffer_bytes(operator, self._plan.word_bytes).items():
            ring = self.words(size)
            found[name] = OperandWord(address=address, words=self._size(name), via=Via.FIFO, ring=ring)
            address += ring
        return found

    def _operand(self, number: int, name: str) -> OperandWord:
        stream = self._streams.get((number, name))
        if stream is not None:
            return OperandWord(
                address=self.words(stream.address),
                words=self._size(name),
                via=Via.MEMORY,
                ring=self.words(stream.window_bytes),
            )
        (episode,) = (each for each in self._episodes[name] if each.first_step <= number <= each.last_step)
        return OperandWord(address=self.words(episode.address), words=self._size(name))

    def queue(self, direction: Direction) -> tuple[tuple[TransferWord, ...], list[int]]:
        """Return the transfers of one engine, and the number of them each step waits for."""
        listed = [transfer for transfer in self._plan.transfers if transfer.direction is direction]
        counts = [0] * (len(self._plan.steps) + 1)
        for count, transfer in enumerate(listed, 1):
            counts[transfer.deadline_step] = count
        words = tuple(map(self._transfer, listed))
        return words, list(itertools.accumulate(counts, max))[:-1]

    def _transfer(self, transfer: Transfer) -> TransferWord:
        ring = core = 0
        if transfer.stream is not None:
            stream = self._plan.streams[transfer.stream]
            ring = self.words(stream.window_bytes)
            core = next(
                number
                for number, (_, call) in enumerate(self.members[stream.step])
                if self._index[stream.tensor] in (*call.inputs, *call.outputs)
            )
        return TransferWord(
            dram_address=self.words(transfer.dram_address),
            address=self.words(transfer.scratchpad_address),
            words=self.words(transfer.size_bytes),
            start_step=transfer.start_step,
            ring=ring,
            core=core,
        )
