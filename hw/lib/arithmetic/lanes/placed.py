"""Placing the models of multipliers: their interface, as values of the component that places them."""

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Cat, ClockSignal, Const, Instance, Module, ResetSignal, Signal, Value

#: Widths of the models' inputs: numbers of places and steps, numbers of parts, factors.
_PLACE_BITS, _PART_BITS, _FACTOR_BITS = 8, 3, 32


def dots(
    m: Module,
    *,
    vector: Value,
    put: Value,
    place: Value,
    load: Value,
    pick: Value,
    picked: Value,
    places: int,
    latency: int,
    bits: int,
) -> list[Value]:
    """Place dot products of vectors that stay with one that passes: of one row for each bit of ``load``.

    * ``vector``, ``put``: vectors of int8, the one that passes and one that is written to ``place`` of the
      rows of ``load``.
    * ``pick``, ``picked``: from this cycle on ``vector`` meets the present content of the place ``picked``.
    * ``places``: of each row.

    Returns the rows' dot products, signed, ``bits`` wide, of ``latency`` cycles ago.
    """
    rows = len(load)
    o = Signal(rows * bits, name="dots_o")
    m.submodules.dots = Instance(
        "LoomDots",
        p_ROWS=rows,
        p_LANES=len(vector) // 8,
        p_PLACES=places,
        p_LATENCY=latency,
        p_BITS=bits,
        i_clk=ClockSignal(),
        i_vector=vector,
        i_put=put,
        i_place=_wide(place, _PLACE_BITS),
        i_load=load,
        i_pick=pick,
        i_picked=_wide(picked, _PLACE_BITS),
        o_o=o,
    )
    return [o.word_select(row, bits).as_signed() for row in range(rows)]


def sums(
    m: Module,
    *,
    value: Value,
    factor: Value,
    step: Mapping[str, Value],
    merge_begins: Value,
    merge_step: Value,
    folds: int,
    turns: bool,
    bits: int,
    merge_lanes: int,
) -> Value:
    """Place the sums of a row's lanes and the memory of those that are finished.

    * ``value``: a vector of int8, a cycle before its ``factor``.
    * ``step``: ``part``, ``last_part``, ``turn``, ``first``, ``ends`` and ``last``, beside the factor; see
      `hw.attention.core.row.value.ValueStep`.
    * ``merge_begins``, ``merge_step``: whose lanes are returned, see there.
    * ``folds``, ``turns``: parts of a value, and whether they take turns in a multiplier's own registers.

    Returns ``merge_lanes`` finished sums of ``bits`` bits.
    """
    partial = Signal(merge_lanes * bits, name="sums_partial")
    m.submodules.sums = Instance(
        "LoomSums",
        p_LANES=len(value) // 8,
        p_FOLDS=folds,
        p_TURNS=int(turns),
        p_BITS=bits,
        p_MERGE_LANES=merge_lanes,
        i_clk=ClockSignal(),
        i_rst=ResetSignal(),
        i_value=value,
        i_factor=_wide(factor, _FACTOR_BITS),
        **{f"i_{name}": _wide(bit, _PART_BITS if name.endswith("part") else 1) for name, bit in step.items()},
        i_merge_begins=merge_begins,
        i_merge_step=_wide(merge_step, _PLACE_BITS),
        o_partial=partial,
    )
    return partial


def _wide(value: Any, bits: int) -> Value:
    """Extend an unsigned value to ``bits``."""
    value = Value.cast(value)
    return Cat(value, Const(0, bits - len(value)))
