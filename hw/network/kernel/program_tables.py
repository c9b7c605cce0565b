"""The tables of a program, written by the loader, and read in order by their users."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Const, Module, Value
from amaranth.lib import data

from hw.network.commands import Core
from hw.network.config import NetworkConfig
from hw.network.kernel.loader import ImageLoader
from hw.network.program.records import BLOCK_RAMS, TableNumber, ram_layout, row_layout
from hw.scheduler.core.table import ProgramTable


class ProgramTables:
    """Adds tables to a module, all written by one loader and started when it is done with the opening."""

    def __init__(self, m: Module, config: NetworkConfig, loader: ImageLoader) -> None:
        self._m, self._config, self._loader = m, config, loader

    def place(
        self, number: TableNumber, *, depth: int, part: str = "", core: Core | None = None
    ) -> ProgramTable:
        """Add a table of all rows of a number, or of one field of them; ``core``: of its rows alone."""
        m, loader = self._m, self._loader
        layout = row_layout(number, self._config)
        record: Any = data.View(layout, loader.row[: layout.size])
        name = f"{number.name.lower()}_{part}" if part else number.name.lower()
        own: Value = Const(1)
        if core is not None:
            own, name = record.core == core, f"{name}_{core.name.lower()}"
        if part:
            layout, record = layout[part].shape, record[part]
        assert isinstance(layout, data.StructLayout)
        table = ProgramTable(layout, depth=depth)
        m.submodules[f"{name}_table"] = table
        m.d.comb += [
            table.clear.eq(loader.start),
            table.write.eq(loader.write & (loader.table == number) & own),
            Value.cast(table.row).eq(Value.cast(record)),
            table.start.eq(loader.done),
        ]
        return table

    def write_ram(self, number: TableNumber, port: Any) -> None:
        """Write the rows of a RAM by the port of a unit, a register behind the loader's own."""
        if number in BLOCK_RAMS:
            self._write_blocks(number, port)
            return
        slot = self._loader.slot
        self._m.d.sync += [
            port.enable.eq(slot.enable & (slot.table == number)),
            port.row.eq(slot.row),
            Value.cast(port.data).eq(slot.data[: ram_layout(number, self._config).size]),
        ]

    def _write_blocks(self, number: TableNumber, port: Any) -> None:
        """Write the rows of a RAM by a port for all rows of a record."""
        block, bits = self._loader.block, ram_layout(number, self._config).size
        self._m.d.sync += [
            port.enable.eq(block.enable & (block.table == number)),
            port.row.eq(block.block),
            *(Value.cast(row).eq(slot[:bits]) for row, slot in zip(port.data, block.data, strict=True)),
        ]
