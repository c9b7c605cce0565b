"""The keys of a map, the keyed permutation of keys, and the random draws of operations."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.golden.oram.aes import Bytes, encrypt

Keys = NDArray[np.uint64]

ROUNDS = 4


class MapKeys(NamedTuple):
    """The keys of pages, of the permutation and of draws, 16 bytes each."""

    page: bytes
    permutation: bytes
    draw: bytes


def map_keys(seed: bytes, epoch: int) -> MapKeys:
    """Return the keys of a map from its seed, 16 bytes: the labels 1, 2 and 3 with the epoch encrypted under
    it.

    A block is the label, then the epoch, 8 bytes each, the lowest first.
    """
    labels = np.arange(1, 1 + len(MapKeys._fields), dtype="<u8")
    blocks = np.stack([labels, np.full_like(labels, epoch)], axis=1).view(np.uint8)
    return MapKeys(*(block.tobytes() for block in encrypt(seed, blocks)))


def permute(key: bytes, keys: Keys, *, key_bits: int) -> Keys:
    """Permute ``keys`` of ``key_bits`` (32 or 64): a balanced Feistel network of four rounds.

    With high half L and low half R, round r yields R and L ^ F(r, R). F encrypts a block with R in its first
    bytes, the lowest first, r in byte 15 and zeros between. Its value is the first bytes of the result.
    """
    half = np.uint64(key_bits // 2)
    left, right = keys >> half, keys & ((np.uint64(1) << half) - np.uint64(1))
    for number in range(ROUNDS):
        left, right = right, left ^ _round(key, number, right, key_bits)
    return left << half | right


def draw(key: bytes, operations: Keys, *, draws: int) -> Bytes:
    """Return the ``draws`` blocks of random bits of each operation, [..., draws, 16].

    AES in counter mode (SP 800-90A, section 10.2.1). Its updates are omitted, since a key serves one session.
    Draw d of operation n encrypts a block with n in bytes 0 to 7, the lowest first, and d in byte 8.
    """
    blocks = np.zeros((*operations.shape, draws, 16), np.uint8)
    blocks[..., :8] = operations.astype("<u8")[..., None, None].view(np.uint8)
    blocks[..., 8] = np.arange(draws)
    return encrypt(key, blocks)


def _round(key: bytes, number: int, half: Keys, key_bits: int) -> Keys:
    size = key_bits // 16
    blocks = np.zeros((*half.shape, 16), np.uint8)
    blocks[..., :size] = half.astype("<u8")[..., None].view(np.uint8)[..., :size]
    blocks[..., 15] = number
    found = np.zeros((*half.shape, 8), np.uint8)
    found[..., :size] = encrypt(key, blocks)[..., :size]
    return found.view("<u8")[..., 0].astype(np.uint64)
