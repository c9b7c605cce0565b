"""Cycles of movers and units between events, added up from the latencies of the blocks."""

from hw.board import Board
from hw.conv.config import ConvConfig
from hw.conv.core.bypass_cut import BypassCut
from hw.conv.core.depthwise.cell import LaneCell
from hw.conv.core.depthwise.fill import Fill
from hw.conv.core.depthwise.gather_buffer import GatherBuffer
from hw.conv.core.depthwise.gather_scan import GatherScan
from hw.conv.core.depthwise.offset_dot import OffsetDot
from hw.conv.core.depthwise.offset_store import OffsetStore
from hw.conv.core.depthwise.row_gate import RowGate
from hw.conv.core.depthwise.sampler import Sampler
from hw.conv.core.depthwise.tables import LayerTables
from hw.conv.core.depthwise.tap_walker import TapWalker
from hw.conv.core.pointwise.block import BlockBuffer
from hw.conv.core.pointwise.drain import Drain
from hw.conv.core.pointwise.out_buffer import OutBuffer
from hw.conv.core.pointwise.pointwise import PointwiseUnit
from hw.conv.core.pointwise.shuffle import Shuffle
from hw.conv.core.pointwise.sweep import Sweep
from hw.conv.core.route import StreamRouter
from hw.conv.movers.descriptor import used_bytes
from hw.conv.movers.dispatch import Dispatch
from hw.conv.movers.join import Join
from hw.conv.movers.map_writer import MapWriter, PortWriter
from hw.conv.movers.movers import ConvMovers
from hw.conv.movers.port_order import PortOrder
from hw.conv.movers.requester import Requester
from hw.conv.movers.shared_read import SharedRead
from hw.conv.movers.side_port import SidePort
from hw.lib.descriptors.queue import DescriptorQueue
from hw.lib.dma.read import ReadDMA
from hw.lib.dma.write import WriteDMA
from hw.lib.fifo import Fifo
from hw.lib.rows.cutter import RowCutter
from hw.lib.skid import Skid


class Latency:
    """Cycles from one event to another, without stalls."""

    def __init__(self, config: ConvConfig, board: Board) -> None:
        width = config.port_width(board.memory.port_data_width)
        dma = ReadDMA.ADDRESS_LATENCY + board.idle_read_cycles + ReadDMA.DATA_LATENCY
        shared = PortOrder.LATENCY + dma + SharedRead.LATENCY
        #: ``descriptor_start``, ``descriptor``, ``descriptor_words``: from the start to the first request of
        #: a descriptor; from a request to its first word in the queue; words of a descriptor.
        self.descriptor = shared + Fifo.LATENCY
        self.descriptor_start = DescriptorQueue.START_LATENCY
        self.descriptor_words = 8 * used_bytes(config) // width
        #: ``commands``, ``after``: from a descriptor to its commands; from the last earlier result to the
        #: commands of a job that waited for it.
        self.commands, self.after = Dispatch.LATENCY, Dispatch.AFTER_LATENCY
        #: From a descriptor to the first beat of its weights at a unit.
        self.weights = 2 * Skid.LATENCY + 1 + dma + Skid.LATENCY + 1
        #: ``offsets``, ``offset_cut``: from commands to the first entry at the offset store, and its part
        #: from the port on. ``pixel``: from an entry to the walker.
        self.offset_cut = RowCutter.latency(48 * config.taps, width) + Skid.LATENCY
        self.offsets = Fifo.LATENCY + shared + self.offset_cut
        self.pixel = OffsetStore.PIXEL_LATENCY
        if config.gather_words:
            self.pixel += GatherScan.LATENCY + GatherBuffer.COMPLETE_LATENCY
        self._gathers = config.gather_words > 0
        #: From a pixel's last step to an entry that overwrites the pixel's own: ``offset_room``.  From the
        #: last entry at the store back to the port, and on to a descriptor that waited behind it:
        #: ``offset_left``.
        self.offset_room = TapWalker.LATENCY + Sampler.ENTRY_LATENCY + OffsetStore.ROOM_LATENCY
        self.offset_left = SharedRead.LATENCY + Fifo.LATENCY - self.offset_cut
        #: ``request``, ``chunk``: from a token to its command, and from there to the next command.
        self.request, self.chunk = Requester.LATENCY, Requester.INTERVAL
        part_bits = config.word_bits // config.ports
        #: ``read``, ``cut``: from a command to the first word, and its part from the port on. ``bypass_cut``,
        #: ``into_taps``, ``into_points``: from there to the bypass, or to a unit.
        self.cut = RowCutter.latency(part_bits, width) + Join.LATENCY
        dot = OffsetDot.LATENCY if config.dot_words else 0
        #: From a word that enters the line buffer to the offsets computed from it, at their store.
        self.dot = OffsetDot.latency(config)
        self.into_taps, self.into_points = StreamRouter.LATENCY + dot, StreamRouter.LATENCY
        self.read = shared + self.cut
        #: ``fill_token``, ``fill_token_interval``, ``fill_start``: from the depthwise unit's start to its
        #: first token; to the next token; from the start to the first word taken.
        self.fill_token, self.fill_token_interval = Fill.TOKEN_LATENCY, Fill.TOKEN_INTERVAL
        #: Cycles without a word between rows of the map are ``fill_gap``.  From a row's last word to its
        #: count: ``filled``.  From the begin of a row of results to a token, or a word, for the rows that it
        #: frees: ``freed``.
        self.fill_start, self.fill_gap = Fill.START_LATENCY, Fill.ROW_GAP
        #: ``tables``, ``loaded``: from the last entry of its tables, and from the last of its weights, to the
        #: begin of a row of results.
        self.loaded = Sampler.PREPARED_LATENCY
        #: From the pointwise unit's command to the first cycle in which it may stall.
        self.active = Fifo.LATENCY + Sweep.TAKE_LATENCY
        self.tables = LayerTables.LATENCY + Sampler.PREPARED_LATENCY
        self.freed = 1 + TapWalker.LATENCY + Sampler.LATENCY + Fill.FREED_LATENCY
        self.filled = Fill.FILLED_LATENCY
        #: ``gate``, ``row``: from the count of a row of the map to the begin of a row of results, and on to
        #: its first step. ``rows``: fewest cycles from begin to begin.
        self.gate, self.rows = RowGate.LATENCY, RowGate.INTERVAL
        self.row = TapWalker.ROW_LATENCY
        #: ``works``, ``tap_result``, ``drained``: from a step to its count as work; to its result; from the
        #: last step to the next layer.
        self.works = TapWalker.LATENCY + Sampler.LATENCY - 1
        self.tap_result = TapWalker.LATENCY + Sampler.LATENCY + 1 + LaneCell.latency(config) + Fifo.LATENCY
        self.drained = 1 + Sampler.LATENCY + LaneCell.latency(config) + 2
        #: ``block_token``, ``block_start``, ``block_again``, ``block_room``: from the pointwise unit's
        #: command to its first token, and to its first word; from a half's release to both.
        self.block_token, self.block_start = BlockBuffer.TOKEN_LATENCY, BlockBuffer.OPEN_LATENCY
        self.block_again, self.block_room = BlockBuffer.RELEASE_LATENCY, BlockBuffer.ROOM_LATENCY
        decide = Sweep.DECIDE_LATENCY + Sweep.BEGIN_LATENCY
        #: ``sweep``, ``tile``, ``reload``: from a block's last word, and from a tile's last beat, to the
        #: first pixel; from there to the next tile's first beat.
        self.sweep = BlockBuffer.FULL_LATENCY + decide
        #: From the last tile's first pixel, and from the last word of a block of the bypass, to when a block
        #: may leave: ``result``, ``bypass``.  From there to its first word: ``drain``.  From its last word to
        #: a sweep that fills its half again: ``freed_half``.
        self.result = PointwiseUnit.latency(config) + OutBuffer.COMMIT_LATENCY
        self.drain = Drain.BEGIN_LATENCY + Drain.LATENCY + Shuffle.LATENCY
        self.freed_half = OutBuffer.FREE_LATENCY + decide + 1 - Shuffle.LATENCY
        self.tile = 1 + decide
        self.reload = Sweep.RELEASE
        self.bypass = BlockBuffer.FULL_LATENCY
        self.bypass_cut = BypassCut.latency(config)
        self.out = StreamRouter.LATENCY  #: From a unit to the writer.
        #: ``write``, ``written``: from a word to the DMA, and from its last beat to the end of the job.
        self.write = MapWriter.LATENCY + PortWriter.LATENCY
        self.written = WriteDMA.ADDRESS_LATENCY + board.idle_write_cycles + WriteDMA.DONE_LATENCY
        logged = WriteDMA.ADDRESS_LATENCY + board.idle_write_cycles + WriteDMA.DONE_LATENCY
        #: From the end of the last job to ``done``.
        self.log = SidePort.LOG_LATENCY + logged + SidePort.LOG_DONE_LATENCY + ConvMovers.DONE_LATENCY

    def offset_turn(self, taps: int) -> int:
        """Return the cycles from the last entry of a layer to the first entry of the next one, of
        ``taps``.
        """
        return OffsetStore.TURN_LATENCY + (GatherScan.turn_latency(taps) if self._gathers else 0)
