"""The golden AES against FIPS 197's examples."""

import numpy as np
import pytest

from sim.golden.oram import aes


def test_example_of_encryption():
    """FIPS 197, appendix C.1."""
    keys = aes.expand_key(bytes(range(16)))
    plaintext = np.frombuffer(bytes.fromhex("00112233445566778899aabbccddeeff"), np.uint8)
    assert aes.encrypt(keys, plaintext).tobytes().hex() == "69c4e0d86a7b0430d8cdb78070b4c55a"


def test_example_of_key_expansion():
    """FIPS 197, appendix A.1."""
    keys = aes.expand_key(bytes.fromhex("2b7e151628aed2a6abf7158809cf4f3c"))
    assert keys[1].tobytes().hex() == "a0fafe1788542cb123a339392a6c7605"
    assert keys[10].tobytes().hex() == "d014f9a8c9ee2589e13f0cc8b6630ca6"


def test_keys_of_other_sizes_are_refused():
    with pytest.raises(ValueError, match="16 bytes, not 24"):
        aes.expand_key(bytes(24))
