"""A card, calls that are loaded on it, and their launches."""

from __future__ import annotations

import ctypes
import os
import time
from typing import Any, Iterable, Mapping

import numpy as np

from .errors import BusyError, CardError, FailedError, FaultError, InputError, LateError
from .folder import Folder, Pointer, Scalar, check_package, read_folder, read_package
from .tensors import Tensor
from .xrt import XrtDevice
from .zynq import ZynqDevice

#: Alignment of a kernel's pointers, in bytes.
ALIGN_BYTES = 4096
#: Counter of errors, and its bit for an error of a memory.
_STATUS, _STATUS_BUS = "status", 32
_DEVICES = {"xrt": XrtDevice, "pynq": ZynqDevice}
_SUFFIXES = {".xclbin": "xrt", ".bit": "pynq"}


def open(image: Any, backend: str | None = None, device: int = 0) -> Card:
    """Load an image on a card.

    ``image``: a file of ``v++`` (.xclbin) or of Vivado (.bit, with the .hwh file beside it). ``backend``:
    "xrt" or "pynq"; by default the image's suffix decides. ``device``: number of the card.

    Raises `InputError` for another image or backend, `CardError` without the card or its library.
    """
    path = os.fspath(image)
    if backend is None:
        suffix = os.path.splitext(path)[1]
        if suffix not in _SUFFIXES:
            raise InputError("suffix of the image", suffix, "one of " + ", ".join(_SUFFIXES))
        backend = _SUFFIXES[suffix]
    if backend not in _DEVICES:
        raise InputError("backend", backend, "one of " + ", ".join(_DEVICES))
    return Card(_DEVICES[backend](path, device))


class Unit:
    """One instance of a kernel: at most one launch at a time.

    ``driver`` has ``allocate``, ``start`` with the byte offset and the value of each argument, ``wait``,
    ``done``, ``read`` and ``release``, as `XrtUnit` and `ZynqUnit` have them.
    """

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        self.last: Launch | None = None  #: The launch that was started last.

    def check_free(self) -> None:
        """Raise `BusyError` while a launch was not waited for."""
        if self.last is not None and not self.last.ended:
            name, path = self.driver.name, self.last.call.folder.path
            raise BusyError(f"{name} has a launch of {path} under way: wait for its end first")

    def close(self) -> None:
        """Let go of the kernel, unless it may still execute a launch."""
        if self.last is not None and self.last.under_way:
            _keep(self.driver)
        else:
            self.driver.release()


def _keep(thing: Any) -> None:
    """Keep an object until the process ends: an owner could end before the kernel does."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


class Card:
    """A card with an image; a context that leaves it at its end. `open` makes one."""

    def __init__(self, device: Any) -> None:
        self.device = device
        self._units: dict[tuple[str, str | None], Unit] = {}
        self._calls: list[Call] = []

    def __enter__(self) -> Card:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def load(self, launch: Any, instance: str | None = None, package: Any = None) -> Call:
        """Load a launch folder: allocate its buffers, and write its files and weights to them.

        ``launch``: path of a folder of ``loomwork launch``. ``instance``: which of several instances of the
        kernel, by its name in the image. ``package``: folder of ``loomwork verilog``, to check that the
        launch is one for this kernel.

        Calls of one instance share it: it executes one launch at a time.

        Raises `InputError` for a damaged folder, `CardError` when the image has no such kernel or memory is
        full.
        """
        folder = read_folder(launch)
        if package is not None:
            check_package(folder, read_package(package))
        key = folder.kernel, instance
        if key not in self._units:
            self._units[key] = Unit(self.device.unit(*key))
        call = Call(self._units[key], folder)
        self._calls.append(call)
        return call

    def close(self) -> None:
        """Release all buffers, and leave the card."""
        for call in self._calls:
            call.close()
        for unit in self._units.values():
            unit.close()
        self._calls.clear()
        self._units.clear()
        self.device.close()


class Call:
    """A launch folder on the card, executed as often as wanted, with other tensors each time.

    ``inputs``, ``outputs``: its tensors by name.  A tensor has ``shape`` and ``integers``, the type of its
    whole numbers.
    """

    def __init__(self, unit: Unit, folder: Folder) -> None:
        self._unit, self.folder = unit, folder
        self._memories: dict[str, Any] = {}
        self._used = False  #: Whether a launch began: until then the buffers are the folder's.
        try:
            for index, entry in enumerate(folder.arguments):
                if isinstance(entry, Pointer):
                    self._memories[entry.name] = unit.driver.allocate(index, entry)
            self._check_aligned()
            self._shadows = self._written()
        except BaseException:
            self.close()
            raise

    @property
    def inputs(self) -> dict[str, Tensor]:
        """Tensors that a launch takes."""
        return {tensor.name: tensor for tensor in self.folder.tensors if not tensor.output}

    @property
    def outputs(self) -> dict[str, Tensor]:
        """Tensors that a launch returns."""
        return {tensor.name: tensor for tensor in self.folder.tensors if tensor.output}

    def run(
        self,
        tensors: Mapping[str, Any] | None = None,
        *,
        timeout_s: float = 60.0,
        integers: bool = False,
        **named: Any,
    ) -> dict[str, np.ndarray]:
        """Execute a launch: `submit`, then `Launch.wait`."""
        return self.submit(tensors, **named).wait(timeout_s, integers=integers)

    def submit(self, tensors: Mapping[str, Any] | None = None, **named: Any) -> Launch:
        """Start a launch, and return without waiting for its end.

        All inputs are given, in a mapping or by name; without any the launch repeats the inputs of the one
        before, which at first are the folder's.

        Raises `InputError` for a tensor that is missing or unknown, or has another shape, type or range;
        `BusyError` while the kernel executes another launch.
        """
        given = {**(tensors or {}), **named}
        self._unit.check_free()
        if not self._memories:
            raise CardError(f"{self.folder.path} was closed")
        clamped = self._put(given) if given else {}
        if given or self._used:
            # A kernel may write over inputs that it has read.
            for name, first, end in self._input_spans():
                self._memories[name].write(self._shadows[name][first:end], first)
        self._used = True
        values = [
            (entry.offset, entry.value if isinstance(entry, Scalar) else self._memories[entry.name])
            for entry in self.folder.arguments
        ]
        launch = Launch(self, self._unit, clamped)
        self._unit.driver.start(values)
        self._unit.last = launch
        return launch

    def read(self, *, whole: bool = False) -> dict[str, np.ndarray]:
        """Read the buffers of outputs, uint8; where no tensor lies bytes are 0, unless ``whole``."""
        found = {}
        for pointer in self.folder.pointers:
            if pointer.output and pointer.size_bytes:
                spans = [
                    tensor.span(pointer.name)
                    for tensor in self.outputs.values()
                    if pointer.name in tensor.places
                ]
                first, end = (0, pointer.size_bytes) if whole else _hull(spans)
                data = found[pointer.name] = np.zeros(pointer.size_bytes, np.uint8)
                if end:
                    data[first:end] = self._memories[pointer.name].read(first, end - first)
        return found

    def close(self) -> None:
        """Release the buffers; those of a launch under way stay until the process ends, as the kernel
        writes them.
        """
        last = self._unit.last
        under_way = last is not None and last.call is self and last.under_way
        for memory in self._memories.values():
            if memory is not None:
                if under_way:
                    _keep(memory)
                else:
                    memory.free()
        self._memories.clear()

    def _check_aligned(self) -> None:
        for name, memory in self._memories.items():
            if memory is not None and memory.address % ALIGN_BYTES:
                place = f"{memory.address:#x}, which is no multiple of {ALIGN_BYTES}"
                raise CardError(f"the buffer of {name} begins at {place}")

    def _written(self) -> dict[str, np.ndarray]:
        """Write the buffers that the folder has; return the content of those with input tensors."""
        shadows = {}
        own = {name for tensor in self.inputs.values() for name in tensor.places}
        for pointer in self.folder.pointers:
            if pointer.given and pointer.size_bytes:
                data = self.folder.content(pointer)
                for offset, other in pointer.links:
                    place = data[offset : offset + 8]
                    address = int.from_bytes(place.tobytes(), "little") + self._memories[other].address
                    place[:] = np.frombuffer(address.to_bytes(8, "little"), np.uint8)
                self._memories[pointer.name].write(data, 0)
                if pointer.name in own:
                    shadows[pointer.name] = data
        return shadows

    def _input_spans(self) -> Iterable[tuple[str, int, int]]:
        """Return the part of each buffer with input tensors: name, first byte, last byte + 1."""
        for name in self._shadows:
            spans = [
                tensor.span(name)
                for tensor in self.folder.tensors
                if not tensor.output and name in tensor.places
            ]
            yield (name, *_hull(spans))

    def _put(self, given: Mapping[str, Any]) -> dict[str, int]:
        """Quantize the inputs and place them; return how many numbers of each were clamped."""
        known = self.inputs
        for name in given:
            if name not in known:
                raise InputError("tensor", name, "one of " + ", ".join(known) if known else "left out")
        for name in known:
            if name not in given:
                raise InputError(f"tensor {name}", "missing", f"given, of shape {known[name].shape}")
        # One of the caller's tensors may lie in several forms: each has an entry.
        entries = [tensor for tensor in self.folder.tensors if not tensor.output]
        encoded = [tensor.encode(given[tensor.name]) for tensor in entries]
        clamped: dict[str, int] = {}
        for tensor, (raw, count) in zip(entries, encoded):
            tensor.put(raw, self._shadows)
            clamped[tensor.name] = max(count, clamped.get(tensor.name, 0))
        return clamped


def _hull(spans: list[tuple[int, int]]) -> tuple[int, int]:
    return (min(first for first, _ in spans), max(end for _, end in spans)) if spans else (0, 0)


class Launch:
    """A launch under way, or ended. `Call.submit` makes one.

    ``clamped``: for each input how many real numbers were beyond the range of its elements.  ``seconds``:
    wall time from the start to the end seen by `wait`.
    """

    def __init__(self, call: Call, unit: Unit, clamped: dict[str, int]) -> None:
        self.call, self.clamped = call, clamped
        self._unit = unit
        self.ended = False  #: Whether its end was seen.
        self.seconds = 0.0
        self._began = time.perf_counter()
        self._counters: dict[str, int] | None = None
        self._buffers: dict[str, np.ndarray] | None = None
        self._failure: FailedError | None = None
        self._sound = False  #: Whether the status was seen to be 0.

    def done(self) -> bool:
        """Return whether the launch ended; `wait` then returns, or raises, at once."""
        return not self.under_way

    @property
    def under_way(self) -> bool:
        """Whether the kernel may still read and write the buffers."""
        try:
            return not (self.ended or self._unit.driver.done())
        except FailedError:
            return False

    def wait(self, timeout_s: float = 60.0, *, integers: bool = False) -> dict[str, np.ndarray]:
        """Wait for the end, and return the outputs by name.

        They are real numbers where an output has them, or with ``integers`` the kernel's whole numbers.

        Raises `LateError` after the time: the launch is still under way. Raises `FaultError` when the
        kernel's ``status`` is not 0, `FailedError` when XRT ended the launch.
        """
        buffers = self.finish(timeout_s)
        self.check()
        return {
            name: tensor.decode(tensor.take(buffers), integers=integers)
            for name, tensor in self.call.outputs.items()
        }

    def finish(self, timeout_s: float = 60.0, *, whole: bool = False) -> dict[str, np.ndarray]:
        """Wait for the end, and return the bytes of output buffers by name; see `Call.read`.

        Raises `LateError` and `FailedError` as `wait`; ``status`` is not looked at.
        """
        if not self.ended:
            if not timeout_s > 0:
                raise InputError("timeout_s", timeout_s, "above 0")
            try:
                if not self._unit.driver.wait(timeout_s):
                    raise LateError(f"{self._unit.driver.name} was not done after {timeout_s:g} s")
            except FailedError as error:
                self.ended, self._failure = True, error
                raise
            self.seconds = time.perf_counter() - self._began
            self.ended = True
        if self._failure is not None:
            raise self._failure
        if self._buffers is None:
            self._check_last("results")
            self._buffers = self.call.read(whole=whole)
        return self._buffers

    def check(self) -> None:
        """Raise `FaultError` when the ended launch left a ``status`` that is not 0."""
        offsets, name = self.call.folder.counters, self._unit.driver.name
        if self._sound or _STATUS not in offsets:
            return
        found = self._read([_STATUS]) if self._counters is None else self._counters
        self._sound = not found[_STATUS]
        if self._sound:
            return
        status = self.counters[_STATUS]
        if status & _STATUS_BUS:
            message = (
                f"a memory answered {name} with an error (SLVERR or DECERR): status {status}, no results"
            )
            raise FaultError(message, self.counters)
        if status:
            folder = self.call.folder.path
            raise FaultError(
                f"{name} stopped: status {status}; loomwork verify {folder} says why", self.counters
            )

    @property
    def counters(self) -> dict[str, int]:
        """The kernel's counters by name; they are read when asked for first.

        Raises `BusyError` before the end, and when another launch of the kernel was started.
        """
        if self._counters is None:
            self._counters = self._read(self.call.folder.counters)
        return dict(self._counters)

    def _check_last(self, what: str) -> None:
        if not self.ended or self._unit.last is not self:
            when = "before the next launch of the kernel begins" if self.ended else "after its end"
            raise BusyError(f"{what} of a launch must be read {when}")

    def _read(self, names: Iterable[str]) -> dict[str, int]:
        self._check_last("counters")
        names = list(names)
        # The low word first: reading it keeps the high word of the same moment.
        offsets = [self.call.folder.counters[name] + high for name in names for high in (0, 4)]
        words = self._unit.driver.read(offsets)
        return {name: words[2 * n] | words[2 * n + 1] << 32 for n, name in enumerate(names)}
