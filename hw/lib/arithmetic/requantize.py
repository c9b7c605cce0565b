"""From sums at one scale to integers at another: multiply, shift, round, saturate, a stage each.

The result is ``saturate((x * multiplier + 2^(s-1)) >> s)``: ties round towards +infinity.  A rounding shift
is a long path, so that it is cut where nothing is wasted.  The shift keeps the bit below the result, and that
bit is the carry into the addition of the next stage.
"""

from amaranth.hdl import Cat, Module, Shape, ShapeLike, Signal, Value, signed

from hw.errors import check_range
from hw.lib.arithmetic.fixed import floor_shift, saturate, saturates

#: Cycles from a value to its result: product, shift, clamp.
REQUANTIZE_LATENCY = 3


def doubled(value: Value) -> Value:
    """Return ``2 * value``: with a bit below, which a shift by one place less turns into the half."""
    twice = Cat(0, value)
    return twice.as_signed() if value.shape().signed else twice


def rounded(halves: Value) -> Value:
    """Round halves to integers, ties towards +infinity."""
    return (halves >> 1) + halves[0]


def rounded_sum(halves: Value, other: Value) -> Value:
    """Return ``rounded(halves) + other`` with one adder: the half that rounds is its carry-in."""
    twice = doubled(other)
    return (halves - ~(twice if other.shape().signed else Cat(twice, 0).as_signed())) >> 1


def requantize(
    m: Module,
    value: Value,
    multiplier: Value,
    shift: Value,
    shape: ShapeLike,
    *,
    names: tuple[str, str, str],
    least_shift: int = 0,
    cut: Signal | None = None,
) -> Signal:
    """Scale ``value`` by ``multiplier / 2^(least_shift + shift)`` and clamp it to ``shape``.

    ``value``: signed. ``multiplier``: unsigned, in the same cycle as ``value``. ``shift``: unsigned, a cycle
    after ``value``. ``shape``: of the result. ``names``: of the registers behind the three stages: product,
    shifted product in halves, result. ``least_shift``: places that always go: the product loses them before
    it is shifted. ``cut``: a register of one bit, to be high beside each result that was clamped.

    Returns the result for the ``value`` of `REQUANTIZE_LATENCY` cycles ago; one every cycle.
    """
    check_range("least_shift", least_shift, 0)
    product = Signal(signed(len(value) + len(multiplier)), name=names[0], reset_less=True)
    kept: Value = product >> (least_shift - 1) if least_shift else doubled(product)
    halves = Signal(signed(len(product) + 1 - least_shift), name=names[1], reset_less=True)
    result = Signal(shape, name=names[2], reset_less=True)
    whole = rounded(halves)
    m.d.sync += [
        product.eq(value * multiplier),
        halves.eq(floor_shift(kept, shift)),
        result.eq(saturate(whole, Shape.cast(shape))),
    ]
    if cut is not None:
        m.d.sync += cut.eq(saturates(whole, Shape.cast(shape)))
    return result
