"""Kernels of a Zynq board behind PYNQ: registers and buffers in the board's own memory."""

from __future__ import annotations

import importlib
import time
from typing import Any, Iterable

import numpy as np

from .errors import BusyError, CardError
from .folder import Pointer

#: The control register and its bits.
_CONTROL, _START, _DONE, _IDLE = 0x00, 1, 2, 4
#: Seconds between two looks at the control register.
_POLL_S = 0.0001


class ZynqDevice:
    """A board with a bitstream loaded.

    Raises `CardError` without PYNQ or the bitstream.
    """

    driver = "pynq"

    def __init__(self, image: str, device: int) -> None:
        if device:
            raise CardError(f"a board has device 0 alone, and no device {device}")
        try:
            self.pynq: Any = importlib.import_module("pynq")
        except ImportError as error:
            raise CardError(f"{error}: a board's image has PYNQ in its own Python") from error
        self.name = "pynq"
        try:
            self.overlay = self.pynq.Overlay(image)
        except (OSError, RuntimeError) as error:
            raise CardError(f"PYNQ cannot load {image}: {error}") from error

    def unit(self, kernel: str, instance: str | None) -> ZynqUnit:
        """Return a kernel in the bitstream: the instance of this name, or the only one.

        Raises `CardError` unless there is exactly one.
        """
        kind = f"loomwork:kernel:{kernel}:"
        found = [key for key, entry in self.overlay.ip_dict.items() if entry["type"].startswith(kind)]
        if instance is not None:
            found = [key for key in found if key == instance]
        if len(found) != 1:
            called = f" called {instance}" if instance else ""
            raise CardError(f"the bitstream must have one {kernel}{called}, not {len(found)}")
        driver = self.overlay
        for part in found[0].split("/"):
            driver = getattr(driver, part)
        return ZynqUnit(self.pynq, kernel, driver)

    def close(self) -> None:
        """Leave the board; the bitstream stays."""
        self.overlay = None


class ZynqMemory:
    """A contiguous buffer; caches are written back and discarded around the kernel."""

    def __init__(self, buffer: Any) -> None:
        self._buffer = buffer
        self.address = int(buffer.device_address)
        # Of buffers without data, too: the cache must not write them back over results.
        buffer.flush()

    def write(self, data: np.ndarray, first: int) -> None:
        """Write bytes, from byte ``first`` of the buffer on."""
        self._buffer[first : first + data.size] = data
        self._buffer.flush()

    def read(self, first: int, size: int) -> np.ndarray:
        """Read ``size`` bytes, from byte ``first`` on."""
        self._buffer.invalidate()
        return np.array(self._buffer[first : first + size], np.uint8, subok=False)

    def free(self) -> None:
        """Release the buffer."""
        if self._buffer is not None:
            self._buffer.freebuffer()
            self._buffer = None


class ZynqUnit:
    """A kernel in the bitstream; see `loomwork_host.card.Unit`."""

    def __init__(self, pynq: Any, name: str, registers: Any) -> None:
        self.name, self._pynq, self._registers = name, pynq, registers
        self._ended = False

    def allocate(self, index: int, pointer: Pointer) -> ZynqMemory | None:
        """Allocate a buffer; None for one of no bytes, whose address is 0."""
        if not pointer.size_bytes:
            return None
        try:
            return ZynqMemory(self._pynq.allocate(shape=(pointer.size_bytes,), dtype=np.uint8))
        except (RuntimeError, MemoryError) as error:
            message = f"PYNQ cannot allocate {pointer.size_bytes} bytes for {pointer.name}: {error}"
            raise CardError(message) from error

    def start(self, values: Iterable[tuple[int, Any]]) -> None:
        """Start a launch; see `loomwork_host.card.Unit`."""
        if not self._registers.read(_CONTROL) & _IDLE:
            raise BusyError(f"{self.name} is busy with an earlier call: load the bitstream again")
        for offset, value in values:
            if isinstance(value, int):
                self._registers.write(offset, value)
            else:
                address = 0 if value is None else value.address
                self._registers.write(offset, address % 2**32)
                self._registers.write(offset + 4, address >> 32)
        self._ended = False
        self._registers.write(_CONTROL, _START)

    def done(self) -> bool:
        """Return whether the launch ended, without waiting."""
        # Reading clears the bit.
        self._ended = self._ended or bool(self._registers.read(_CONTROL) & _DONE)
        return self._ended

    def wait(self, timeout_s: float) -> bool:
        """Wait; return whether the launch ended."""
        began = time.perf_counter()
        while not self.done():
            if time.perf_counter() - began > timeout_s:
                return False
            time.sleep(_POLL_S)
        return True

    def read(self, offsets: Iterable[int]) -> list[int]:
        """Read registers of 32 bits."""
        return [int(self._registers.read(offset)) for offset in offsets]

    def release(self) -> None:
        """Do nothing: a board's registers are nobody's own."""
