"""AES-128 encryption of many blocks at once (FIPS 197)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

ROUNDS = 10


def _double(bytes_: Bytes) -> Bytes:
    """Multiply by {02} in GF(2^8) (section 4.2)."""
    return ((bytes_ << 1) ^ (bytes_ >> 7) * np.uint8(0x1B)).astype(np.uint8)


def _product(a: Bytes, b: Bytes) -> Bytes:
    """Multiply in GF(2^8)."""
    total = np.zeros(np.broadcast_shapes(a.shape, b.shape), np.uint8)
    for bit in range(8):
        total ^= (b >> bit & 1) * a
        a = _double(a)
    return total


def _make_sbox() -> Bytes:
    """Section 5.1.1: the multiplicative inverse, then b'[i] = b[i] + b[i+4] + ... + b[i+7] + c[i]."""
    every = np.arange(256, dtype=np.uint8)
    products = _product(every[:, None], every[None, :])
    inverse = (products == 1).argmax(axis=1)  # 0 for 0, which has no inverse
    bits = inverse[:, None] >> np.arange(8) & 1
    mapped = sum(np.roll(bits, -n, axis=1) for n in (0, 4, 5, 6, 7)) + (0x63 >> np.arange(8) & 1)
    return np.packbits(mapped % 2 == 1, axis=1, bitorder="little").ravel()


SBOX = _make_sbox()
#: Source byte of each byte of the state in ShiftRows: s[r, c] is byte r + 4 c.
_SHIFTED = np.array([n % 4 + 4 * ((n // 4 + n % 4) % 4) for n in range(16)])


def expand_key(key: bytes) -> Bytes:
    """Return the round keys of a 16-byte key, [11, 16] (section 5.2)."""
    if len(key) != 16:
        raise ValueError(f"a key of AES-128 has 16 bytes, not {len(key)}")
    words = list(np.frombuffer(key, np.uint8).reshape(4, 4))
    constant = np.array([1, 0, 0, 0], np.uint8)
    for i in range(4, 4 * (ROUNDS + 1)):
        word = words[-1]
        if i % 4 == 0:
            word = SBOX[np.roll(word, -1)] ^ constant
            constant = _double(constant)
        words.append(words[-4] ^ word)
    return np.array(words).reshape(ROUNDS + 1, 16)


def encrypt(round_keys: Bytes, blocks: Bytes) -> Bytes:
    """Encrypt ``blocks`` [..., 16] (section 5.1)."""
    state = blocks ^ round_keys[0]
    for key in round_keys[1:ROUNDS]:
        state = _mix_columns(SBOX[state][..., _SHIFTED]) ^ key
    return SBOX[state][..., _SHIFTED] ^ round_keys[ROUNDS]


def _mix_columns(state: Bytes) -> Bytes:
    """Section 5.1.3: s'[r] = {02} s[r] + {03} s[r+1] + s[r+2] + s[r+3] in each column."""
    columns = state.reshape(*state.shape[:-1], 4, 4)
    one, two, three = (np.roll(columns, -n, axis=-1) for n in (1, 2, 3))
    return (_double(columns) ^ _double(one) ^ one ^ two ^ three).reshape(state.shape)
