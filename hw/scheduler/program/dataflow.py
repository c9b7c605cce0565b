"""What a program computes, apart from how: which operators read and write which tensors, in which order.

The gates do not need it.  It is what a run is judged by: it knows tensors by name and has no scratchpad
address, no transfer and no ring in it, so that a mistake in one of these cannot be in it as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from hw.errors import InputError
from hw.scheduler.graph.graph import Tensor, TensorKind


@dataclass(frozen=True, kw_only=True)
class Call:
    """One execution of an operator: its number, and the indices of its tensors in the order it takes them."""

    operator: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Dataflow:
    """The tensors, and what is made of them.

    Parameters
    ----------
    tensors : tuple of Tensor
        In the scratchpad and in memory each takes whole words.
    calls : tuple of Call
        In order of execution; the members of a pipelined step in the order of its cores.
    homes : mapping of str to int
        First word, in the program's region of the memory, of each tensor that is ever there, by name.
    name : str
        Of the network, for reports; may be empty.

    Raises
    ------
    InputError
        For a name used twice, an index out of range, a tensor that is made twice, never, or after its use, or
        one without a home that must have one.
    """

    tensors: tuple[Tensor, ...]
    calls: tuple[Call, ...]
    homes: Mapping[str, int]
    name: str = ""

    def __post_init__(self) -> None:
        names: set[str] = set()
        for tensor in self.tensors:
            if tensor.name in names:
                raise InputError("name of a tensor", tensor.name, "used once")
            if tensor.kind is not TensorKind.ACTIVATION and tensor.name not in self.homes:
                raise InputError(
                    f"home of tensor {tensor.name!r}", None, f"given: it is of kind {tensor.kind}"
                )
            names.add(tensor.name)
        there = {index for index, tensor in enumerate(self.tensors) if tensor.off_chip_first}
        for number, call in enumerate(self.calls):
            for index in (*call.inputs, *call.outputs):
                if not 0 <= index < len(self.tensors):
                    raise InputError(f"tensor of call {number}", index, f"from 0 to {len(self.tensors) - 1}")
            for index in call.inputs:
                if index not in there:
                    name = self.tensors[index].name
                    raise InputError(f"input of call {number}", name, "made by an earlier call")
            for index in call.outputs:
                if index in there:
                    raise InputError(f"output of call {number}", self.tensors[index].name, "made once")
                there.add(index)
        missing = [tensor.name for index, tensor in enumerate(self.tensors) if index not in there]
        if missing:
            raise InputError("tensor", missing[0], "made by a call, or of kind input")

    @cached_property
    def sources(self) -> tuple[Tensor, ...]:
        """Tensors that lie in memory before the program runs."""
        return tuple(tensor for tensor in self.tensors if tensor.off_chip_first)

    @cached_property
    def saved(self) -> tuple[Tensor, ...]:
        """Tensors that the program writes to memory: outputs, and what is spilled."""
        return tuple(each for each in self.tensors if each.name in self.homes and not each.off_chip_first)
