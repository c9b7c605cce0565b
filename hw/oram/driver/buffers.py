"""Buffers of a launch: rings and pages in the host's memory, position map and records in the board's."""

from collections.abc import Sequence

import numpy as np

from hw.launch import Buffer, Bytes
from hw.oram.config import RECORD_HEADER_BYTES, OramConfig
from hw.oram.driver.capacity import Structure, hbm_structures, host_structures
from hw.oram.kernel.arguments import position_names, record_names

#: Arguments of the buffers in the host's memory.
COMMANDS, RESPONSES, PAGES = "commands", "responses", "pages"


def board_arguments(config: OramConfig) -> dict[str, Structure]:
    """Return the pointers into the board's memory, one for each port in order, and their structures."""
    position, records = hbm_structures(config)
    return dict.fromkeys(position_names(config), position) | dict.fromkeys(record_names(config), records)


def launch_buffers(config: OramConfig, commands: Bytes, *, state: bool = False) -> tuple[Buffer, ...]:
    """Return the buffers of a launch.

    ``commands``: sealed records [n, R], see `hw.oram.driver.sealing.seal_commands`. ``state``: pages, records
    and position map are read back too.
    """
    (pages,) = host_structures(config)
    sizes = {PAGES: pages.total_bytes}
    sizes |= {name: structure.port_bytes for name, structure in board_arguments(config).items()}
    return (
        Buffer(argument=COMMANDS, data=commands.reshape(-1), size_bytes=commands.size),
        Buffer(argument=RESPONSES, data=None, size_bytes=commands.size, output=True),
        *(Buffer(argument=name, data=None, size_bytes=size, output=state) for name, size in sizes.items()),
    )


def swap_halves(structure: Structure, lines: Bytes) -> Bytes:
    """Return the lines behind a port [lines, line_bytes] as they are in the board's memory, or back.

    Nothing changes unless the structure's lines are swapped.
    """
    if not structure.swapped:
        return lines
    halves = lines.reshape(len(lines), -1, 2, RECORD_HEADER_BYTES).copy()
    halves[1::2] = halves[1::2, :, ::-1].copy()
    return halves.reshape(lines.shape)


def gather_lines(structure: Structure, ports: Sequence[Bytes]) -> Bytes:
    """Return the lines [lines, line_bytes] of a structure from the buffers of its ports."""
    rows = [swap_halves(structure, port.reshape(-1, structure.line_bytes)) for port in ports]
    return np.stack(rows, axis=1).reshape(-1, structure.line_bytes)[: structure.lines]
