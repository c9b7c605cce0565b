"""Galois/Counter Mode of many messages of one length (NIST SP 800-38D), by the package `cryptography`.

Messages have no additional data, and initialization vectors of 96 bits.
"""

import numpy as np
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from numpy.typing import NDArray

from sim.golden.oram.aes import Bytes

_TAG_BYTES = 16


class Gcm:
    """AES-128-GCM with one key.

    ``key``: 16 bytes. ``tag_bytes``: bytes of a tag in use: the first of 16.
    """

    def __init__(self, key: bytes, *, tag_bytes: int = _TAG_BYTES) -> None:
        self._cipher = AESGCM(key)
        self.tag_bytes = tag_bytes

    def seal(self, ivs: Bytes, plaintexts: Bytes) -> tuple[Bytes, Bytes]:
        """Encrypt ``plaintexts`` [n, bytes] under ``ivs`` [n, 12]; return ciphertexts and tags."""
        sealed = b"".join(
            self._cipher.encrypt(iv.tobytes(), text.tobytes(), None)
            for iv, text in zip(ivs, plaintexts, strict=True)
        )
        size = plaintexts.shape[1]
        rows = np.frombuffer(sealed, np.uint8).reshape(-1, size + _TAG_BYTES)
        return rows[:, :size], rows[:, size : size + self.tag_bytes]


def seal_pages(gcm: Gcm, pages: NDArray[np.uint64], versions: NDArray[np.uint64], content: Bytes) -> Bytes:
    """Seal pages of the host's memory: 16 bytes with the tag, then the ciphertext.

    ``pages``, ``versions``: number and version of each page, below 2^48; both form the initialization vector,
    6 bytes each, the lowest first. ``content``: [n, P - 16]: the plain text.
    """
    ciphertexts, tags = gcm.seal(page_ivs(pages, versions), content)
    padding = np.zeros((len(tags), _TAG_BYTES - gcm.tag_bytes), np.uint8)
    return np.concatenate([tags, padding, ciphertexts], axis=1)


def page_ivs(pages: NDArray[np.uint64], versions: NDArray[np.uint64]) -> Bytes:
    """Return the initialization vectors [n, 12] of pages."""
    halves = [np.asarray(x, "<u8")[:, None].view(np.uint8)[:, :6] for x in (pages, versions)]
    return np.concatenate(halves, axis=1)
