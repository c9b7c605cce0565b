"""The multiplier against algorithm 1 of SP 800-38D, a pair of blocks every cycle."""

import numpy as np

from hw.lib.place import InlinePlacer
from hw.oram.core.crypto.gf_multiplier import GfMultiplier
from tests.support.gateware.play import play
from tests.support.oram.blocks import bits, content
from tests.support.oram.stages import multiply

UNIT = GfMultiplier(InlinePlacer())


def test_products():
    rng = np.random.default_rng(1)
    units = np.packbits(np.eye(128, dtype=np.uint8), axis=1)
    random = rng.integers(0, 256, (2, 128, 16), np.uint8)
    a = np.concatenate([units, units, random[0]])
    b = np.concatenate([np.roll(units, 1, axis=0)[::-1], random[0], random[1]])
    inputs = [[(UNIT.a, bits(x)), (UNIT.b, bits(y))] for x, y in zip(a, b, strict=True)]
    found = play(UNIT, inputs, UNIT.o, UNIT.LATENCY)
    assert [content(value) for value in found] == [multiply(x, y) for x, y in zip(a, b, strict=True)]
