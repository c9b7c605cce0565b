"""A generated kernel: its Verilog, and the data of its package."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hw.board import Board
from hw.board.regions import Regions
from hw.board.resources import Resources
from hw.lib.arguments import ArgumentTable


@dataclass(frozen=True, kw_only=True)
class MemoryPort:
    """One ``m_axi`` interface of a kernel, and the memory behind it."""

    name: str  #: Name in the argument table (``"gmem0"``); the interface is ``m_axi_gmem0``.
    #: ``data_width``, ``addr_width``, ``id_width``: widths in bits.
    data_width: int
    addr_width: int
    id_width: int
    memory: str  #: Name of the board's memory behind it (``"hbm"``).
    channel: int  #: Channel of that memory.


@dataclass(frozen=True, kw_only=True)
class Design:
    """A generated kernel: the result of `hw.verilog.generate`."""

    top_name: str  #: Name of the kernel and of its top module.
    verilog: str  #: Everything, one file.
    meta: dict[str, Any]  #: Content of ``meta.json``: configuration, hash, versions, argument table, ports.
    table: ArgumentTable  #: The arguments and counters.
    ports: tuple[MemoryPort, ...]  #: The memory ports, in the order of the table.
    board: Board  #: The board it was made for.
    resources: Resources  #: The engine's own estimate.
    regions: Regions  #: Which placed parts lie on which die; see `hw.board.regions`.
    config: Any
    templates: Path | None  #: Folder of the engine's own templates, if it has one; see `hw.engine.Engine`.
    bursts_under_way: tuple[int, int]  #: Of reads and of writes at each memory port; see `hw.engine.Engine`.
    #: Of a control-only simulation: memory ports that read zeros and write nothing.
    constant_ports: tuple[str, ...] = ()
    #: Signals that a simulation may log; see `hw.engine.Engine.signals`.
    signals: Mapping[str, str] = field(default_factory=dict)

    @property
    def config_hash(self) -> str:
        """Hash of engine, configuration and board; see `hw.config.config_hash`."""
        return str(self.meta["config_hash"])
