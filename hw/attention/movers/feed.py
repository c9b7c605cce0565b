"""Feed of one stream: passes become requests to caches and ports, and parts for the core."""

from typing import Any

from amaranth.hdl import Module, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.attention.config import AttentionConfig
from hw.attention.core.command import TileCommand
from hw.attention.movers.cache import PartCache
from hw.attention.movers.part_reader import PartReader
from hw.attention.movers.reader import RowReader
from hw.attention.walk.fetch import TileFetch
from hw.attention.walk.job import ADDRESS_BITS
from hw.attention.walk.layouts import KeyPass, TileRequest
from hw.attention.walk.pages import PageEntry, PageLookup
from hw.attention.walk.table_words import WORD_TILES
from hw.attention.walk.tags import CacheTags
from hw.attention.walk.tiles import TileWalker
from hw.lib import axi
from hw.lib.skid import Skid


class StreamFeed(wiring.Component):
    """Feeds one stream of the core."""

    def __init__(self, config: AttentionConfig, *, index: int, data_width: int) -> None:
        self._config = config
        self._index = index
        self._data_width = data_width
        ports = config.ports
        elements = data.ArrayLayout(signed(8), config.lanes)
        port = axi.ReadSignature(data_width=data_width, addr_width=ADDRESS_BITS)
        members: dict[str, Any] = {
            "i": In(stream.Signature(KeyPass(config))),
            "words": In(stream.Signature(WORD_TILES)),  #: See `TileWalker`.
            #: See `TileFetch`.
            **{f"{side}_base": In(data.ArrayLayout(ADDRESS_BITS, ports)) for side in "kv"},
            "tile": Out(stream.Signature(TileCommand(config))),
            #: To the core, see `hw.attention.core.command`.
            **{side: Out(stream.Signature(elements)) for side in "kv"},
            **{f"{side}_axi": Out(port).array(ports) for side in "kv"},
            #: Bytes read through each port since reset.
            **{f"{side}_bytes": Out(data.ArrayLayout(48, ports)) for side in "kv"},
        }
        if not index:
            #: Of stream 0 only: see `TileWalker`.
            members["empty"] = Out(stream.Signature(1, always_ready=True))
        if config.decodes:
            for side in "kv":
                members |= {
                    #: Of each port's `PartReader`; in a job that decodes the core takes its parts, not the
                    #: cache.
                    f"{side}_arrived": Out(ports),
                    **{f"{side}_{name}": In(ports) for name in ("take", "last", "keep")},
                    f"{side}_part": Out(data.ArrayLayout(config.part_bits, ports)),
                }
        if config.paged:
            members["entries"] = In(stream.Signature(PageEntry()))  #: See `PageLookup`.
        super().__init__(members)

    def elaborate(self, platform: Any) -> Module:
        """Walker -> pages -> registers -> tags -> fetch -> readers -> caches."""
        m = Module()
        config = self._config
        m.submodules.walker = walker = TileWalker(config, index=self._index)
        m.submodules.tags = tags = CacheTags(config)
        m.submodules.fetch = fetch = TileFetch(config, index=self._index)
        connect(m, flipped(self.i), walker.i)
        connect(m, flipped(self.words), walker.words)
        if not self._index:
            connect(m, walker.empty, flipped(self.empty))
        # A register: the next tile of a bitmap follows from all of its bits, and the handshake of the tags is
        # late.
        m.submodules.found = found = Skid(TileRequest(config))
        if config.paged:
            m.submodules.pages = pages = PageLookup(config)
            connect(m, walker.o, pages.i)
            connect(m, flipped(self.entries), pages.entries)
            connect(m, pages.o, found.i)
        else:
            connect(m, walker.o, found.i)
        connect(m, found.o, tags.i)
        connect(m, tags.o, fetch.i)
        connect(m, fetch.tile, flipped(self.tile))
        for side in "kv":
            m.submodules[f"{side}_cache"] = cache = PartCache(config)
            m.d.comb += getattr(fetch, f"{side}_base").eq(getattr(self, f"{side}_base"))
            connect(m, getattr(fetch, side), cache.command)
            connect(m, cache.o, flipped(getattr(self, side)))
            for p in range(config.ports):
                reader: Any = (
                    PartReader(config) if config.decodes else RowReader(config, data_width=self._data_width)
                )
                m.submodules[f"{side}_reader_{p}"] = reader
                connect(m, getattr(fetch, f"{side}_fetch")[p], reader.fetch)
                if config.decodes:
                    self._share(m, side, p, reader, cache)
                else:
                    connect(m, reader.o, cache.i[p])
                connect(m, reader.axi, flipped(getattr(self, f"{side}_axi")[p]))
                m.d.comb += getattr(self, f"{side}_bytes")[p].eq(reader.bytes_useful)
        return m

    def _share(self, m: Module, side: str, port: int, reader: PartReader, cache: PartCache) -> None:
        """Connect a reader to the cache and to the core: in each job only one of them takes parts."""
        m.d.comb += [
            cache.available[port].eq(reader.available),
            cache.part[port].eq(reader.part),
            getattr(self, f"{side}_arrived")[port].eq(reader.arrived),
            getattr(self, f"{side}_part")[port].eq(reader.part),
            reader.take.eq(cache.take[port] | getattr(self, f"{side}_take")[port]),
            reader.last.eq(getattr(self, f"{side}_last")[port]),
            reader.keep.eq(getattr(self, f"{side}_keep")[port]),
        ]
