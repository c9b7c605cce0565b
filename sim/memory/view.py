"""NumPy views onto the memory models of the running process.

In co-simulation the models are linked into the simulator (with ``-rdynamic``) and found in the process
itself; unit tests load them as a shared library.
"""

import ctypes
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hw.errors import InputError, ToolError


def bind(library: ctypes.CDLL) -> ctypes.CDLL:
    """Declare the types of the functions of ``model.h`` and return the library.

    Raises `ToolError` if the models are not in it.
    """
    pointer, text, whole = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    words = ctypes.POINTER(ctypes.c_uint32)
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "loom_open_text": (pointer, [text, text, whole, whole]),
        "loom_configure": (whole, [pointer, text]),
        "loom_cycle": (whole, [pointer, whole, words, words]),
        "loom_idle": (None, [pointer, ctypes.c_uint64]),
        "loom_find": (pointer, [text]),
        "loom_store": (pointer, [pointer]),
        "loom_store_bytes": (ctypes.c_uint64, [pointer]),
        "loom_counters": (text, [pointer]),
        "loom_errors": (text, [pointer, whole]),
        "loom_refuse": (whole, [pointer, whole, whole, ctypes.c_uint64]),
        "loom_close": (None, [pointer]),
    }
    for name, (result, arguments) in signatures.items():
        try:
            function = getattr(library, name)
        except AttributeError as error:
            raise ToolError("the memory models are not in this simulator: link it with -rdynamic") from error
        function.restype = result
        function.argtypes = arguments
    return library


class MemoryView:
    """One open memory, by the name in its `sim.memory.config.MemoryConfig`: its bytes, counters and
    violations.

    The models are in ``library``, by default the process itself; ``base_address`` is that of the first byte,
    as configured.
    """

    def __init__(self, name: str, *, library: ctypes.CDLL | None = None, base_address: int = 0) -> None:
        self.name = name
        self.base_address = base_address
        self._library = library if library is not None else bind(ctypes.CDLL(None))
        self._handle = self._library.loom_find(name.encode())
        if not self._handle:
            raise InputError("name", name, "that of an open memory")

    @property
    def size_bytes(self) -> int:
        """Bytes of the memory."""
        return int(self._library.loom_store_bytes(self._handle))

    def array(self, address: int, nbytes: int) -> NDArray[np.uint8]:
        """Return ``nbytes`` bytes from ``address`` on as a writable array on the memory itself: no copy.

        Bytes never written are 0 and take no space.  The array must not outlive the simulator.

        Raises `InputError` if any of it is outside the memory.
        """
        offset = address - self.base_address
        if nbytes < 0 or offset < 0 or offset + nbytes > self.size_bytes:
            end = self.base_address + self.size_bytes
            legal = f"within {self.base_address:#x} to {end:#x}"
            raise InputError("address, nbytes", (address, nbytes), legal)
        start = self._library.loom_store(self._handle)
        return np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(start + offset))

    def counters(self) -> dict[str, Any]:
        """Return the counters so far: ``edges``, and lists of one dict a port (``ports``) and channel
        (``channels``).

        A port has ``{read,write}_{bytes,beats,bursts}``, ``read_data_stall_cycles`` (data waiting for the
        kernel), ``write_data_stall_cycles`` and ``{read,write}_address_stall_cycles`` (kernel waiting for the
        memory), ``response_stall_cycles``, ``read_wait_cycles`` (reads under way, no data) and
        ``{read,write}_latency_{count,cycles_sum,cycles_min,cycles_max}``: address to first data, last data to
        response.  All bytes are whole beats on the bus.  A DRAM channel has ``{read,write}_bytes``,
        ``row_hits``, ``row_closed``, ``row_misses``, ``activates``, ``refreshes``, ``turnarounds`` and
        ``busy_axi_cycles``; other models have one channel with bytes only.
        """
        return dict(json.loads(self._library.loom_counters(self._handle)))

    def errors(self, *, at_end: bool = False) -> list[str]:
        """Return protocol violations so far, the first in full; ``at_end`` also bursts still under way."""
        return str(self._library.loom_errors(self._handle, int(at_end)).decode()).splitlines()

    def refuse(self, port: int, *, write: bool, skip: int) -> None:
        """Answer one burst of a port with an error: of its reads, or its writes, that after ``skip`` others.

        A read's middle beat is answered with SLVERR, and its data are wrong; a write is lost, and answered
        with DECERR.

        Raises `InputError` if there is no such port.
        """
        if self._library.loom_refuse(self._handle, port, int(write), skip):
            raise InputError("port", port, f"one of memory {self.name}")

    def configure(self, text: str) -> None:
        """Start over with other parameters: time, counters and violations from 0, bytes kept if the size is.

        Raises `InputError` if the models refuse them; the reason is on standard error.
        """
        if self._library.loom_configure(self._handle, text.encode()):
            raise InputError("parameters", self.name, "accepted by the models: the reason is printed above")
