"""Round keys and products against the examples of their standards, and against the `cryptography` package."""

import numpy as np
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sim.golden.oram import aes
from tests.support.oram.stages import expand_key, multiply


def test_example_of_key_expansion():
    """FIPS 197, appendix A.1."""
    keys = expand_key(bytes.fromhex("2b7e151628aed2a6abf7158809cf4f3c"))
    assert keys[1].tobytes().hex() == "a0fafe1788542cb123a339392a6c7605"
    assert keys[10].tobytes().hex() == "d014f9a8c9ee2589e13f0cc8b6630ca6"


def test_product_of_an_example():
    """Test case 2 of McGrew and Viega hashes X1 = C1, then X2 = (X1 H + length) H: its intermediate X1 H."""
    hash_key, block = "66e94bd4ef8a2c3b884cfa59ca342b2e", "0388dace60b6a392f328c2b971b2fe78"
    product = multiply(bytes.fromhex(block), bytes.fromhex(hash_key))
    assert product.hex() == "5e2ec746917062882c85b0685353deb7"


def test_products_make_tags():
    """The tag of a block that is authenticated, not encrypted: two products, masked by the first counter."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        key, iv, data = rng.bytes(16), rng.bytes(12), rng.bytes(16)
        hash_key, mask = aes.encrypt(
            key, np.frombuffer(bytes(16) + iv + b"\0\0\0\1", np.uint8).reshape(2, 16)
        )
        length = (128).to_bytes(8, "big") + bytes(8)
        once = np.frombuffer(multiply(data, hash_key), np.uint8) ^ np.frombuffer(length, np.uint8)
        tag = np.frombuffer(multiply(once, hash_key), np.uint8) ^ mask
        assert tag.tobytes() == AESGCM(key).encrypt(iv, b"", data)
        assert multiply(data, hash_key) == multiply(hash_key, data)
