"""Latencies of the movers, from one event to the next: sums of the latencies that the components state."""

from hw.attention.config import AttentionConfig
from hw.attention.movers.cache import PartCache
from hw.attention.movers.lockstep import Lockstep
from hw.attention.movers.query_parts import QueryParts
from hw.attention.movers.result_writer import ResultWriter
from hw.attention.walk.descriptor import USED_BYTES
from hw.attention.walk.fetch import TileFetch
from hw.attention.walk.job_setup import JobSetup
from hw.attention.walk.pages import PageLookup
from hw.attention.walk.passes import PassWalker
from hw.attention.walk.tags import CacheTags
from hw.attention.walk.tiles import TileWalker
from hw.lib.dma.join_read import ReadJoin
from hw.lib.dma.read import ReadDMA
from hw.lib.fifo import Fifo
from hw.lib.rows.cutter import RowCutter
from hw.lib.skid import Skid
from hw.lib.width import WidthConverter


class MoverTiming:
    """Cycles from one event in the movers to another, without stalls.

    An event of a pass, a job or a beat is the cycle of its transfer.  Parts are aligned to beats.

    ``memory_cycles``: from a read address to its first beat. ``table_cycles``: from a table's
    read address to its first beat, which may be partial; `memory_cycles` by default.
    """

    def __init__(
        self, config: AttentionConfig, *, data_width: int, memory_cycles: int, table_cycles: int = 0
    ) -> None:
        read = ReadDMA.ADDRESS_LATENCY + memory_cycles + ReadDMA.DATA_LATENCY
        table = ReadDMA.ADDRESS_LATENCY + (table_cycles or memory_cycles) + ReadDMA.DATA_LATENCY
        cut = Skid.LATENCY + RowCutter.latency(config.part_bits, data_width) + Skid.LATENCY
        query_bits = config.part_bits // config.query_ports
        cut_query = Skid.LATENCY + RowCutter.latency(query_bits, data_width) + Skid.LATENCY
        join, query = 0, read + cut_query + Fifo.LATENCY
        if config.decodes:
            cut = 0  # rows are whole parts
            join = ReadJoin.ADDRESS_LATENCY  # tables and queries share their ports with values
            query = join + QueryParts.ADDRESS_LATENCY + memory_cycles + QueryParts.DATA_LATENCY
        self.first_pass = JobSetup.LATENCY + PassWalker.LATENCY  #: From a job to its first pass.
        #: ``next_set``, ``next_job``, ``next_pass``: from a pass to the first one of the next set of heads or
        #: of the next job, and to any other one.
        self.next_set, self.next_job = PassWalker.SET_INTERVAL, PassWalker.JOB_INTERVAL
        self.next_pass = PassWalker.INTERVAL
        self.descriptor_words = 8 * USED_BYTES // data_width
        self.queue = Fifo.LATENCY + Skid.LATENCY  #: From a pass to the core's command.
        #: From the request of a descriptor to its job.
        self.descriptor = join + table + Fifo.LATENCY + self.descriptor_words
        self.query = self.queue + query  #: From a pass to the first part of its queries, if a beat holds it.
        #: From a pass to the first bits of its bitmap.
        self.bitmap = self.queue + join + table + WidthConverter.LATENCY + Fifo.LATENCY
        #: From a pass to the first tile by its page table.
        self.entry = self.bitmap + PageLookup.ENTRY_LATENCY
        #: From a pass to its first tile without a bitmap; ``tiles`` from a tile to the next.
        self.tile = self.queue + TileWalker.LATENCY
        #: From the decision whether a pass is empty to the core.
        self.empty = TileWalker.EMPTY_LATENCY + Fifo.LATENCY
        self.tiles = CacheTags.interval(config)
        #: Cycles that a tile saves by clearing the cache tags: of ``key`` and ``replay``, and of ``tiles``
        #: behind it.
        self.cleared = CacheTags.latency(config, clears=False) - CacheTags.latency(config, clears=True)
        plan = Skid.LATENCY + CacheTags.latency(config, clears=True) + TileFetch.LATENCY
        #: From a tile that clears the caches to the first part of keys or values from memory, if a beat holds
        #: it.
        self.key = plan + read + cut + PartCache.latency(config)
        #: From a tile to the first parts of keys or values in a job that decodes, if a beat holds them.
        self.part = plan + read + Lockstep.latency(config) - 1
        #: ``fetch``, ``join``: from a tile that clears the caches to the address of its read, and the
        #: additional cycles of a shared port.
        self.join, self.fetch = join, plan + ReadDMA.ADDRESS_LATENCY
        #: From a tile that clears the caches to the first part of keys from them, or of a placeholder.
        self.replay = plan + Skid.LATENCY + PartCache.latency(config)
        self.done = ResultWriter.DONE_LATENCY  #: From the last response to the end.
