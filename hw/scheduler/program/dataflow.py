"""What a program computes, apart from how: which operators read and write which tensors, in which order.

The gates do not need it.  It is what a run is judged by: it knows tensors by name and has no scratchpad
address, no transfer and no ring in it, so that a mistake in one of these cannot be in it as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from hw.scheduler.graph.graph import Tensor


@dataclass(frozen=True, kw_only=True)
class OperatorCall:
    """One execution of an operator: its number, and the indices of its tensors in the order it takes them."""

    operator: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Dataflow:
    """The tensors, and what is made of them."""

    tensors: tuple[Tensor, ...]  #: In the scratchpad and in memory each takes whole words.
    #: In order of execution; the members of a pipelined step in the order of its cores.
    calls: tuple[OperatorCall, ...]
    #: First word, in the program's region of the memory, of each tensor that is ever there, by name.
    homes: Mapping[str, int]
    name: str = ""  #: Of the network, for reports; may be empty.

    @cached_property
    def sources(self) -> tuple[Tensor, ...]:
        """Tensors that lie in memory before the program runs."""
        return tuple(tensor for tensor in self.tensors if tensor.off_chip_first)

    @cached_property
    def saved(self) -> tuple[Tensor, ...]:
        """Tensors that the program writes to memory: outputs, and what is spilled."""
        return tuple(each for each in self.tensors if each.name in self.homes and not each.off_chip_first)
