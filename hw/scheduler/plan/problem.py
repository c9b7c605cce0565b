"""The planner's view of a graph: indices instead of names, words instead of bytes."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from hw.errors import check_power_of_two
from hw.scheduler.graph.graph import Graph, TensorKind

#: Window through which a tensor of unknown shape streams.
DEFAULT_WINDOW_BYTES = 4096


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A graph in indices and words; operators and tensors are numbered in the graph's order.

    ``word_bytes`` is the width of the scratchpad and of the memory port.  Sizes are rounded up to it, and
    traffic is counted in whole words.
    """

    graph: Graph
    word_bytes: int = 32

    def __post_init__(self) -> None:
        check_power_of_two("word_bytes", self.word_bytes)

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
        """Words of each operator's FIFOs."""
        return tuple(self.words(operator.fifo_bytes) for operator in self.graph.operators)

    @cached_property
    def predecessors(self) -> tuple[int, ...]:
        """Producers of each operator's inputs, as bit masks."""
        makers = ({self.producer[tensor] for tensor in tensors} for tensors in self.inputs)
        return tuple(sum(1 << maker for maker in some - {-1}) for some in makers)

    @property
    def operator_count(self) -> int:
        """Operators, and so steps, of the graph."""
        return len(self.inputs)

    @property
    def tensor_count(self) -> int:
        """Tensors."""
        return len(self.size)

    @cached_property
    def compulsory(self) -> int:
        """Words that every plan moves: sources in once, outputs out once."""
        tensors = zip(self.size, self.graph.tensors, strict=True)
        return sum(size for size, tensor in tensors if tensor.kind is not TensorKind.ACTIVATION)

    @cached_property
    def compulsory_transfers(self) -> int:
        """Transfers that every plan makes: one for each used source and each output."""
        used = (writer < 0 and bool(by) for writer, by in zip(self.producer, self.consumers, strict=True))
        return sum(used) + sum(self.written)

    @cached_property
    def working_set(self) -> tuple[int, ...]:
        """Words of each operator with all its tensors whole in the scratchpad."""
        return tuple(
            fifo + sum(self.size[tensor] for tensor in tensors)
            for tensors, fifo in zip(self.operands, self.fifo, strict=True)
        )

    def least_words(self, operator: int, tensors: Sequence[int] | None = None, *, streaming: bool) -> int:
        """Return the least words an operator needs for its operands, or for some of them.

        With ``streaming``, either all operands stream that can do so together, or one that can only alone.
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
        """Words of the window through which an operator streams a tensor; at most the tensor's size.

        The window of an input holds the rows that an output row needs, and those fetched meanwhile.  An input
        that is needed whole streams in small pieces, and alone: see `streams_alone`.  The window of an output
        holds two rows: one is computed while the other drains.
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
        """Whether an operator can stream this input only while all its other tensors are whole.

        So it is when an output row needs all of the input.  False for tensors of unknown shape.
        """
        accesses, whole = self.graph.operators[operator].accesses, self.graph.tensors[tensor]
        return bool(whole.shape) and tensor in self._reads[operator] and whole.name not in accesses
