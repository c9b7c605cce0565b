"""A program's region of the memory: inputs and constants at their homes, and outputs back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hw.errors import InputError
from hw.launch import Bytes, Int8, Tensors
from hw.network.compile.form import Form
from hw.network.config import WORD_BYTES
from hw.network.program.program import Home, NetworkProgram


def region_of(program: NetworkProgram, inputs: Tensors, *, fill: int = 0) -> Bytes:
    """Return the region before a launch, with ``fill`` in all bytes that hold no input or constant.

    ``inputs``: stored elements of each input in the order height, width, channels; numbers of rows are int32.

    Raises `InputError` for inputs of other names, shapes or types.
    """
    wanted = {home.value.name: home.value.shape for home in program.inputs}
    kinds = {home.value.name: np.dtype(home.value.kind).name for home in program.inputs}
    for name in inputs:
        if name not in wanted:
            raise InputError("input", name, f"one of {', '.join(wanted)}", known=wanted)
    for name, shape in wanted.items():
        found = (str(inputs[name].dtype), inputs[name].shape) if name in inputs else "missing"
        if found != (kinds[name], shape):
            raise InputError(f"input {name!r}", found, f"{kinds[name]} of shape {shape}")
    region = np.full(program.memory_words * WORD_BYTES, fill, np.uint8)
    contents = {**program.contents, **inputs}
    stored: dict[tuple[str, Form], Int8] = {}
    for home in (*program.inputs, *program.constants):
        name = home.value.name
        if (name, home.form) not in stored:
            form = home.form
            elements = contents[name] if form.fold else contents[name].reshape(form.height, form.width, -1)
            stored[name, form] = form.stored(elements)
        rows = stored[name, home.form][home.first_row : home.first_row + home.rows]
        region[_place(home)] = rows.reshape(-1).view(np.uint8)
    return region


def read_outputs(program: NetworkProgram, region: Bytes) -> dict[str, NDArray[Any]]:
    """Return the elements of each output, by the value's name; raises `InputError` for a region cut short."""
    size = program.memory_words * WORD_BYTES
    if region.size < size:
        raise InputError("bytes of the region", region.size, f"at least {size}")
    parts: dict[str, list[Bytes]] = {}
    for home in program.outputs:
        parts.setdefault(home.value.name, []).append(region[_place(home)])
    forms = {home.value.name: home.form for home in program.outputs}
    return {name: forms[name].elements(np.concatenate(found).view(np.int8)) for name, found in parts.items()}


def unwritten(program: NetworkProgram) -> NDArray[np.bool_]:
    """Return the mask of the region's bytes that no transfer of the program writes."""
    words = np.ones(program.memory_words, np.bool_)
    for transfer in program.writes:
        words[transfer.dram_address : transfer.dram_address + transfer.words] = False
    return words.repeat(WORD_BYTES)


def constants_stay(program: NetworkProgram) -> bool:
    """Return whether a launch leaves the constants of the region as they are, so that others may follow."""
    kept = unwritten(program)
    return all(kept[_place(home)].all() for home in program.constants)


def _place(home: Home) -> slice:
    return slice(home.address, home.address + home.size_bytes)
