"""The reset of a kernel: a tree of registers with few loads each."""

from collections.abc import Iterator

from amaranth.hdl import Const, Fragment, Module, Signal, Value
from amaranth.hdl._ast import Switch
from amaranth.hdl._xfrm import LHSMaskCollector

from hw.lib.loads import LOADS

#: Levels of registers.
RESET_LEVELS = 2


def spread_reset(m: Module, reset: Value, *fragments: Fragment) -> None:
    """Clear the registers in ``fragments`` that are not ``reset_less``, `RESET_LEVELS` cycles later.

    ``m``: the parent of ``fragments``, whose domain ``sync`` has no reset of its own. ``reset``: clears while
    it is 1. ``fragments``: parts of the design, cleared with their subfragments in groups of `LOADS`
    neighbouring bits.

    Why
    ---
    A domain of Amaranth has one reset, in a large engine the net with the most loads.  The tree is equally
    deep everywhere, so all registers are cleared in the same cycles.
    """
    tree = _Tree(m, reset)
    for fragment in fragments:
        _clear(fragment, tree)


class _Tree:
    """Assigns a register of the tree to every group of bits."""

    def __init__(self, m: Module, reset: Value) -> None:
        self._m, self._reset = m, reset
        self._leaves: list[Signal] = []
        self._bits = 0  # that the last leaf clears

    def leaf(self, bits: int) -> tuple[Signal, int]:
        """Return a register and the number of bits it clears, up to `LOADS`."""
        taken = min(bits, LOADS)
        if not self._leaves or self._bits + taken > LOADS:
            branch, place = divmod(len(self._leaves), LOADS)
            if not place:
                self._branch = self._register("branch", branch, self._reset)
            self._leaves.append(self._register("reset", len(self._leaves), self._branch))
            self._bits = 0
        self._bits += taken
        return self._leaves[-1], taken

    def _register(self, name: str, number: int, value: Value) -> Signal:
        # Equal registers, which tools must not merge.
        register = Signal(init=1, reset_less=True, name=f"{name}_{number}", attrs={"keep": 1})
        self._m.d.sync += register.eq(value)
        return register


def _clear(fragment: Fragment, tree: _Tree) -> None:
    """Add statements that clear the registers of ``fragment`` and its subfragments."""
    if "sync" in fragment.statements:
        for signal, start, stop in list(_registers(fragment)):
            while start < stop:
                reset, bits = tree.leaf(stop - start)
                init = Const(signal.init, signal.shape())[start : start + bits]
                assignment = Value.cast(signal)[start : start + bits].eq(init)
                fragment.add_statements("sync", Switch(reset, [(1, [assignment], None)]))
                start += bits
    for subfragment, _, _ in fragment.subfragments:
        _clear(subfragment, tree)


def _registers(fragment: Fragment) -> Iterator[tuple[Signal, int, int]]:
    """Yield the runs of bits that reset clears in a fragment itself, as (signal, from, to)."""
    driven = LHSMaskCollector()
    driven.visit_stmt(fragment.statements["sync"])
    for signal, start, stop in driven.chunks():
        if not signal.reset_less:
            yield signal, start, len(signal) if stop is None else stop
