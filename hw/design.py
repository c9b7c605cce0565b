"""A generated kernel: its Verilog, and what its package is written from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hw.board import Board
from hw.board.regions import Regions
from hw.board.resources import Resources
from hw.lib.arguments import ArgumentTable


@dataclass(frozen=True, kw_only=True)
class MemoryPort:
    """One ``m_axi`` interface of a kernel, and what it is connected to.

    Parameters
    ----------
    name
        Name in the argument table (``"gmem0"``); the interface is ``m_axi_gmem0``.
    data_width, addr_width, id_width
        Widths in bits.
    memory
        Name of the board's memory behind it (``"hbm"``).
    channel
        Channel of that memory.
    """

    name: str
    data_width: int
    addr_width: int
    id_width: int
    memory: str
    channel: int


@dataclass(frozen=True, kw_only=True)
class Design:
    """What `hw.verilog.generate` gives.

    Parameters
    ----------
    top_name
        Name of the kernel and of its top module.
    verilog
        Everything, one file.
    meta
        What ``meta.json`` says: configuration, hash, versions, argument table, ports.
    table
        The arguments and counters.
    ports
        The memory ports, in the order of the table.
    board
        The board it was made for.
    resources
        The engine's own estimate of what it takes.
    regions
        Which placed parts lie on which die; see `hw.board.regions`.
    config
        The engine's configuration.
    templates
        Folder of the engine's own templates, if it has one; see `hw.engine.Engine`.
    bursts_under_way
        Of reads and of writes at each memory port; see `hw.engine.Engine`.
    """

    top_name: str
    verilog: str
    meta: dict[str, Any]
    table: ArgumentTable
    ports: tuple[MemoryPort, ...]
    board: Board
    resources: Resources
    regions: Regions
    config: Any
    templates: Path | None
    bursts_under_way: tuple[int, int]

    @property
    def config_hash(self) -> str:
        """Hash of engine, configuration and board; see `hw.config.config_hash`."""
        return str(self.meta["config_hash"])
