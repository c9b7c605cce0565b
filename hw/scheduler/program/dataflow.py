"""The dataflow of a program: which operators read and write which tensors, in which order.

The hardware does not need it; the golden model executes it to judge a run.  It has tensors by name and no
scratchpad address, transfer or ring, so that a mistake in one of these cannot be in it as well.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from hw.scheduler.graph.graph import Tensor


@dataclass(frozen=True, kw_only=True)
class OperatorCall:
    """One execution of an operator: its number, and the indices of its operands in order."""

    operator: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Dataflow:
    """The tensors, and the operators that read and write them."""

    tensors: tuple[Tensor, ...]  #: In the scratchpad and in memory each takes whole words.
    #: In order of execution; the members of a pipelined step in the order of its cores.
    calls: tuple[OperatorCall, ...]
    #: First word of each tensor that is ever in the program's region of the memory, by name.
    homes: Mapping[str, int]
    name: str = ""  #: The network's, for reports; may be empty.

    @cached_property
    def sources(self) -> tuple[Tensor, ...]:
        """Tensors that lie in memory before the program runs."""
        return tuple(tensor for tensor in self.tensors if tensor.off_chip_first)

    @cached_property
    def saved(self) -> tuple[Tensor, ...]:
        """Tensors that the program writes to memory: outputs and spills."""
        return tuple(each for each in self.tensors if each.name in self.homes and not each.off_chip_first)
