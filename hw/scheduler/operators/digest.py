"""The function of a traffic engine, as combinational logic; ``docs/scheduler.md`` defines it by these names.

With the other words fixed, ``w[k] -> s`` and ``s -> out`` are bijections.  So one wrong word always changes
the operator's last word, and so the network's outputs.  Adding ``G * (k + 1)`` makes positions distinct: its
carries do not commute with the exclusive or.

The loop from digest to digest is one exclusive or; both adders are outside of it.  So the engine takes a word
a cycle at any clock.
"""

from amaranth.hdl import Cat, Const, Value

LANE_BITS = 32
#: 2^32 / golden ratio, odd: consecutive multiples toggle every bit.
POSITION_STEP = 0x9E3779B9
OUTPUT_STEP = 0x85EBCA6B
ROTATION = 7


def lane_constants(lanes: int) -> tuple[int, ...]:
    """Return ``c``, one constant a lane."""
    return tuple(POSITION_STEP * (lane + 1) % 2**LANE_BITS for lane in range(lanes))


def first_digest(operator: Value, lanes: int) -> Value:
    """Return ``s[0]`` of an operator."""
    return Cat((operator + Const(constant, LANE_BITS))[:LANE_BITS] for constant in lane_constants(lanes))


def located(word: Value, position: Value) -> Value:
    """Add ``position``, which is ``G * (k + 1)``, to every lane of ``w[k]``."""
    return Cat((lane + position)[:LANE_BITS] for lane in _lanes(word))


def next_digest(digest: Value, word: Value) -> Value:
    """Return ``s[k+1]`` from ``s[k]`` and the `located` word ``w[k]``."""
    lanes = _lanes(digest)
    following = [*lanes[1:], lanes[0]]
    return Cat(lane.rotate_left(ROTATION) ^ new for lane, new in zip(following, _lanes(word), strict=True))


def output_word(digest: Value, key: Value) -> Value:
    """Return ``out`` from ``s[n]`` and ``u``."""
    lanes = _lanes(digest)
    constants = lane_constants(len(lanes))
    return Cat(((lane ^ constant) + key)[:LANE_BITS] for lane, constant in zip(lanes, constants, strict=True))


def _lanes(word: Value) -> list[Value]:
    return [word[low : low + LANE_BITS] for low in range(0, len(word), LANE_BITS)]
