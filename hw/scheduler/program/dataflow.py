"""What a program computes, apart from how: which operators read and write which tensors, in which order.

The gates do not need it.  It is what a run is judged by: it knows tensors by name and has no scratchpad
address, no transfer and no ring in it, so that a mistake in one of these cannot be in it as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from hw.errors import InputError
from hw.scheduler.graph.graph import TensorKind


@dataclass(frozen=True, kw_only=True)
class Item:
    """A tensor.

    Parameters
    ----------
    name : str
    size_bytes : int
        At least 1; in the scratchpad and in memory it takes whole words.
    kind : TensorKind
    dram_address : int or None
        Its first word in the program's region of the memory; None when it is never there.
    """

    name: str
    size_bytes: int
    kind: TensorKind = TensorKind.ACTIVATION
    dram_address: int | None = None

    def __post_init__(self) -> None:
        if not self.name:
            raise InputError("name of an item", self.name, "at least one character")
        if self.size_bytes < 1:
            raise InputError(f"size_bytes of {self.name!r}", self.size_bytes, "at least 1")
        if self.dram_address is not None and self.dram_address < 0:
            raise InputError(f"dram_address of {self.name!r}", self.dram_address, "at least 0")
        if self.dram_address is None and self.kind is not TensorKind.ACTIVATION:
            raise InputError(f"dram_address of {self.name!r}", None, f"given: its kind is {self.kind.value}")

    @property
    def off_chip_first(self) -> bool:
        """Whether its bytes lie in memory before the program runs."""
        return self.kind in (TensorKind.INPUT, TensorKind.WEIGHT, TensorKind.CACHE)


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
    items : tuple of Item
    calls : tuple of Call
        In order of execution; the members of a pipelined step in the order of its cores.
    name : str
        Of the network, for reports; may be empty.

    Raises
    ------
    InputError
        For a name used twice, an index out of range, or a tensor that is made twice, never, or after its use.
    """

    items: tuple[Item, ...]
    calls: tuple[Call, ...]
    name: str = ""

    def __post_init__(self) -> None:
        names: set[str] = set()
        for item in self.items:
            if item.name in names:
                raise InputError("name of an item", item.name, "used once")
            names.add(item.name)
        there = {index for index, item in enumerate(self.items) if item.off_chip_first}
        for number, call in enumerate(self.calls):
            for index in (*call.inputs, *call.outputs):
                if not 0 <= index < len(self.items):
                    raise InputError(f"item of call {number}", index, f"from 0 to {len(self.items) - 1}")
            for index in call.inputs:
                if index not in there:
                    raise InputError(
                        f"input of call {number}", self.items[index].name, "made by an earlier call"
                    )
            for index in call.outputs:
                if index in there:
                    raise InputError(f"output of call {number}", self.items[index].name, "made once")
                there.add(index)
        missing = [item.name for index, item in enumerate(self.items) if index not in there]
        if missing:
            raise InputError("item", missing[0], "made by a call, or of kind input")

    @cached_property
    def sources(self) -> tuple[Item, ...]:
        """Items that lie in memory before the program runs."""
        return tuple(item for item in self.items if item.off_chip_first)

    @cached_property
    def saved(self) -> tuple[Item, ...]:
        """Items that the program writes to memory: outputs, and what is spilled."""
        return tuple(item for item in self.items if item.dram_address is not None and not item.off_chip_first)
