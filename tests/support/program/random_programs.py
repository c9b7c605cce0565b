"""Programs of the scheduler in tests: an interpreter, and random legal programs.

The interpreter executes a program in order, without overlap in time, at one of two extremes.  Either reads
run at their deadlines and writes as soon as they may, or the reverse.  In both, words that a step may write
are invalid before any of its cores reads, and its rings again at its end.  A program that keeps the rules has
the same memory in every other legal timing.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

from hw.scheduler.program.program import CoreWord, OperandWord, SchedulerProgram, StepWord, TransferWord, Via

_MASK = 0xFFFFFFFF
_G, _H = 0x9E3779B9, 0x85EBCA6B


def operator_words(operator: int, inputs: list[int], outputs: list[int], word_bytes: int) -> list[list[int]]:
    """Compute an operator's outputs from the words of its inputs; ``outputs`` are their lengths."""
    lanes = word_bytes // 4
    constants = [_G * (lane + 1) & _MASK for lane in range(lanes)]
    digests = [[constant + operator & _MASK for constant in constants]]
    for k, word in enumerate(inputs):
        last = digests[-1]
        turned = [
            (last[(lane + 1) % lanes] << 7 | last[(lane + 1) % lanes] >> 25) & _MASK for lane in range(lanes)
        ]
        new = [(word >> 32 * lane & _MASK) + _G * (k + 1) & _MASK for lane in range(lanes)]
        digests.append([a ^ b for a, b in zip(turned, new, strict=True)])
    total, made, results = sum(outputs), 0, []
    for q, length in enumerate(outputs):
        words = []
        for i in range(length):
            made += 1
            digest = digests[-(-made * len(inputs) // total)]
            key = (operator << 16 | q) + _H * (i + 1)
            lanes_out = [
                ((a ^ c) + key & _MASK) << 32 * lane
                for lane, (a, c) in enumerate(zip(digest, constants, strict=True))
            ]
            words.append(sum(lanes_out))
        results.append(words)
    return results


def interpret(
    program: SchedulerProgram, memory: dict[int, int], *, early_reads: bool = False
) -> dict[int, int]:
    """Return the words that a run writes to ``memory`` (by word address, from the program's base).

    With ``early_reads``, reads run as soon as they may and writes as late as they are waited for.

    Raises
    ------
    KeyError
        When a word is read that nobody put there.
    """
    memory = dict(memory)
    written: dict[int, int] = {}
    pad: dict[int, int] = {}
    reads, writes = list(program.reads), list(program.writes)
    done_reads = done_writes = 0
    streamed: dict[int, list[int]] = {}  # words of writes through rings, by number of the write

    def read_one(read: TransferWord) -> None:
        if not read.ring:
            for k in range(read.words):
                pad[read.address + k] = memory[read.dram_address + k]

    def forget(operands: list[OperandWord]) -> None:
        for operand in operands:
            for k in range(operand.span):
                pad.pop(operand.address + k, None)

    def write_one(number: int) -> None:
        write = writes[number]
        values = streamed.get(number) or [pad[write.address + k] for k in range(write.words)]
        for k, value in enumerate(values):
            memory[write.dram_address + k] = written[write.dram_address + k] = value

    def ring_in(number: int, core: int) -> list[TransferWord]:
        return [t for t in program.reads if t.ring and t.start_step == number and t.core == core]

    for number, step in enumerate(program.steps):
        while done_writes < step.wait_writes:
            write_one(done_writes)
            done_writes += 1
        while done_reads < len(reads) and (
            reads[done_reads].start_step <= number if early_reads else done_reads < step.wait_reads
        ):
            read_one(reads[done_reads])
            done_reads += 1
        outputs = [operand for core in step.cores for operand in core.outputs]
        rings = [operand for core in step.cores for operand in core.inputs if operand.ring]
        rings += [operand for operand in outputs if operand.ring]
        forget([*outputs, *rings])
        fifo: list[list[int]] = []
        streams_out: list[list[int]] = []
        for index, core in enumerate(step.cores):
            words: list[int] = []
            streams = ring_in(number, index)
            for operand in core.inputs:
                if operand.via is Via.WHOLE:
                    words += [pad[operand.address + k] for k in range(operand.words)]
                elif operand.via is Via.FIFO:
                    words += fifo.pop(0)
                else:
                    stream = streams.pop(0)
                    words += [memory[stream.dram_address + k] for k in range(stream.words)]
            operands = core.outputs
            results = operator_words(core.operator, words, [o.words for o in operands], program.word_bytes)
            for operand, result in zip(operands, results, strict=True):
                if operand.via is Via.WHOLE:
                    pad.update(enumerate(result, operand.address))
                elif operand.via is Via.FIFO:
                    fifo.append(result)
                else:
                    streams_out.append(result)
        forget(rings)
        for index, write in enumerate(writes):
            if write.ring and write.start_step == number:
                streamed[index] = streams_out.pop(0)
        while not early_reads and done_writes < len(writes) and writes[done_writes].start_step <= number:
            write_one(done_writes)
            done_writes += 1
    for index in range(done_writes, len(writes)):
        write_one(index)
    return written


@dataclass
class _Stay:
    """A tensor in the scratchpad."""

    address: int
    words: int
    usable: int
    safe: bool
    home: int


def with_operand(program: SchedulerProgram, number: int, **fields: Any) -> tuple[StepWord, ...]:
    """Return the steps of a program with some fields of its operand ``number`` changed."""
    left = iter(range(len(program.operands)))

    def change(operands: tuple[OperandWord, ...]) -> tuple[OperandWord, ...]:
        return tuple(replace(each, **fields) if next(left) == number else each for each in operands)

    return tuple(
        replace(
            step,
            cores=tuple(
                replace(core, inputs=change(core.inputs), outputs=change(core.outputs)) for core in step.cores
            ),
        )
        for step in program.steps
    )


class RandomProgram:
    """Makes a program step by step: tensors come, stay, are spilled, fetched, streamed and pipelined.

    Parameters
    ----------
    seed
    word_bytes
    steps
    cores
        1 or 2; with 2, some steps are pipelined.
    words
        Size of the scratchpad.
    """

    def __init__(
        self, seed: int, *, word_bytes: int = 8, steps: int = 8, cores: int = 2, words: int = 128
    ) -> None:
        self._rng = random.Random(seed)
        self._word_bytes, self._steps, self._cores, self._words = word_bytes, steps, cores, words
        self._stays: list[_Stay] = []
        self._busy: list[tuple[int, int]] = []  # rings of the step at hand
        self._off_chip: list[tuple[int, int]] = []  # home, words
        self._streamed: list[tuple[int, int]] = []  # off chip from the next step on
        self._made: list[_Stay] = []
        self._next_home = 0
        self.sources: list[tuple[int, int]] = []
        self._reads: list[tuple[TransferWord, int]] = []
        self._writes: list[tuple[TransferWord, int]] = []

    def make(self) -> SchedulerProgram:
        """Return the program."""
        words = []
        for number in range(self._steps):
            self._busy = []
            self._off_chip += self._streamed
            self._streamed = []
            self._evict(number, 1.0 if self._region(24) is None else self._rng.random() * 0.6)
            if self._rng.random() < 0.5:
                self._fetch(number, number + self._rng.randrange(3))
            pipelined = self._cores > 1 and self._rng.random() < 0.4
            cores = self._pipelined(number) if pipelined else (self._core(number, 0, [], []),)
            words.append(cores)
        self._evict(self._steps, 1.0)
        reads = sorted(self._reads, key=lambda item: (item[0].start_step, item[0].ring > 0, item[1]))
        writes = sorted(self._writes, key=lambda item: (item[0].start_step, item[0].ring == 0, item[1]))
        wait_reads, wait_writes = (_waits(items, self._steps) for items in (reads, writes))
        return SchedulerProgram(
            word_bytes=self._word_bytes,
            steps=tuple(
                StepWord(cores=cores, wait_reads=read, wait_writes=write)
                for cores, read, write in zip(words, wait_reads, wait_writes, strict=True)
            ),
            reads=tuple(transfer for transfer, _ in reads),
            writes=tuple(transfer for transfer, _ in writes),
        )

    def _region(self, words: int) -> int | None:
        """Find a free place, anywhere."""
        taken = sorted([(stay.address, stay.address + stay.words) for stay in self._stays] + self._busy)
        places, at = [], 0
        for low, high in [*taken, (self._words, self._words)]:
            if low - at >= words:
                places.append(self._rng.randint(at, low - words))
            at = max(at, high)
        return self._rng.choice(places) if places else None

    def _home(self, words: int) -> int:
        self._next_home += words
        return self._next_home - words

    def _source(self) -> tuple[int, int]:
        words = self._rng.randint(1, 24)
        self.sources.append((self._home(words), words))
        return self.sources[-1]

    def _absent(self) -> tuple[int, int]:
        """Return a tensor that lies off chip: a spilled one, or a new source."""
        if self._off_chip and self._rng.random() < 0.7:
            return self._rng.choice(self._off_chip)
        return self._source()

    def _evict(self, number: int, share: float) -> None:
        """End stays before slot ``number``; tensors without a copy are saved."""
        for stay in list(self._stays):
            if stay.usable >= number or self._rng.random() >= share:
                continue
            self._stays.remove(stay)
            if not stay.safe:
                stay.home = self._home(stay.words)
                start = self._rng.randint(stay.usable, number - 1)
                transfer = TransferWord(
                    dram_address=stay.home, address=stay.address, words=stay.words, start_step=start
                )
                self._writes.append((transfer, number))
            self._off_chip.append((stay.home, stay.words))

    def _fetch(self, start: int, use: int) -> None:
        home, words = self._absent()
        address = self._region(words)
        if address is None or use >= self._steps:
            return
        transfer = TransferWord(dram_address=home, address=address, words=words, start_step=start)
        self._reads.append((transfer, use))
        self._stays.append(_Stay(address=address, words=words, usable=use, safe=True, home=home))

    def _stream(
        self, number: int, core: int, words: int, home: int, via_list: list[tuple[TransferWord, int]]
    ) -> OperandWord | None:
        ring = self._rng.randint(1, min(words, 12))
        address = self._region(ring)
        if address is None:
            return None
        self._busy.append((address, address + ring))
        transfer = TransferWord(
            dram_address=home, address=address, words=words, start_step=number, ring=ring, core=core
        )
        via_list.append((transfer, number + 1))
        return OperandWord(address=address, words=words, via=Via.MEMORY, ring=ring)

    def _core(
        self, number: int, core: int, inputs: list[OperandWord], outputs: list[OperandWord]
    ) -> CoreWord:
        """Choose operands beside those given; at least one output."""
        inputs = list(inputs)
        usable = [stay for stay in self._stays if stay.usable <= number]
        for stay in self._rng.sample(usable, min(len(usable), self._rng.randrange(3))):
            inputs.insert(0, OperandWord(address=stay.address, words=stay.words))
        while self._rng.random() < 0.4:
            home, words = self._absent()
            operand = self._stream(number, core, words, home, self._reads)
            if operand is not None:
                inputs.append(operand)
        made: list[_Stay] = []
        results = list(outputs)
        while not results or self._rng.random() < 0.2:
            words = self._rng.randint(1, 30)
            while (address := self._region(words)) is None and words > 1:
                words //= 2
            if address is None:
                raise ValueError("the scratchpad is too small for the program")
            # Only the last core of a step: two that stream out could wait for each other.
            if not outputs and self._rng.random() < 0.25:
                operand = self._stream(number, core, words, self._next_home, self._writes)
                assert operand is not None  # there is room for all its words
                self._streamed.append((self._home(words), words))
                results.append(operand)
            else:
                results.append(OperandWord(address=address, words=words))
                self._busy.append((address, address + words))
                made.append(_Stay(address=address, words=words, usable=number, safe=False, home=0))
        self._made = made
        word = CoreWord(
            operator=self._rng.randrange(1000),
            inputs=tuple(inputs),
            outputs=tuple(results),
            compute_cycles=self._rng.choice((0, 1, 60)),
        )
        if not outputs:
            self._stays += made
        return word

    def _pipelined(self, number: int) -> tuple[CoreWord, ...]:
        words = self._rng.randint(1, 30)
        ring = self._rng.randint(1, min(words, 8))
        address = self._region(ring)
        if address is None:
            return (self._core(number, 0, [], []),)
        self._busy.append((address, address + ring))
        fifo = OperandWord(address=address, words=words, via=Via.FIFO, ring=ring)
        front = self._core(number, 0, [], [fifo])
        held = self._made
        back = self._core(number, 1, [fifo], [])
        self._stays += held
        return (front, back)


def _waits(transfers: list[tuple[TransferWord, int]], steps: int) -> list[int]:
    """Return the transfers each step waits for, from (transfer, step that must not begin without it)."""
    waits = [0] * (steps + 1)
    for count, (_, deadline) in enumerate(transfers, 1):
        waits[deadline] = max(waits[deadline], count)
    for step in range(1, steps + 1):
        waits[step] = max(waits[step], waits[step - 1])
    return waits[:steps]
