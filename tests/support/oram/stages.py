"""Stages of AES-128-GCM that no library shows: round keys (FIPS 197), products of GF(2^128) (SP 800-38D)."""

from __future__ import annotations

import numpy as np

ROUNDS = 10


def _double(byte):
    """Multiply by {02} in GF(2^8) (FIPS 197, section 4.2)."""
    return byte << 1 & 0xFF ^ (byte >> 7) * 0x1B


def _product(a, b):
    """Multiply in GF(2^8)."""
    total = 0
    while b:
        total ^= (b & 1) * a
        a, b = _double(a), b >> 1
    return total


def _substituted(byte):
    """Section 5.1.1: the multiplicative inverse, then b'[i] = b[i] + b[i+4] + ... + b[i+7] + c[i]."""
    inverse = next((other for other in range(256) if _product(byte, other) == 1), 0)
    turned = inverse << 8 | inverse
    return (inverse ^ turned >> 7 ^ turned >> 6 ^ turned >> 5 ^ turned >> 4 ^ 0x63) & 0xFF


SBOX = bytes(map(_substituted, range(256)))


def expand_key(key):
    """Return the round keys of a 16-byte key, [11, 16] (section 5.2)."""
    words = [key[4 * n : 4 * n + 4] for n in range(4)]
    constant = 1
    for i in range(4, 4 * (ROUNDS + 1)):
        word = words[-1]
        if i % 4 == 0:
            word = bytes(SBOX[byte] for byte in word[1:] + word[:1])
            word = bytes([word[0] ^ constant]) + word[1:]
            constant = _double(constant)
        words.append(bytes(a ^ b for a, b in zip(words[-4], word, strict=True)))
    return np.frombuffer(b"".join(words), np.uint8).reshape(ROUNDS + 1, 16)


def multiply(x, y):
    """Multiply blocks of 16 bytes in GF(2^128) (SP 800-38D, section 6.3, algorithm 1)."""
    z, v = 0, int.from_bytes(bytes(y), "big")
    for bit in f"{int.from_bytes(bytes(x), 'big'):0128b}":
        z ^= int(bit) * v
        v = v >> 1 ^ (v & 1) * (0xE1 << 120)
    return z.to_bytes(16, "big")
