"""Kernels of a card behind XRT: launches through its Python binding, registers through its C library."""

from __future__ import annotations

import ctypes
import importlib
import math
from typing import Any, Iterable

import numpy as np

from .errors import CardError, FailedError
from .folder import Pointer

#: XRT has no null pointer: a page without use stands for it.
_PAGE_BYTES = 4096
_STATE = "ERT_CMD_STATE_"
#: States of a launch that may still end.
_UNDER_WAY = ("NEW", "QUEUED", "SUBMITTED", "RUNNING", "TIMEOUT")


class XrtDevice:
    """A card with an image of ``v++`` loaded.

    Raises `CardError` without the binding, the card or the image.
    """

    driver = "xrt"

    def __init__(self, image: str, device: int) -> None:
        try:
            self.xrt: Any = importlib.import_module("pyxrt")
        except ImportError as error:
            message = f"{error}: XRT needs its binding on PYTHONPATH, as its setup.sh puts it there"
            raise CardError(message) from error
        self.name = f"card {device}"
        try:
            self.device = self.xrt.device(device)
            self.image = self.device.load_xclbin(self.xrt.xclbin(image))
        except RuntimeError as error:
            raise CardError(f"XRT cannot load {image} on {self.name}: {error}") from error
        self._registers = _Registers(device)

    def unit(self, kernel: str, instance: str | None) -> XrtUnit:
        """Return a kernel in the image; ``instance``: one of several, by the name of its compute unit."""
        return XrtUnit(self, f"{kernel}:{{{instance}}}" if instance else kernel, self._registers)

    def close(self) -> None:
        """Leave the card."""
        self._registers.close()
        self.device = self.image = None


class XrtMemory:
    """A buffer on the card, or in the host's memory where the kernel's port leads there."""

    def __init__(self, xrt: Any, buffer: Any) -> None:
        self._to = xrt.xclBOSyncDirection.XCL_BO_SYNC_BO_TO_DEVICE
        self._from = xrt.xclBOSyncDirection.XCL_BO_SYNC_BO_FROM_DEVICE
        self.buffer = buffer
        self.address = int(buffer.address())

    def write(self, data: np.ndarray, first: int) -> None:
        """Write bytes, from byte ``first`` of the buffer on."""
        self.buffer.write(data, first)
        self.buffer.sync(self._to, data.size, first)

    def read(self, first: int, size: int) -> np.ndarray:
        """Read ``size`` bytes, from byte ``first`` on."""
        self.buffer.sync(self._from, size, first)
        return np.asarray(self.buffer.read(size, first)).view(np.uint8)

    def free(self) -> None:
        """Release the buffer."""
        self.buffer = None


class XrtUnit:
    """A compute unit; see `loomwork_host.card.Unit`."""

    def __init__(self, device: XrtDevice, name: str, registers: _Registers) -> None:
        self.name, self._device, self._registers = name, device, registers
        self._kernel: Any = None
        self._run: Any = None

    def _opened(self) -> Any:
        if self._kernel is None:
            xrt, device = self._device.xrt, self._device
            try:
                self._kernel = xrt.kernel(device.device, device.image, self.name, xrt.kernel.shared)
            except RuntimeError as error:
                raise CardError(f"XRT cannot open the kernel {self.name}: {error}") from error
        return self._kernel

    def allocate(self, index: int, pointer: Pointer) -> XrtMemory:
        """Allocate the buffer of argument number ``index``; one of no bytes becomes a page of zeros."""
        xrt, kernel = self._device.xrt, self._opened()
        size = pointer.size_bytes or _PAGE_BYTES
        flags = xrt.bo.host_only if pointer.host else xrt.bo.normal
        try:
            memory = XrtMemory(xrt, xrt.bo(self._device.device, size, flags, kernel.group_id(index)))
        except (RuntimeError, MemoryError) as error:
            raise CardError(f"XRT cannot allocate {size} bytes for {pointer.name}: {error}") from error
        if not pointer.size_bytes:
            # A kernel may read an operand whose address is not 0, and the binding passes no address of 0.
            memory.write(np.zeros(size, np.uint8), 0)
        return memory

    def start(self, values: Iterable[tuple[int, Any]]) -> None:
        """Start a launch; see `loomwork_host.card.Unit`."""
        # The binding takes C's int, and truncates a larger number silently.
        call = [
            value.buffer if isinstance(value, XrtMemory) else value - (1 << 32 if value >> 31 else 0)
            for _, value in values
        ]
        self._run = self._opened()(*call)

    def wait(self, timeout_s: float) -> bool:
        """Wait; return whether the launch ended. Raises `FailedError` when XRT ended it."""
        # XRT waits without end for 0 ms.
        return self._ended(self._run.wait(max(1, math.ceil(1000 * timeout_s))))

    def done(self) -> bool:
        """Return whether the launch ended, without waiting."""
        return self._ended(self._run.state())

    def _ended(self, found: Any) -> bool:
        state = str(found).rpartition(_STATE)[2]
        if state in _UNDER_WAY:
            return False
        if state != "COMPLETED":
            raise FailedError(f"{self.name} did not complete: {state}", state)
        return True

    def read(self, offsets: Iterable[int]) -> list[int]:
        """Read registers of 32 bits. XRT allows it only to the one user of a kernel: the binding lets go."""
        self.release()
        return self._registers.read(self.name, offsets)

    def release(self) -> None:
        """Let go of the kernel; the next launch opens it again."""
        self._run = self._kernel = None


class _Registers:
    """The registers of kernels, through XRT's C library: the binding has no access to them."""

    def __init__(self, index: int) -> None:
        self._index = index
        self._library: Any = None
        self._device: Any = None

    def read(self, kernel: str, offsets: Iterable[int]) -> list[int]:
        xrt = self._opened()
        uuid = ctypes.create_string_buffer(16)
        xrt.xrtDeviceGetXclbinUUID(self._device, uuid)
        handle = xrt.xrtPLKernelOpenExclusive(self._device, uuid, kernel.encode())
        if not handle:
            raise CardError(f"XRT cannot open {kernel} alone to read the counters: another process uses it")
        words = []
        try:
            for offset in offsets:
                word = ctypes.c_uint32()
                if xrt.xrtKernelReadRegister(handle, offset, ctypes.byref(word)):
                    raise CardError(f"XRT cannot read the register at {offset:#x}")
                words.append(word.value)
        finally:
            xrt.xrtKernelClose(handle)
        return words

    def _opened(self) -> Any:
        if self._device is None:
            try:
                xrt = ctypes.CDLL("libxrt_coreutil.so.2")
            except OSError as error:
                raise CardError(f"{error}: reading counters needs XRT's C library") from error
            handle = ctypes.c_void_p
            xrt.xrtDeviceOpen.restype = xrt.xrtPLKernelOpenExclusive.restype = handle
            xrt.xrtPLKernelOpenExclusive.argtypes = [handle, ctypes.c_char_p, ctypes.c_char_p]
            xrt.xrtDeviceGetXclbinUUID.argtypes = [handle, ctypes.c_char_p]
            xrt.xrtKernelReadRegister.argtypes = [
                handle,
                ctypes.c_uint32,
                ctypes.POINTER(ctypes.c_uint32),
            ]
            xrt.xrtDeviceClose.argtypes = xrt.xrtKernelClose.argtypes = [handle]
            self._library, self._device = xrt, xrt.xrtDeviceOpen(self._index)
        if not self._device:
            self._device = None
            raise CardError(f"XRT cannot open device {self._index} to read the counters")
        return self._library

    def close(self) -> None:
        if self._device is not None:
            self._library.xrtDeviceClose(self._device)
            self._device = None


def read_registers(device: int, kernel: str, offsets: Iterable[int]) -> list[int]:
    """Read registers of 32 bits of a kernel that no process uses.

    Raises `CardError` when XRT refuses.
    """
    registers = _Registers(device)
    try:
        return registers.read(kernel, offsets)
    finally:
        registers.close()
