"""The golden AES and GCM against the `cryptography` package."""

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from sim.golden.oram import aes, gcm

keys = st.binary(min_size=16, max_size=16)
seeds = st.integers(0, 2**32 - 1)


@given(keys, seeds)
def test_encryption(key, seed):
    blocks = np.random.default_rng(seed).integers(0, 256, (3, 5, 16), np.uint8)
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    expected = np.frombuffer(encryptor.update(blocks.tobytes()), np.uint8).reshape(blocks.shape)
    np.testing.assert_array_equal(aes.encrypt(aes.expand_key(key), blocks), expected)


@given(keys, seeds, st.integers(0, 9), st.sampled_from([8, 12, 16]))
def test_gcm(key, seed, blocks, tag_bytes):
    rng = np.random.default_rng(seed)
    ivs = rng.integers(0, 256, (5, 12), np.uint8)
    plaintexts = rng.integers(0, 256, (5, 16 * blocks), np.uint8)
    cipher, oracle = gcm.Gcm(key, tag_bytes=tag_bytes), AESGCM(key)
    ciphertexts, tags = cipher.seal(ivs, plaintexts)
    expected = [
        oracle.encrypt(iv.tobytes(), p.tobytes(), None) for iv, p in zip(ivs, plaintexts, strict=True)
    ]
    assert [c.tobytes() for c in ciphertexts] == [e[:-16] for e in expected]
    assert [tag.tobytes() for tag in tags] == [e[-16:][:tag_bytes] for e in expected]
    opened, right = cipher.open(ivs, ciphertexts, tags)
    assert right.all()
    np.testing.assert_array_equal(opened, plaintexts)


@given(keys, seeds)
def test_products(a, seed):
    """Algorithm 1 against hashes of one block, which use tables."""
    b = np.random.default_rng(seed).integers(0, 256, (9, 16), np.uint8)
    hash_key = np.frombuffer(a, np.uint8)
    np.testing.assert_array_equal(gcm.multiply(b, hash_key), gcm.ghash(hash_key, b[:, None]))
    np.testing.assert_array_equal(gcm.multiply(hash_key, b), gcm.multiply(b, hash_key))
