"""The scratchpad in granules: its slices, and the ports that join them."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, connect, flipped

from hw.lib.place import Placer
from hw.network.scratchpad.reader import GranuleReader, GranuleReadPort
from hw.network.scratchpad.shape import GranuleShape
from hw.network.scratchpad.slice import ScratchpadSlice
from hw.network.scratchpad.writer import GranuleWritePort, GranuleWriter


class GranuleScratchpad(wiring.Component):
    """All words of the scratchpad, for several users at once.

    ``readers``, ``writers``: its ports, the most important first.

    Behaviour
    ---------
    A word a cycle a port, from any granule on; see `ScratchpadSlice` for who waits.  Reads and writes of
    different ports are ordered by the writer's ``idle``, or by a count of ``written``.
    A user may overwrite a word as soon as it has its reads' responses.

    The granules of the last word may be followed by those of the first.
    """

    def __init__(self, shape: GranuleShape, placer: Placer, *, readers: int, writers: int) -> None:
        self._shape = shape
        self._placer = placer
        super().__init__(
            {
                "read": In(GranuleReadPort(shape)).array(readers),
                "write": In(GranuleWritePort(shape)).array(writers),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Ports -> slices."""
        m = Module()
        shape, placer = self._shape, self._placer
        readers, writers = len(self.read), len(self.write)
        slices = [
            placer.place(
                m,
                f"slice_{n}",
                "network_granule_slice",
                lambda: ScratchpadSlice(shape, placer, readers=readers, writers=writers),
            )
            for n in range(shape.granules)
        ]
        for index, port in enumerate(self.read):
            reader = placer.place(
                m, f"reader_{index}", "network_granule_reader", lambda: GranuleReader(shape)
            )
            connect(m, flipped(port), reader.port)
            for own, inner in zip(reader.slices, slices, strict=True):
                connect(m, own, inner.read[index])
        for index, port in enumerate(self.write):
            writer = placer.place(
                m, f"writer_{index}", "network_granule_writer", lambda: GranuleWriter(shape)
            )
            connect(m, flipped(port), writer.port)
            for own, inner in zip(writer.slices, slices, strict=True):
                connect(m, own, inner.write[index])
        return m
