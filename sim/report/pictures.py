"""Pictures within a page."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
from numpy.typing import NDArray


def png(pixels: NDArray[np.uint8]) -> bytes:
    """Return pixels ``[rows, columns, 3]``, red, green and blue, as a PNG (ISO/IEC 15948)."""
    rows, columns, _ = pixels.shape
    # Each row behind the number of its filter, 0 for none.
    filtered = np.concatenate([np.zeros((rows, 1), np.uint8), pixels.reshape(rows, -1)], axis=1)
    header = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(filtered.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, content) for kind, content in chunks)


def embedded(pixels: NDArray[np.uint8]) -> str:
    """Return the address of a picture that is within the page itself."""
    return "data:image/png;base64," + base64.b64encode(png(pixels)).decode()


def _chunk(kind: bytes, content: bytes) -> bytes:
    checked = kind + content
    return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))
