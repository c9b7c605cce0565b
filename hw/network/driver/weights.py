"""Packets of weights as the memory of each weight port holds them."""

from __future__ import annotations

import numpy as np

from hw.errors import InputError
from hw.launch import Bytes
from hw.network.config import NetworkConfig
from hw.network.program.program import NetworkProgram


def weight_buffers(program: NetworkProgram, config: NetworkConfig) -> list[Bytes]:
    """Return the bytes of each weight port, all passes one after the other, at least a word each.

    A beat is cut into lines of a word of each port; the ports' words follow each other in a line.

    Raises `InputError` for packets made for an array of other columns.
    """
    if program.columns != config.columns:
        raise InputError("columns of the program", program.columns, f"{config.columns}, as of the kernel")
    ports, width = config.weight_ports, config.port_bytes
    line = ports * width
    assert all(beats.shape[1] == config.matrix.lines * line for beats in program.passes)
    if not program.passes:
        return [np.zeros(width, np.uint8) for _ in range(ports)]
    lines = np.concatenate([beats.reshape(-1, ports, width) for beats in program.passes])
    return [np.ascontiguousarray(lines[:, port]).reshape(-1) for port in range(ports)]
