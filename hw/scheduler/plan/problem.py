"""The planner's arithmetic view of a graph: indices instead of names, words instead of bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from hw.errors import InputError
from hw.scheduler.graph.graph import Graph, TensorKind

#: Window a tensor of unknown shape is streamed through.
DEFAULT_WINDOW_BYTES = 4096


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A graph in indices and words; operators and tensors are numbered as the graph lists them.

    ``word_bytes`` is the width of the scratchpad and of the memory port: every size is rounded up to it, and
    all traffic is counted in whole words.
    """

    graph: Graph
    word_bytes: int = 32

    def __post_init__(self) -> None:
        if self.word_bytes < 1 or self.word_bytes & (self.word_bytes - 1):
            raise InputError("word_bytes", self.word_bytes, "a power of two")

    @cached_property
    def _index(self) -> dict[str, int]:
        return {tensor.name: index for index, tensor in enumerate(self.graph.tensors)}

    def words(self, size_bytes: int) -> int:
        """Bytes in whole words."""
        return -(-size_bytes // self.word_bytes)

    @cached_property
    def size(self) -> tuple[int, ...]:
        """Words of each tensor."""
        return tuple(self.words(tensor.size_bytes) for tensor in self.graph.tensors)

    @cached_property
    def inputs(self) -> tuple[tuple[int, ...], ...]:
        """Tensors each operator reads."""
        return tuple(tuple(self._index[name] for name in op.inputs) for op in self.graph.operators)

    @cached_property
    def outputs(self) -> tuple[tuple[int, ...], ...]:
        """Tensors each operator writes."""
        return tuple(tuple(self._index[name] for name in op.outputs) for op in self.graph.operators)

    @cached_property
    def operands(self) -> tuple[tuple[int, ...], ...]:
        """Tensors each operator reads, then those it writes."""
        return tuple((*ins, *outs) for ins, outs in zip(self.inputs, self.outputs, strict=True))

    @cached_property
    def _reads(self) -> tuple[frozenset[int], ...]:
        return tuple(map(frozenset, self.inputs))

    @cached_property
    def _writes(self) -> tuple[frozenset[int], ...]:
        return tuple(map(frozenset, self.outputs))

    @cached_property
    def producer(self) -> tuple[int, ...]:
        """Operator that writes each tensor, or -1."""
        writer = {tensor: operator for operator, tensors in enumerate(self.outputs) for tensor in tensors}
        return tuple(writer.get(tensor, -1) for tensor in range(self.tensor_count))

    @cached_property
    def consumers(self) -> tuple[tuple[int, ...], ...]:
        """Operators that read each tensor."""
        readers: list[list[int]] = [[] for _ in self.size]
        for operator, tensors in enumerate(self.inputs):
            for tensor in tensors:
                readers[tensor].append(operator)
        return tuple(map(tuple, readers))

    @cached_property
    def written(self) -> tuple[bool, ...]:
        """Whether each tensor is an output of the network."""
        return tuple(tensor.kind is TensorKind.OUTPUT for tensor in self.graph.tensors)

    @cached_property
    def fifo(self) -> tuple[int, ...]:
        """Words each operator needs beside its tensors."""
        return tuple(self.words(operator.fifo_bytes) for operator in self.graph.operators)

    @cached_property
    def predecessors(self) -> tuple[int, ...]:
        """Operators that write what each operator reads, as bit masks."""
        makers = ({self.producer[tensor] for tensor in tensors} for tensors in self.inputs)
        return tuple(sum(1 << maker for maker in some - {-1}) for some in makers)

    @property
    def operator_count(self) -> int:
        """Operators, and so steps."""
        return len(self.inputs)

    @property
    def tensor_count(self) -> int:
        """Tensors."""
        return len(self.size)

    @cached_property
    def compulsory(self) -> int:
        """Words that move whatever the plan: sources in once, outputs out once."""
        tensors = zip(self.size, self.graph.tensors, strict=True)
        return sum(size for size, tensor in tensors if tensor.kind is not TensorKind.ACTIVATION)

    @cached_property
    def compulsory_transfers(self) -> int:
        """Transfers of a plan that moves nothing else: each source that is used, each output."""
        used = (writer < 0 and bool(by) for writer, by in zip(self.producer, self.consumers, strict=True))
        return sum(used) + sum(self.written)

    @cached_property
    def working_set(self) -> tuple[int, ...]:
        """Words each operator needs with all its tensors whole in the scratchpad."""
        return tuple(
            fifo + sum(self.size[tensor] for tensor in tensors)
            for tensors, fifo in zip(self.operands, self.fifo, strict=True)
        )

    def least_words(self, operator: int, tensors: Sequence[int] | None = None, *, streaming: bool) -> int:
        """Return the words an operator needs at the least for all or some of its operands, of which, with
        ``streaming``, all pass through windows that can together, or one that can only alone.
        """
        tensors = self.operands[operator] if tensors is None else tensors
        together, alone = 0, 0
        for tensor in tensors if streaming else ():
            saved = self.size[tensor] - self.window(operator, tensor)
            if self.streams_alone(operator, tensor):
                alone = max(alone, saved)
            else:
                together += saved
        return self.fifo[operator] + sum(self.size[tensor] for tensor in tensors) - max(together, alone)

    def window(self, operator: int, tensor: int) -> int:
        """Words of the scratchpad a tensor takes when an operator streams it; never more than its size.

        An operator streams an input a few rows at a time: the rows an output row needs, and as many as are
        fetched meanwhile.  An input that is needed whole is streamed in small pieces, and alone: see
        `streams_alone`.  An output is streamed out a row at a time, in two halves.
        """
        accesses, whole = self.graph.operators[operator].accesses, self.graph.tensors[tensor]
        axis, rows = None, 2
        if tensor in self._writes[operator]:
            axis = next((access.output_axis for access in accesses.values()), None)
        elif whole.name in accesses:
            axis, rows = accesses[whole.name].axis, accesses[whole.name].held_rows
        if axis is None or axis >= len(whole.shape):
            return min(self.size[tensor], self.words(DEFAULT_WINDOW_BYTES))
        return whole.row_words(rows, axis, self.word_bytes)

    def streams_alone(self, operator: int, tensor: int) -> bool:
        """Whether an operator can stream this input only while all its other tensors lie whole in the
        scratchpad: an output row needs all of it.  Never so for a tensor of unknown shape, of which nothing
        else is known either.
        """
        accesses, whole = self.graph.operators[operator].accesses, self.graph.tensors[tensor]
        return bool(whole.shape) and tensor in self._reads[operator] and whole.name not in accesses
