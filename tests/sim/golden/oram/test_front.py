"""The permutation is bijective, and its key and every input bit matter."""

import numpy as np
import pytest

from sim.golden.oram import aes, front

KEY = b"of sixteen bytes"


def unpermuted(permuted, key_bits):
    """Undo the four rounds, the last first; F encrypts a half, zeros, and the number of the round."""
    size, half = key_bits // 16, np.uint64(key_bits // 2)
    left, right = permuted >> half, permuted & np.uint64((1 << key_bits // 2) - 1)
    for number in reversed(range(4)):
        blocks = [int(n).to_bytes(15, "little") + bytes([number]) for n in left]
        block = aes.encrypt(KEY, np.frombuffer(b"".join(blocks), np.uint8).reshape(-1, 16))
        function = [int.from_bytes(row[:size].tobytes(), "little") for row in block]
        left, right = right ^ np.array(function, np.uint64), left
    return left << half | right


@pytest.mark.parametrize("key_bits", [32, 64])
def test_permutation(key_bits):
    rng = np.random.default_rng(key_bits)
    keys = rng.integers(0, (1 << key_bits) - 1, 5000, np.uint64, endpoint=True)
    keys[:3] = 0, 1, (1 << key_bits) - 1
    permuted = front.permute(KEY, keys, key_bits=key_bits)
    assert permuted.max() < 1 << key_bits
    np.testing.assert_array_equal(unpermuted(permuted, key_bits), keys)
    assert len(np.unique(permuted)) == len(np.unique(keys))


@pytest.mark.parametrize("key_bits", [32, 64])
def test_every_bit_changes_half_of_the_bits(key_bits):
    keys = np.random.default_rng(1).integers(0, (1 << key_bits) - 1, (500, 1), np.uint64)
    flips = np.uint64(1) << np.arange(key_bits, dtype=np.uint64)
    changed = front.permute(KEY, keys ^ flips, key_bits=key_bits)
    changed ^= front.permute(KEY, keys, key_bits=key_bits)
    share = np.unpackbits(changed[..., None].view(np.uint8), axis=-1).sum(axis=-1).mean(axis=0) / key_bits
    assert abs(share - 0.5).max() < 0.03  # of 500 * key_bits bits: over 7 standard deviations


def test_keys_give_other_permutations():
    keys = np.arange(1000, dtype=np.uint64)
    first = front.permute(KEY, keys, key_bits=64)
    assert not (first == front.permute(bytes(16), keys, key_bits=64)).any()


def test_draws_differ():
    drawn = front.draw(KEY, np.arange(1000, dtype=np.uint64), draws=2)
    assert len(np.unique(drawn.reshape(-1, 16), axis=0)) == 2000
    first = aes.encrypt(KEY, np.frombuffer(bytes([7, *bytes(7), 1, *bytes(7)]), np.uint8))
    np.testing.assert_array_equal(drawn[7, 1], first)
