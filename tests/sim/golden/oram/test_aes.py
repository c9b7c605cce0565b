"""The golden AES against FIPS 197's examples."""

import numpy as np
import pytest

from sim.golden.oram import aes


def test_example_of_encryption():
    """FIPS 197, appendix C.1; of many blocks each is encrypted alone."""
    plaintext = np.frombuffer(bytes.fromhex("00112233445566778899aabbccddeeff"), np.uint8)
    found = aes.encrypt(bytes(range(16)), np.tile(plaintext, (3, 5, 1)))
    assert found.shape == (3, 5, 16)
    assert {block.tobytes().hex() for block in found.reshape(-1, 16)} == {"69c4e0d86a7b0430d8cdb78070b4c55a"}


def test_keys_of_other_sizes_are_refused():
    with pytest.raises(ValueError, match="16 bytes, not 24"):
        aes.encrypt(bytes(24), np.zeros(16, np.uint8))
