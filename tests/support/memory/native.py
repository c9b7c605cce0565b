"""The memory models without a simulator: a shared library, driven edge by edge from Python.

About 60 k edges/s with one port; for unit tests and experiments.
"""

from __future__ import annotations

import ctypes
import functools
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hw.errors import InputError, ToolError
from sim.build.cache import BuildCache
from sim.build.toolchain import CXX_STANDARD, find_toolchain
from sim.host.digest import key_of
from sim.memory.config import MemoryConfig, model_sources, parameter_text
from sim.memory.view import MemoryView, bind

_FLAGS = (CXX_STANDARD, "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared")
_LIBRARY = "libloom_memory.so"

# model.h has the same numbers.
_AW_VALID, _W_VALID, _B_READY, _AR_VALID, _R_READY, _W_LAST = (1 << bit for bit in range(6))
_AW_READY, _WREADY, _B_VALID, _AR_READY, _R_VALID, _R_LAST = (1 << bit for bit in range(6))
_FLAGS_WORD, _LENGTHS_WORD, _IDS_WORD, _AW_WORD, _AR_WORD, _STROBE_WORD = 0, 1, 2, 3, 5, 7
_DATA_WORD = 2
_INCREMENTING = 1


@functools.cache
def library() -> ctypes.CDLL:
    """Build the models as a shared library, where the cache does not have it, and load it.

    Errors
    ------
    `ToolError` if the compiler fails.
    """
    tools = find_toolchain()
    # Without the DPI-C entry and its module, the models need no simulator.
    sources = {
        name: text for name, text in model_sources().items() if name not in ("dpi.cpp", "loom_memory.sv")
    }

    def make(folder: Path) -> None:
        for name, text in sources.items():
            (folder / name).write_text(text)
        inputs = [name for name in sources if name.endswith(".cpp")]
        command = [str(tools.cxx), *_FLAGS, "-o", _LIBRARY, *inputs]
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if result.returncode:
            raise ToolError(f"the memory models do not compile: {result.stderr.strip()[:2000]}")

    key = key_of([*(f"{name}\0{text}" for name, text in sources.items()), *_FLAGS, tools.cxx_version])
    folder, _ = BuildCache("memory models").get(key, make)
    return bind(ctypes.CDLL(str(folder / _LIBRARY)))


@dataclass(kw_only=True)
class PortDriver:
    """Signals a kernel drives on one port at the next edge; every field keeps its value.

    Members are the signals of an AXI4 port by their own names; ``wdata`` and ``wstrb`` are integers.
    """

    awvalid: int = 0
    awaddr: int = 0
    awlen: int = 0
    awsize: int = -1
    awburst: int = _INCREMENTING
    awid: int = 0
    wvalid: int = 0
    wdata: int = 0
    wstrb: int = -1
    wlast: int = 0
    bready: int = 1
    arvalid: int = 0
    araddr: int = 0
    arlen: int = 0
    arsize: int = -1
    arburst: int = _INCREMENTING
    arid: int = 0
    rready: int = 1


@dataclass(frozen=True, kw_only=True)
class PortAnswer:
    """Signals a kernel samples on one port at the next edge, by their AXI4 names."""

    awready: int = 0
    wready: int = 0
    bvalid: int = 0
    bid: int = 0
    arready: int = 0
    rvalid: int = 0
    rlast: int = 0
    rid: int = 0
    rdata: int = 0


@dataclass(kw_only=True)
class NativeMemory:
    """A memory model on its own, with `cycle` for a clock.

    Members
    -------
    drive : list of `PortDriver`
        Inputs of each port at the next edge.
    answer : list of `PortAnswer`
        Outputs of each port, as sampled at the next edge.
    view : `MemoryView`
        Bytes, counters and violations.
    edge : int
        Edges so far.
    """

    config: MemoryConfig  #: Its configuration.
    data_bits: int = 256  #: Width of its ports.
    drive: list[PortDriver] = field(init=False)
    answer: list[PortAnswer] = field(init=False)
    view: MemoryView = field(init=False)
    edge: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._library = library()
        ports = len(self.config.port_channels)
        name = self.config.name.encode()
        text = parameter_text([self.config]).encode()
        if self._library.loom_find(name):
            raise InputError("name", self.config.name, "that of no memory that is open")
        self._handle = self._library.loom_open_text(text, name, ports, self.data_bits)
        if not self._handle:
            raise InputError(
                "config", self.config.name, "accepted by the models: the reason is printed above"
            )
        self.drive = [PortDriver() for _ in range(ports)]
        self.answer = [PortAnswer() for _ in range(ports)]
        self.view = MemoryView(self.config.name, library=self._library, base_address=self.config.base_address)
        self._strobe_words = -(-self.data_bits // 256)
        self._request_words = _STROBE_WORD + self._strobe_words + self.data_bits // 32
        self._response_words = _DATA_WORD + self.data_bits // 32
        self._request = (ctypes.c_uint32 * (ports * self._request_words))()
        self._response = (ctypes.c_uint32 * (ports * self._response_words))()

    def __enter__(self) -> NativeMemory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the memory; its views must not be used any more."""
        self._library.loom_close(self._handle)

    def cycle(self, *, reset: bool = False) -> None:
        """One clock edge: the kernel drives `drive`, and samples `answer` next."""
        size = (self.data_bits // 8).bit_length() - 1
        for port, drive in enumerate(self.drive):
            self._pack(port * self._request_words, drive, size)
        self._library.loom_cycle(self._handle, int(reset), self._request, self._response)
        self.answer = [self._unpack(port * self._response_words) for port in range(len(self.drive))]
        self.edge += 1

    def cycles(self, count: int) -> Iterator[int]:
        """``count`` edges, one an iteration; yield the number of each past edge."""
        for _ in range(count):
            self.cycle()
            yield self.edge - 1

    def _pack(self, at: int, drive: PortDriver, size: int) -> None:
        words = self._request
        words[at + _FLAGS_WORD] = (
            drive.awvalid * _AW_VALID
            | drive.wvalid * _W_VALID
            | drive.bready * _B_READY
            | drive.arvalid * _AR_VALID
            | drive.rready * _R_READY
            | drive.wlast * _W_LAST
        )
        if drive.awvalid or drive.arvalid:
            awsize = size if drive.awsize < 0 else drive.awsize
            arsize = size if drive.arsize < 0 else drive.arsize
            words[at + _LENGTHS_WORD] = (
                drive.awlen
                | drive.arlen << 8
                | awsize << 16
                | arsize << 19
                | drive.awburst << 22
                | drive.arburst << 24
            )
            words[at + _IDS_WORD] = drive.awid | drive.arid << 16
            for word, address in ((_AW_WORD, drive.awaddr), (_AR_WORD, drive.araddr)):
                words[at + word] = address & 0xFFFFFFFF
                words[at + word + 1] = address >> 32
        if drive.wvalid:
            strobe = drive.wstrb & (1 << self.data_bits // 8) - 1
            data = strobe | drive.wdata << 32 * self._strobe_words
            count = self._strobe_words + self.data_bits // 32
            ctypes.memmove(
                ctypes.byref(words, (at + _STROBE_WORD) * 4), data.to_bytes(count * 4, "little"), count * 4
            )

    def _unpack(self, at: int) -> PortAnswer:
        flags, ids = self._response[at], self._response[at + 1]
        data = 0
        if flags & _R_VALID:
            start = at + _DATA_WORD
            raw = (ctypes.c_uint8 * (self.data_bits // 8)).from_buffer(self._response, start * 4)
            data = int.from_bytes(bytes(raw), "little")
        return PortAnswer(
            awready=int(bool(flags & _AW_READY)),
            wready=int(bool(flags & _WREADY)),
            bvalid=int(bool(flags & _B_VALID)),
            bid=ids & 0xFFFF,
            arready=int(bool(flags & _AR_READY)),
            rvalid=int(bool(flags & _R_VALID)),
            rlast=int(bool(flags & _R_LAST)),
            rid=ids >> 16,
            rdata=data,
        )
