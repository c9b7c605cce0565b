"""Galois/Counter Mode of many messages of one length at once (NIST SP 800-38D).

Messages have no additional data, and initialization vectors of 96 bits.
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from sim.golden.oram.aes import Bytes, encrypt, expand_key

Blocks = NDArray[np.uint64]  # [..., 2]: bit x^0 is the highest of word 0, x^127 the lowest of word 1

IV_BYTES = 12
_R = np.uint64(0xE1 << 56)
_ONE = np.uint64(1)


def _to_words(blocks: Bytes) -> Blocks:
    return np.ascontiguousarray(blocks).view(">u8").astype(np.uint64)


def _to_bytes(words: Blocks) -> Bytes:
    return words.astype(">u8").view(np.uint8)


def multiply(x: Bytes, y: Bytes) -> Bytes:
    """Multiply blocks [..., 16] of GF(2^128) (section 6.3, algorithm 1)."""
    x_words, v = _to_words(x), _to_words(y)
    shape = np.broadcast_shapes(x_words.shape, v.shape)
    z = np.zeros(shape, np.uint64)
    for i in range(128):
        bit = x_words[..., i // 64] >> np.uint64(63 - i % 64) & _ONE
        z ^= bit[..., None] * v
        v = _times_x(v)
    return _to_bytes(z)


def _times_x(v: Blocks) -> Blocks:
    """Shift right by one, and add R if the last bit was one."""
    high, low = v[..., 0], v[..., 1]
    return np.stack([high >> _ONE ^ (low & _ONE) * _R, low >> _ONE ^ high << np.uint64(63)], axis=-1)


@functools.lru_cache(maxsize=8)
def _table(hash_key: bytes) -> Blocks:
    """Return the products of a hash key and every byte at every place, [16, 256, 2]."""
    v = _to_words(np.frombuffer(hash_key, np.uint8))
    multiples = []
    for _ in range(128):
        multiples.append(v)
        v = _times_x(v)
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.uint64)
    by_place = np.array(multiples).reshape(16, 1, 8, 2)
    return np.bitwise_xor.reduce(bits[None, :, :, None] * by_place, axis=2)


def ghash(hash_key: Bytes, blocks: Bytes) -> Bytes:
    """Return the hash [..., 16] of ``blocks`` [..., n, 16] (section 6.4, algorithm 2)."""
    table = _table(hash_key.tobytes())
    places = np.arange(16)
    y = np.zeros((*blocks.shape[:-2], 16), np.uint8)
    for n in range(blocks.shape[-2]):
        products = table[places, y ^ blocks[..., n, :]]
        y = _to_bytes(np.bitwise_xor.reduce(products, axis=-2))
    return y


class Gcm:
    """AES-128-GCM with one key.

    ``key``: 16 bytes. ``tag_bytes``: bytes of a tag in use: the first of 16.
    """

    def __init__(self, key: bytes, *, tag_bytes: int = 16) -> None:
        self._round_keys = expand_key(key)
        self._hash_key = encrypt(self._round_keys, np.zeros(16, np.uint8))
        self.tag_bytes = tag_bytes

    def seal(self, ivs: Bytes, plaintexts: Bytes) -> tuple[Bytes, Bytes]:
        """Encrypt ``plaintexts`` [..., 16 n] under ``ivs`` [..., 12].

        Return the ciphertexts, and the tags [..., tag_bytes] (section 7.1, algorithm 4).
        """
        keystream = self._keystream(ivs, plaintexts.shape[-1])
        ciphertexts = plaintexts ^ keystream[..., 16:]
        return ciphertexts, self._tags(ciphertexts, keystream[..., :16])

    def open(self, ivs: Bytes, ciphertexts: Bytes, tags: Bytes) -> tuple[Bytes, NDArray[np.bool_]]:
        """Undo `seal`: return the plaintexts, and whether each tag is right (section 7.2, algorithm 5)."""
        keystream = self._keystream(ivs, ciphertexts.shape[-1])
        right = (self._tags(ciphertexts, keystream[..., :16]) == tags).all(axis=-1)
        return ciphertexts ^ keystream[..., 16:], right

    def _keystream(self, ivs: Bytes, length: int) -> Bytes:
        """Encrypt the counter blocks: J0 for the tag, and one for each block of ``length`` bytes."""
        if length % 16:
            raise ValueError(f"messages have whole blocks, not {length} bytes")
        count = length // 16 + 1
        counters = np.arange(1, count + 1, dtype=">u4").view(np.uint8).reshape(count, 4)
        blocks = np.empty((*ivs.shape[:-1], count, 16), np.uint8)
        blocks[..., :IV_BYTES] = ivs[..., None, :]
        blocks[..., IV_BYTES:] = counters
        return encrypt(self._round_keys, blocks).reshape(*ivs.shape[:-1], 16 * count)

    def _tags(self, ciphertexts: Bytes, masks: Bytes) -> Bytes:
        lengths = np.array([0, 8 * ciphertexts.shape[-1]], ">u8").view(np.uint8)
        shape = ciphertexts.shape[:-1]
        last = np.broadcast_to(lengths, (*shape, 16))
        hashed = np.concatenate([ciphertexts, last], axis=-1).reshape(*shape, -1, 16)
        return (ghash(self._hash_key, hashed) ^ masks)[..., : self.tag_bytes]


def seal_pages(gcm: Gcm, pages: NDArray[np.uint64], versions: NDArray[np.uint64], content: Bytes) -> Bytes:
    """Seal pages of the host's memory: 16 bytes with the tag, then the ciphertext.

    ``pages``, ``versions``: number and version of each page, below 2^48; both form the initialization vector,
    6 bytes each, the lowest first. ``content``: [..., P - 16]: the plain text.
    """
    ciphertexts, tags = gcm.seal(page_ivs(pages, versions), content)
    padding = np.zeros((*tags.shape[:-1], 16 - tags.shape[-1]), np.uint8)
    return np.concatenate([tags, padding, ciphertexts], axis=-1)


def open_pages(
    gcm: Gcm, pages: NDArray[np.uint64], versions: NDArray[np.uint64], sealed: Bytes
) -> tuple[Bytes, NDArray[np.bool_]]:
    """Undo `seal_pages`: return the plain text, and whether each page is genuine to the last bit."""
    tag_bytes = gcm.tag_bytes
    tags, padding = sealed[..., :tag_bytes], sealed[..., tag_bytes:16]
    content, right = gcm.open(page_ivs(pages, versions), sealed[..., 16:], tags)
    return content, right & ~padding.any(axis=-1)


def page_ivs(pages: NDArray[np.uint64], versions: NDArray[np.uint64]) -> Bytes:
    """Return the initialization vectors [..., 12] of pages."""
    halves = [np.asarray(x, "<u8")[..., None].view(np.uint8)[..., :6] for x in (pages, versions)]
    return np.concatenate(halves, axis=-1)
