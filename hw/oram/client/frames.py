"""A file of frames that only grows, and that a crash at any point leaves readable.

A frame is a header and a body. The header has a mark, the length of the body, and the bytes of the file that
were on the disk before the frame was written. Its last field is a checksum of all other parts but the mark.
"""

import os
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Self

from hw.oram.client.errors import JournalError

_MARK = b"LWF1"
_HEADER = struct.Struct("<4sIQI")
_LENGTHS = struct.Struct("<IQ")


class FrameFile:
    """An open file of frames.

    Why
    ---
    Bytes that were not synchronized may be lost in any part, so `open` drops all behind the first bad frame.
    A later frame which says that this part was on the disk proves damage instead: the file is refused.
    """

    def __init__(self, path: Path, descriptor: int, size: int) -> None:
        self.path = path
        self.size_bytes = size
        self._descriptor = descriptor
        self._synced = size

    @classmethod
    def create(cls, path: Path, bodies: Iterable[bytes]) -> Self:
        """Make the file with these frames, or replace it at once by them."""
        draft = path.with_name(path.name + ".new")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        content = b"".join(_frame(body, 0) for body in bodies)
        try:
            _write(descriptor, content)
            os.fsync(descriptor)
            os.replace(draft, path)
            _sync_folder(path)
        except BaseException:
            os.close(descriptor)
            raise
        return cls(path, descriptor, len(content))

    @classmethod
    def open(cls, path: Path) -> tuple[Self, list[bytes]]:
        """Open the file and return its bodies. All of them are on the disk when this returns.

        Raises `JournalError` for a damaged file.
        """
        descriptor = os.open(path, os.O_RDWR)
        content = path.read_bytes()
        bodies, end = [], 0
        while (frame := _frame_at(content, end)) is not None:
            bodies.append(frame[0])
            end += _HEADER.size + len(frame[0])
        at = content.find(_MARK, end)
        while at >= 0:
            later = _frame_at(content, at)
            if later is not None and later[1] > end:
                os.close(descriptor)
                raise JournalError(f"{path} is damaged at byte {end}: load a new map")
            at = content.find(_MARK, at + 1)
        # A killed process may have left bytes in the system's cache: nobody acts on them before they last.
        os.ftruncate(descriptor, end)
        os.lseek(descriptor, end, os.SEEK_SET)
        os.fsync(descriptor)
        _sync_folder(path)
        return cls(path, descriptor, end), bodies

    def append(self, bodies: Iterable[bytes], *, sync: bool) -> None:
        """Write frames; with ``sync`` they are on the disk when this returns."""
        content = b"".join(_frame(body, self._synced) for body in bodies)
        _write(self._descriptor, content)
        self.size_bytes += len(content)
        if sync:
            os.fsync(self._descriptor)
            self._synced = self.size_bytes

    def close(self) -> None:
        """Close the file, if it is open."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _frame(body: bytes, synced: int) -> bytes:
    lengths = _LENGTHS.pack(len(body), synced)
    return _MARK + lengths + zlib.crc32(lengths + body).to_bytes(4, "little") + body


def _frame_at(content: bytes, at: int) -> tuple[bytes, int] | None:
    """Return body and synchronized bytes of the frame at a byte, or None if there is no whole one."""
    if at + _HEADER.size > len(content):
        return None
    mark, length, synced, checksum = _HEADER.unpack_from(content, at)
    body = content[at + _HEADER.size : at + _HEADER.size + length]
    whole = mark == _MARK and len(body) == length
    if not whole or zlib.crc32(_LENGTHS.pack(length, synced) + body) != checksum:
        return None
    return body, synced


def _write(descriptor: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _sync_folder(path: Path) -> None:
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
