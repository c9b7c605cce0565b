"""Fixed-point arithmetic: rounding, saturation, shifts and leading zeros, as Amaranth expressions.

Each function is defined in `tests/support/gateware/fixed.py`, which has the same functions for
NumPy; the tests hold the two together.  Here only the shapes of results are said: ``W`` is the width of
``value``, ``S`` a constant shift; a result of a rounding or a shift is signed when ``value`` is.  Pass
signals: each function uses its value several times, and an Amaranth expression is built anew at each use.
"""

from amaranth.hdl import Cat, Const, Module, Mux, Shape, ShapeLike, Signal, Value

from hw.errors import InputError, check_range

#: Widest shift amount that is a signal: a wider one would make masks of astronomic width.
MAX_SHIFT_BITS = 6


def round_half_up(value: Value, shift: int | Value) -> Value:
    """Divide by 2**shift, nearest, ties towards +infinity.

    Shape: ``max(W - S + 1, 1)`` bits for a constant shift, ``W + 1`` for a variable one.
    """
    quotient, half, _ = _parts(value, shift)
    return _resized(quotient + half, _rounded_shape(value, shift))


def round_half_even(value: Value, shift: int | Value) -> Value:
    """Divide by 2**shift, nearest, ties to the even quotient; shape as of `round_half_up`."""
    quotient, half, sticky = _parts(value, shift)
    return _resized(quotient + (half & (sticky | quotient[0])), _rounded_shape(value, shift))


def floor_shift(value: Value, shift: int | Value) -> Value:
    """Divide by 2**shift, towards -infinity.

    Shape: ``max(W - S, 1)`` bits for a constant shift, ``W`` for a variable one.
    """
    value = Value.cast(value)
    _check_shift(shift)
    width = max(len(value) - shift, 1) if isinstance(shift, int) else len(value)
    return _resized(value >> shift, Shape(width, value.shape().signed))


def saturate(value: Value, shape: ShapeLike) -> Value:
    """Clamp to the range of ``shape``; the result has that shape."""
    value = Value.cast(value)
    target = Shape.cast(shape)
    low, high = _ends(target)
    clamped = Mux(value > high, Const(high, target), _resized(value, target))
    return _resized(Mux(value < low, Const(low, target), clamped), target)


def saturates(value: Value, shape: ShapeLike) -> Value:
    """Say whether `saturate` changes the value."""
    low, high = _ends(Shape.cast(shape))
    return (value > high) | (value < low)


def _ends(shape: Shape) -> tuple[int, int]:
    if shape.width == 0:
        raise InputError("shape", shape, "at least one bit wide")
    low = -(1 << (shape.width - 1)) if shape.signed else 0
    return low, (1 << (shape.width - shape.signed)) - 1


def leading_zeros(m: Module, value: Value) -> Signal:
    """Count the zero bits above the highest one bit; ``W`` for zero.

    Shape: unsigned, ``W.bit_length()`` bits.  The depth of the logic grows with the logarithm of ``W``.  It
    needs the module to put its intermediate counts into signals.  As one expression, which cannot share a
    part it uses three times, it would grow with ``W**1.6``.
    """
    value = Value.cast(value)
    width = len(value)
    if width == 0:
        raise InputError("value", value, "at least one bit wide")
    # Ones put below the value make the length a power of two and end the count of a zero at W.
    padding = (1 << (width - 1).bit_length()) - width
    count = _leading_zeros_of_power_of_two(m, Cat(Const(1, 1).replicate(padding), value))
    result = Signal(width.bit_length(), name="leading_zeros")
    m.d.comb += result.eq(count)
    return result


def _leading_zeros_of_power_of_two(m: Module, bits: Value) -> Value:
    """Count for 2**k bits, in k + 1 bits: the top bit alone says "all zero"."""
    if len(bits) == 1:
        return ~bits
    half = len(bits) // 2
    upper = _leading_zeros_of_power_of_two(m, bits[half:])
    lower = _leading_zeros_of_power_of_two(m, bits[:half])
    count = Signal(len(upper) + 1, name=f"zeros_of_{len(bits)}")
    with m.If(~upper[-1]):
        m.d.comb += count.eq(upper)
    with m.Elif(~lower[-1]):
        m.d.comb += count.eq(Cat(lower[:-1], 1))
    with m.Else():
        m.d.comb += count.eq(len(bits))
    return count


def _check_shift(shift: int | Value) -> None:
    if isinstance(shift, int):
        check_range("shift", shift, 0)
        return
    shape = Value.cast(shift).shape()
    if shape.signed or shape.width > MAX_SHIFT_BITS:
        raise InputError("shift", shape, f"unsigned and at most {MAX_SHIFT_BITS} bits wide")


def _parts(value: Value, shift: int | Value) -> tuple[Value, Value, Value]:
    """Split ``value``: floor quotient, the dropped bit worth one half, and whether a lower one is set."""
    value = Value.cast(value)
    _check_shift(shift)
    # One zero bit below is the half bit of a shift of 0.
    doubled = _resized(Cat(Const(0, 1), value), Shape(len(value) + 1, value.shape().signed))
    shifted = doubled >> shift
    return shifted >> 1, shifted[0], (doubled & ((1 << shift) - 1)).any()


def _rounded_shape(value: Value, shift: int | Value) -> Shape:
    shape = Value.cast(value).shape()
    width = max(shape.width - shift + 1, 1) if isinstance(shift, int) else shape.width + 1
    return Shape(width, shape.signed)


def _resized(value: Value, shape: Shape) -> Value:
    """Cut or extend ``value``, by its own sign, to exactly ``shape``."""
    if len(value) < shape.width:
        fill = value[-1] if value.shape().signed else Const(0, 1)
        value = Cat(value, fill.replicate(shape.width - len(value)))
    bits = value[: shape.width]
    return bits.as_signed() if shape.signed else bits.as_unsigned()
