"""An AES lane against the golden AES: a block every cycle, each with its own round keys."""

import numpy as np

from hw.lib.place import InlinePlacer
from hw.oram.core.crypto.aes_lane import ROUND_KEYS, AesLane
from sim.golden.oram import aes
from tests.support.gateware.play import play
from tests.support.oram.blocks import bits, content, round_keys
from tests.support.oram.stages import expand_key

LANE = AesLane(InlinePlacer())


def test_example():
    """FIPS 197, appendix C.1."""
    plaintext = bytes.fromhex("00112233445566778899aabbccddeeff")
    inputs = [[*round_keys(LANE, bytes(range(16))), (LANE.i, bits(plaintext))]]
    (found,) = play(LANE, inputs, LANE.o, LANE.LATENCY)
    assert content(found).hex() == "69c4e0d86a7b0430d8cdb78070b4c55a"


def test_a_block_every_cycle_with_a_key_of_its_own():
    rng = np.random.default_rng(1)
    count = 200
    blocks = rng.integers(0, 256, (count, 16), np.uint8)
    keys = [rng.bytes(16) for _ in range(2)]
    round_keys_of = [expand_key(key) for key in keys]
    chosen = rng.integers(0, 2, count)
    inputs = []
    for n in range(count + ROUND_KEYS):
        inputs.append([(LANE.i, bits(blocks[min(n, count - 1)]))])
        for r in range(ROUND_KEYS):
            key = round_keys_of[chosen[min(max(n - r, 0), count - 1)]]
            inputs[n].append((LANE.round_keys[r], bits(key[r])))
    found = play(LANE, inputs, LANE.o, LANE.LATENCY)
    expected = [aes.encrypt(keys[c], block) for c, block in zip(chosen, blocks, strict=True)]
    assert [content(value) for value in found[:count]] == [block.tobytes() for block in expected]
