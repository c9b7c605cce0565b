"""A small program by hand, of everything the hardware has: short enough for a simulation in Python."""

from __future__ import annotations

from hw.scheduler.graph.graph import Tensor, TensorKind
from hw.scheduler.program.dataflow import Dataflow, OperatorCall
from hw.scheduler.program.program import CoreWord, OperandWord, SchedulerProgram, StepWord, TransferWord, Via

#: Words of a tensor, of a stream's ring and of the ring between two cores.
_TENSOR, _RING, _FIFO = 96, 32, 16


def example_program(word_bytes: int) -> SchedulerProgram:
    """Return a program of five steps over tensors of 96 words that uses everything the hardware has.

    ``x`` and the weights ``w`` come from memory, ``z`` goes there, ``a`` is spilled and fetched again::

        step 0   a = f(x)
        step 1   b = f(a)            a is saved meanwhile, w arrives
        step 2   c = f(b, w)         w as a stream; a's place is free, and is written
        step 3   d = f(f(c), a)      two cores, joined by a ring; a is fetched into b's place
        step 4   z = f(d)            z as a stream
    """
    first, second, third, ring, fifo = (
        0,
        _TENSOR,
        2 * _TENSOR,
        3 * _TENSOR,
        3 * _TENSOR + _RING,
    )
    x_home, w_home, a_home, z_home = (number * _TENSOR for number in range(4))

    def whole(address: int) -> OperandWord:
        return OperandWord(address=address, words=_TENSOR)

    def through(via: Via, address: int, words: int) -> OperandWord:
        return OperandWord(address=address, words=_TENSOR, via=via, ring=words)

    one, two, three = whole(first), whole(second), whole(third)
    stream, between = through(Via.MEMORY, ring, _RING), through(Via.FIFO, fifo, _FIFO)

    def core(operator: int, inputs: tuple[OperandWord, ...], output: OperandWord) -> CoreWord:
        return CoreWord(operator=operator, inputs=inputs, outputs=(output,), compute_cycles=_TENSOR)

    return SchedulerProgram(
        word_bytes=word_bytes,
        steps=(
            StepWord(cores=(core(0, (one,), two),), wait_reads=1),
            StepWord(cores=(core(1, (two,), three),), wait_reads=1),
            StepWord(cores=(core(2, (three, stream), one),), wait_reads=1, wait_writes=1),
            StepWord(
                cores=(core(3, (one,), between), core(4, (between, three), two)), wait_reads=3, wait_writes=1
            ),
            StepWord(cores=(core(5, (two,), stream),), wait_reads=3, wait_writes=1),
        ),
        reads=(
            TransferWord(dram_address=x_home, address=first, words=_TENSOR, start_step=0),
            TransferWord(dram_address=w_home, address=ring, words=_TENSOR, start_step=2, ring=_RING),
            TransferWord(dram_address=a_home, address=third, words=_TENSOR, start_step=3),
        ),
        writes=(
            TransferWord(dram_address=a_home, address=second, words=_TENSOR, start_step=0),
            TransferWord(dram_address=z_home, address=ring, words=_TENSOR, start_step=4, ring=_RING),
        ),
        dataflow=_dataflow(word_bytes, {"x": x_home, "w": w_home, "a": a_home, "z": z_home}),
    )


def _dataflow(word_bytes: int, homes: dict[str, int]) -> Dataflow:
    """Make a dataflow from each call's operator, inputs and outputs, by letters."""
    kinds = {"x": TensorKind.INPUT, "w": TensorKind.WEIGHT, "z": TensorKind.OUTPUT}
    names = "xwabcedz"  # e passes between the two cores
    calls = (("x", "a"), ("a", "b"), ("bw", "c"), ("c", "e"), ("ea", "d"), ("d", "z"))
    return Dataflow(
        tensors=tuple(
            Tensor(name=name, size_bytes=_TENSOR * word_bytes, kind=kinds.get(name, TensorKind.ACTIVATION))
            for name in names
        ),
        homes=homes,
        calls=tuple(
            OperatorCall(
                operator=number,
                inputs=tuple(names.index(name) for name in inputs),
                outputs=tuple(names.index(name) for name in outputs),
            )
            for number, (inputs, outputs) in enumerate(calls)
        ),
    )
