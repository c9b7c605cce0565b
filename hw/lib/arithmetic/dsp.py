"""Multipliers with the parts of a DSP48E2 around them: input registers, pre-adder, accumulator, cascade.

A tool finds the multiplier in a product by itself, but not reliably the parts around it.  Yosys leaves
registers and accumulators in the fabric, and no tool finds two sums that take turns in P and C.  So in
generated Verilog (`hw.lib.convert.UltraScalePlus`) each function here is one DSP48E2 (AMD's UG579), which all
boards have.  Without a platform, in Amaranth's simulator and in proofs, the same registers are written out; a
test holds one to the other.

Reset reaches none of these registers.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, ClockSignal, Const, Instance, Module, Mux, Signal, Value, signed

from hw.lib.arithmetic.packed import FACTOR_BITS, FIELD_BITS, WORD_BITS
from hw.lib.convert import UltraScalePlus
from hw.lib.delay import delay

#: Bits of the slice's ports.
_WIDTHS = {"A": 30, "B": 18, "C": 48, "D": 27, "PCIN": 48, "P": 48, "PCOUT": 48}
#: OPMODE: X and Y are the product; bits 4 to 6 choose Z, bits 7 and 8 W: nothing, or with bit 7 P.
_PRODUCT, _Z, _W = 0b0101, 4, 7
_CASCADE, _P, _C, _CASCADE_SHIFTED = 0b001, 0b010, 0b011, 0b101
#: Bits that the shifted cascade drops: as many of a value go to the slice that it comes from.
_SHIFTED_BITS = 17


def packed_product(
    m: Module,
    platform: Any,
    name: str,
    *,
    high: Value,
    low: Value,
    load: Value,
    shared: Value,
    shared_registers: int,
    cascade: Value | None = None,
    ends: bool = True,
) -> Signal:
    """Multiply a shared factor by two others at once, and add the word of a neighbour.

    * ``m``, ``platform``: the component being elaborated, and the platform of its ``elaborate``.
    * ``name``: of the slice, unique in ``m``.
    * ``high``, ``low``: two int8; the pre-adder packs them (`hw.lib.arithmetic.packed`), which takes no gate.
    * ``load``: they are taken; otherwise those from before stay.
    * ``shared``: signed, up to 18 bits.
    * ``shared_registers``: registers on its way to the multiplier, 1 or 2.
    * ``cascade``: the word of another slice, which does not end a chain.
    * ``ends``: whether the word goes to the fabric, not to the next slice of a chain.

    Returns ``(high * 2^18 + low) * shared + cascade``, with ``high`` and ``low`` of 4 cycles ago, ``shared``
    of ``shared_registers + 2`` and ``cascade`` of one.
    """
    word = Signal(signed(WORD_BITS if ends else _WIDTHS["PCOUT"]), name=name, reset_less=True)
    if isinstance(platform, UltraScalePlus):
        place_slice(
            m,
            name,
            inputs={
                "A": Cat(Const(0, FIELD_BITS), high).as_signed(),
                "B": shared,
                "D": low,
                **({} if cascade is None else {"PCIN": cascade}),
                "OPMODE": _PRODUCT if cascade is None else _PRODUCT | _CASCADE << _Z,
                "INMODE": 0b00100,  # D + A, times B
                "CEA2": load,
                "CED": load,
            },
            parameters={"AMULTSEL": "AD", "BREG": shared_registers, "BCASCREG": shared_registers},
            outputs={"P" if ends else "PCOUT": word},
        )
        return word
    upper, lower = (Signal(signed(8), name=f"{name}_{side}", reset_less=True) for side in ("high", "low"))
    packed = Signal(signed(FACTOR_BITS), name=f"{name}_packed", reset_less=True)
    product = Signal(signed(WORD_BITS), name=f"{name}_product", reset_less=True)
    with m.If(load):
        m.d.sync += [upper.eq(high), lower.eq(low)]
    m.d.sync += [
        packed.eq(upper.shift_left(FIELD_BITS) + lower),
        product.eq(packed * delay(m, f"{name}_shared", shared, shared_registers, reset=False)),
        word.eq(product if cascade is None else product + cascade),
    ]
    return word


def accumulated(
    m: Module,
    platform: Any,
    name: str,
    *,
    factor: Value,
    value: Value,
    bits: int,
    first: Value,
    turn: Value,
    rest: Value,
    other: Value | None = None,
) -> Signal:
    """Add up products, in one sum or in several that take turns.

    * ``m``, ``platform``, ``name``: as for `packed_product`.
    * ``factor``: signed, up to 27 bits; 0 when there is nothing to add.
    * ``value``: signed, up to 18 bits, which comes a cycle before its ``factor``.
    * ``bits``: of a sum, up to 48.
    * ``first``: a cycle after ``factor``: its product begins the sum.
    * ``turn``: a cycle after ``factor``: it goes to the sum that rests, not to the one of the product before.
    * ``rest``: ``turn``, a cycle later still: ``other`` rests from the next cycle on.
    * ``other``: the sum that rests; by default the returned one: two sums take turns.

    Returns the sum, signed, with the ``factor`` of 3 cycles ago.

    Why
    ---
    The sum that rests lies in C.  With a turn P becomes C and the product while C takes P.  So two sums need
    no adder and no register of the fabric.
    """
    total = Signal(signed(bits), name=name, reset_less=True)
    resting = total if other is None else other
    if isinstance(platform, UltraScalePlus):
        source = Mux(first, 0, Mux(turn, _C, _P))
        place_slice(
            m,
            name,
            inputs={
                "A": factor,
                "B": value,
                "C": resting,
                "OPMODE": Cat(Const(_PRODUCT, _Z), source[:3]),
                "CEC": rest,
            },
            parameters={"BREG": 2, "BCASCREG": 2, "OPMODEREG": 1},
            outputs={"P": total},
        )
        return total
    product, rested = (Signal(signed(bits), name=f"{name}_{what}", reset_less=True) for what in "mc")
    begins, turns = (Signal(name=f"{name}_{what}", reset_less=True) for what in ("begins", "turns"))
    early = delay(m, f"{name}_value", value, 2, reset=False)
    m.d.sync += [
        begins.eq(first),
        turns.eq(turn),
        product.eq(delay(m, f"{name}_factor", factor, 1, reset=False) * early),
        total.eq(Mux(begins, 0, Mux(turns, rested, total)) + product),
        rested.eq(Mux(rest, resting, rested)),
    ]
    return total


#: Cycles from a value to its `wide_product`.
WIDE_PRODUCT_LATENCY = 4


def wide_product(m: Module, platform: Any, name: str, *, value: Value, factor: Value, load: Value) -> Value:
    """Multiply a value by a factor that stays, in two slices.

    * ``m``, ``platform``, ``name``: as for `packed_product`.
    * ``value``: signed, 18 to 35 bits.
    * ``factor``: signed, up to 27 bits; it stays for a cycle after ``load``.
    * ``load``: the factor is taken for the value of this cycle and later ones.

    Returns the product, signed, with the ``value`` of `WIDE_PRODUCT_LATENCY` cycles ago.

    Why
    ---
    The second slice adds the first one's word, shifted by its own cascade: no adder of the fabric.
    """
    bits = len(value) + len(factor)
    low = Cat(value[:_SHIFTED_BITS], Const(0, 1)).as_signed()
    high = value[_SHIFTED_BITS:].as_signed()
    late_load = delay(m, f"{name}_load", load, 1)
    below = Signal(signed(_WIDTHS["P"]), name=f"{name}_below", reset_less=True)
    above = Signal(signed(bits - _SHIFTED_BITS), name=f"{name}_above", reset_less=True)
    if isinstance(platform, UltraScalePlus):
        cascade = Signal(signed(_WIDTHS["PCOUT"]), name=f"{name}_cascade")
        first = {"A": factor, "B": low, "CEA2": load, "OPMODE": _PRODUCT}
        second = {
            "A": factor,
            "B": high,
            "CEA2": late_load,
            "PCIN": cascade,
            "OPMODE": _PRODUCT | _CASCADE_SHIFTED << _Z,
        }
        outputs = {"P": below, "PCOUT": cascade}
        place_slice(m, f"{name}_0", inputs=first, parameters={}, outputs=outputs)
        twice = {"BREG": 2, "BCASCREG": 2}
        place_slice(m, f"{name}_1", inputs=second, parameters=twice, outputs={"P": above})
    else:
        products = []
        for n, (part, taken) in enumerate(((low, load), (high, late_load))):
            used = Signal(signed(len(factor)), name=f"{name}_factor_{n}", reset_less=True)
            product = Signal(signed(len(part) + len(factor)), name=f"{name}_product_{n}", reset_less=True)
            with m.If(taken):
                m.d.sync += used.eq(factor)
            m.d.sync += product.eq(used * delay(m, f"{name}_value_{n}", part, 1 + n, reset=False))
            products.append(product)
        m.d.sync += [below.eq(products[0]), above.eq(products[1] + (below >> _SHIFTED_BITS))]
    lowest = delay(m, f"{name}_lowest", below[:_SHIFTED_BITS], 1, reset=False)
    return Cat(lowest, above).as_signed()


#: Cycles from values to their `weighted_sum`.
WEIGHTED_SUM_LATENCY = 4


def weighted_sum(
    m: Module,
    platform: Any,
    name: str,
    *,
    values: tuple[Value, Value],
    factors: tuple[Value, Value],
    add: Value,
    keep: Value,
) -> Value:
    """Add two products, in two slices: ``values[0] * (factors[0] + add) + values[1] * factors[1]``.

    * ``m``, ``platform``, ``name``: as for `packed_product`.
    * ``values``: signed, up to 18 bits.
    * ``factors``: signed, up to 27 bits; they stay.
    * ``add``: signed, up to 26 bits; it comes with the values.
    * ``keep``: with the values: the sum before is added, too.

    Returns the sum, signed, 48 bits, with the ``values`` of `WEIGHTED_SUM_LATENCY` cycles ago.
    """
    total = Signal(signed(_WIDTHS["P"]), name=name, reset_less=True)
    if isinstance(platform, UltraScalePlus):
        cascade = Signal(signed(_WIDTHS["PCOUT"]), name=f"{name}_cascade")
        inputs = {"A": factors[1], "B": values[1], "CEA2": 1, "OPMODE": _PRODUCT}
        place_slice(m, f"{name}_1", inputs=inputs, parameters={}, outputs={"PCOUT": cascade})
        late_keep = delay(m, f"{name}_keep", keep, 2, reset=False)
        inputs = {
            "A": add,
            "B": values[0],
            "D": factors[0],
            "PCIN": cascade,
            "OPMODE": Cat(Const(_PRODUCT | _CASCADE << _Z, _W), late_keep),
            "INMODE": 0b00100,  # D + A, times B
            "CEA2": 1,
        }
        parameters = {"AMULTSEL": "AD", "BREG": 2, "BCASCREG": 2, "OPMODEREG": 1}
        place_slice(m, f"{name}_0", inputs=inputs, parameters=parameters, outputs={"P": total})
        return total
    held = [
        delay(m, f"{name}_{what}", value, 1, reset=False)
        for what, value in (("factor_0", factors[0]), ("add", add), ("factor_1", factors[1]))
    ]
    factor = Signal(signed(FACTOR_BITS), name=f"{name}_factor", reset_less=True)
    product = Signal(signed(_WIDTHS["P"]), name=f"{name}_product", reset_less=True)
    other = Signal(signed(_WIDTHS["P"]), name=f"{name}_other", reset_less=True)
    late = Signal(signed(_WIDTHS["P"]), name=f"{name}_late", reset_less=True)
    kept = delay(m, f"{name}_keep", keep, 3, reset=False)
    m.d.sync += [
        factor.eq(held[0] + held[1]),
        product.eq(factor * delay(m, f"{name}_value_0", values[0], 2, reset=False)),
        other.eq(held[2] * delay(m, f"{name}_value_1", values[1], 1, reset=False)),
        late.eq(other),
        total.eq(product + late + Mux(kept, total, 0)),
    ]
    return total


def long_product_latency(parts: int) -> int:
    """Return the cycles from a value to its `long_product`."""
    return 2 + parts


def long_product(m: Module, platform: Any, name: str, *, value: Value, factor: Value) -> Value:
    """Multiply a value by a long factor that stays, in a slice for each 17 bits of it.

    * ``m``, ``platform``, ``name``: as for `packed_product`.
    * ``value``: unsigned, up to 26 bits.
    * ``factor``: unsigned, a multiple of 17 bits.

    Returns the bits of the product from the last slice's place on: of ``parts`` slices, without the lowest
    ``17 * (parts - 1)`` bits; with the ``value`` of `long_product_latency` cycles ago.
    """
    parts = len(factor) // _SHIFTED_BITS
    late: Value = Cat(value, Const(0, 1)).as_signed()
    total: Signal | None = None
    for n in range(parts):
        part = Cat(factor.word_select(n, _SHIFTED_BITS), Const(0, 1)).as_signed()
        late = delay(m, f"{name}_value_{n}", late, min(n, 1), reset=False)
        word = Signal(signed(_WIDTHS["P"]), name=f"{name}_{n}_sum", reset_less=True)
        if isinstance(platform, UltraScalePlus):
            opmode = _PRODUCT if total is None else _PRODUCT | _CASCADE_SHIFTED << _Z
            inputs = {"A": late, "B": part, "CEA2": 1, "OPMODE": opmode}
            inputs |= {} if total is None else {"PCIN": total}
            pin = "P" if n == parts - 1 else "PCOUT"
            place_slice(m, f"{name}_{n}", inputs=inputs, parameters={}, outputs={pin: word})
        else:
            product = Signal(signed(_WIDTHS["P"]), name=f"{name}_{n}_product", reset_less=True)
            held = [
                delay(m, f"{name}_{n}_{what}", each, 1, reset=False)
                for what, each in (("a", late), ("b", part))
            ]
            m.d.sync += product.eq(held[0] * held[1])
            m.d.sync += word.eq(product if total is None else product + (total >> _SHIFTED_BITS))
        total = word
    assert total is not None
    return total.as_unsigned()


def place_slice(
    m: Module,
    name: str,
    *,
    inputs: dict[str, Any],
    parameters: dict[str, Any],
    outputs: dict[str, Signal],
) -> None:
    """Place a DSP48E2 with all its registers of data, enabled unless ``inputs`` say when.

    ``outputs``: the signals that its pins drive, P or PCOUT.
    """
    enabled = ("A2", "AD", "ALUMODE", "B1", "B2", "CARRYIN", "CTRL", "D", "INMODE", "M", "P")
    pins: dict[str, Any] = {
        **dict.fromkeys(("C", "D", "PCIN", "ALUMODE", "INMODE", "CARRYINSEL", "CARRYIN"), 0),
        **{f"CE{register}": 1 for register in enabled},
        **dict.fromkeys(("CEA1", "CEC"), 0),
        **inputs,
    }
    widths = _WIDTHS | {"OPMODE": 9, "INMODE": 5, "ALUMODE": 4, "CARRYINSEL": 3}
    resets = ("A", "ALLCARRYIN", "ALUMODE", "B", "C", "CTRL", "D", "INMODE", "M", "P")
    pins_out = {pin: Signal(signed(_WIDTHS[pin]), name=f"{name}_{pin.lower()}") for pin in ("P", "PCOUT")}
    m.d.comb += [o.eq(pins_out[pin]) for pin, o in outputs.items()]
    data = ("A", "ACASC", "AD", "B", "BCASC", "C", "D", "M", "P")
    control = ("OPMODE", "INMODE", "ALUMODE", "CARRYINSEL", "CARRYIN")
    registers = {f"{name}REG": 1 for name in data} | {f"{name}REG": 0 for name in control}
    m.submodules[name] = Instance(
        "DSP48E2",
        **{f"p_{parameter}": value for parameter, value in (registers | parameters).items()},
        i_CLK=ClockSignal(),
        **{f"i_RST{register}": Const(0, 1) for register in resets},
        **{f"i_{pin}": _wide(value, widths.get(pin, 1)) for pin, value in pins.items()},
        **{f"o_{pin}": value for pin, value in pins_out.items()},
    )


def _wide(value: Any, bits: int) -> Value:
    """Extend a value to the bits of a pin by its sign."""
    if isinstance(value, int):
        return Const(value, bits)
    value = Value.cast(value)
    fill = value[-1] if value.shape().signed else Const(0, 1)
    return Cat(value, fill.replicate(bits - len(value)))
