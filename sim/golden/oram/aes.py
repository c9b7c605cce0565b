"""AES-128 encryption of many blocks at once (FIPS 197), by the package `cryptography`."""

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]


def encrypt(key: bytes, blocks: Bytes) -> Bytes:
    """Encrypt ``blocks`` [..., 16] under a key of 16 bytes."""
    if len(key) != 16:
        raise ValueError(f"a key of AES-128 has 16 bytes, not {len(key)}")
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    return np.frombuffer(encryptor.update(blocks.tobytes()), np.uint8).reshape(blocks.shape)
