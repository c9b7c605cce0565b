"""A product with a sum behind it, in one DSP48E2; two of them may be a chain."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed

from hw.lib.arithmetic.dsp import place_slice
from hw.lib.convert import UltraScalePlus
from hw.lib.delay import delay

#: Cycles from a factor to its `multiply_add`.
MULTIPLY_ADD_LATENCY = 3
#: Bits of a sum.
SUM_BITS = 48
#: Bits of OPMODE: X and Y are the product, Z is the cascade or C, W is P or nothing.
_PRODUCT, _CASCADE, _C = 0b0101, 0b001, 0b011


def multiply_add(
    m: Module,
    platform: Any,
    name: str,
    *,
    factor: Value,
    value: Value,
    add: Value,
    keep: Value | None = None,
    cascade: Value | None = None,
    chained: Value | None = None,
) -> tuple[Signal, Signal]:
    """Multiply and add: ``factor * value + add``.

    * ``m``, ``platform``: the component being elaborated, and the platform of its ``elaborate``.
    * ``name``: of the slice, unique in ``m``.
    * ``factor``: signed, up to 27 bits.
    * ``value``: signed, up to 18 bits, which comes a cycle before its ``factor``.
    * ``add``: signed, up to 48 bits, which comes a cycle after its ``factor``.
    * ``keep``: a cycle after ``factor``: the sum before is added, too.
    * ``cascade``: the cascade of another slice, two cycles after ``factor``.
    * ``chained``: it is added in place of ``add``; it stays.

    Returns the sum, signed, with the ``factor`` of `MULTIPLY_ADD_LATENCY` cycles ago; and its cascade, which
    only another slice may read.
    """
    total = Signal(signed(SUM_BITS), name=name, reset_less=True)
    kept, chain = (Const(0, 1) if each is None else each for each in (keep, chained))
    if isinstance(platform, UltraScalePlus):
        out = Signal(signed(SUM_BITS), name=f"{name}_cascade")
        source = Mux(chain, Const(_CASCADE, 3), Const(_C, 3))
        place_slice(
            m,
            name,
            inputs={
                "A": factor,
                "B": value,
                "C": add,
                "CEA2": 1,
                "CEC": 1,
                "OPMODE": Cat(Const(_PRODUCT, 4), source, kept, Const(0, 1)),
                **({} if cascade is None else {"PCIN": cascade}),
            },
            parameters={"BREG": 2, "BCASCREG": 2, "OPMODEREG": 1},
            outputs={"P": total, "PCOUT": out},
        )
        return total, out
    product = Signal(signed(SUM_BITS), name=f"{name}_product", reset_less=True)
    late_factor = delay(m, f"{name}_factor", factor, 1, reset=False)
    late_value = delay(m, f"{name}_value", value, 2, reset=False)
    late_add = delay(m, f"{name}_add", add, 1, reset=False)
    late_keep = delay(m, f"{name}_keep", kept, 1, reset=False)
    late_chain = delay(m, f"{name}_chain", chain, 1, reset=False)
    m.d.sync += [
        product.eq(late_factor * late_value),
        total.eq(
            product + Mux(late_chain, 0 if cascade is None else cascade, late_add) + Mux(late_keep, total, 0)
        ),
    ]
    return total, total
