"""The function a traffic engine computes: every word it writes depends on words it has read.

All arithmetic is on lanes of 32 bits, modulo 2^32; a word of ``word_bytes`` has ``L = word_bytes / 4`` lanes,
lane 0 in its lowest bytes, each little-endian.  ``rotl`` rotates a lane to the left.  ``G`` is
`POSITION_STEP`, ``H`` is `OUTPUT_STEP`, ``r`` is `ROTATION` and ``c[l] = G * (l + 1)``.

Operator number ``p`` reads the words ``w[0] ... w[I-1]`` of all its inputs, one input after the other, into a
digest ``s``::

    s[0][l]   = c[l] + p
    s[k+1][l] = rotl(s[k][(l + 1) % L], r) ^ (w[k][l] + G * (k + 1))

It writes ``O`` words, those of all its outputs one after the other.  Word ``j`` of them, which is word ``i``
of output ``q`` (both from 0), is::

    n         = ceil((j + 1) * I / O)          # words read before it; the last has seen all
    u         = (p << 16 | q) + H * (i + 1)
    out[l]    = (s[n][l] ^ c[l]) + u

For fixed other words, ``w[k] -> s`` and ``s -> out`` are one to one: a single wrong word always shows in the
operator's last word, and so on to the network's outputs.  Positions differ by the added ``G * (k + 1)``: its
carries do not commute with the exclusive or.

The feedback from digest to digest is one exclusive or behind wires: both adders stand outside of it, so the
engine takes a word a cycle at any clock.
"""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Value

LANE_BITS = 32
#: 2^32 / golden ratio, odd: consecutive multiples differ in every bit sooner or later.
POSITION_STEP = 0x9E3779B9
OUTPUT_STEP = 0x85EBCA6B
ROTATION = 7


def lane_constants(lanes: int) -> tuple[int, ...]:
    """Give ``c``: one constant a lane."""
    return tuple(POSITION_STEP * (lane + 1) % 2**LANE_BITS for lane in range(lanes))


def first_digest(operator: Value, lanes: int) -> Value:
    """Give ``s[0]`` of an operator."""
    return Cat((operator + Const(constant, LANE_BITS))[:LANE_BITS] for constant in lane_constants(lanes))


def located(word: Value, position: Value) -> Value:
    """Add ``position``, which is ``G * (k + 1)``, to every lane of ``w[k]``."""
    return Cat((lane + position)[:LANE_BITS] for lane in _lanes(word))


def next_digest(digest: Value, word: Value) -> Value:
    """Give ``s[k+1]`` from ``s[k]`` and the `located` word ``w[k]``."""
    lanes = _lanes(digest)
    following = [*lanes[1:], lanes[0]]
    return Cat(lane.rotate_left(ROTATION) ^ new for lane, new in zip(following, _lanes(word), strict=True))


def output_word(digest: Value, key: Value) -> Value:
    """Give ``out`` from ``s[n]`` and ``u``."""
    lanes = _lanes(digest)
    constants = lane_constants(len(lanes))
    return Cat(((lane ^ constant) + key)[:LANE_BITS] for lane, constant in zip(lanes, constants, strict=True))


def _lanes(word: Value) -> list[Value]:
    return [word[low : low + LANE_BITS] for low in range(0, len(word), LANE_BITS)]
