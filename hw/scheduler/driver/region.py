"""The program's region of the memory: where each tensor lies, and its bytes written and read there."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hw.errors import InputError
from hw.launch import Bytes, Tensor, Tensors
from hw.scheduler.graph import graph
from hw.scheduler.program.dataflow import Dataflow
from hw.scheduler.program.program import SchedulerProgram

#: Source names that an error lists; the rest are counted.
_LISTED = 8


@dataclass(frozen=True, kw_only=True)
class MemoryRegion:
    """The layout of a program's region: each tensor begins a word and fills whole words."""

    program: SchedulerProgram

    def __post_init__(self) -> None:
        if self.program.dataflow is None:
            raise InputError("program.dataflow", None, "given: it says what the program is to compute")

    @property
    def dataflow(self) -> Dataflow:
        """The program's tensors and operators."""
        assert self.program.dataflow is not None
        return self.program.dataflow

    @property
    def size_bytes(self) -> int:
        """Bytes of the region."""
        return self.program.memory_words * self.program.word_bytes

    def place(self, tensor: graph.Tensor) -> slice:
        """Return the bytes of a source or a saved tensor, padding of the last word included."""
        size, home = self.program.word_bytes, self.dataflow.homes[tensor.name]
        return slice(home * size, (home + -(-tensor.size_bytes // size)) * size)

    @property
    def unwritten(self) -> NDArray[np.bool_]:
        """Mask of the bytes that the program never writes."""
        mask = np.ones(self.size_bytes, np.bool_)
        for item in self.dataflow.saved:
            mask[self.place(item)] = False
        return mask

    def check_names(self, names: Iterable[str], *, others: tuple[str, ...] = ()) -> None:
        """Raise `InputError` for a name that is neither a source nor one of ``others``."""
        known = [item.name for item in self.dataflow.sources]
        for name in names:
            if name not in known and name not in others:
                more = f" and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
                shown = ", ".join(known[:_LISTED]) + more
                legal = " or ".join((*others, f"a source of the network: {shown}"))
                raise InputError("tensor name", name, legal, known=(*others, *known))

    def write_sources(self, sources: Tensors, *, fill: int = 0) -> Bytes:
        """Return the region's content before a launch, uint8.

        A source is an array of any type and shape with as many bytes as its tensor.  Every byte outside of
        the sources is ``fill``.

        Raises `InputError` for a source that is missing or has another size.
        """
        content = np.full(self.size_bytes, fill, np.uint8)
        for item in self.dataflow.sources:
            if item.name not in sources:
                raise InputError(f"tensor {item.name}", "missing", f"{item.size_bytes} bytes, a source")
            tensor = np.asarray(sources[item.name])
            if tensor.nbytes != item.size_bytes:
                raise InputError(f"bytes of tensor {item.name}", tensor.nbytes, f"{item.size_bytes}")
            place = content[self.place(item)]
            place[:] = 0
            place[: item.size_bytes] = np.frombuffer(np.ascontiguousarray(tensor).tobytes(), np.uint8)
        return content

    def read_saved(self, content: Bytes) -> dict[str, Tensor]:
        """Return every tensor that the program wrote, outputs and spills, padding included."""
        return {item.name: content[self.place(item)] for item in self.dataflow.saved}

    def outputs(self, saved: Tensors) -> dict[str, Tensor]:
        """Return the network's outputs, uint8 without padding, from the saved tensors."""
        return {
            item.name: saved[item.name][: item.size_bytes]
            for item in self.dataflow.saved
            if item.kind is graph.TensorKind.OUTPUT
        }
