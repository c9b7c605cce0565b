"""Cycles between events of the kernel without stalls, added up from the latencies of its blocks."""

from __future__ import annotations

from hw.lib.dma.read import ReadDMA
from hw.lib.fifo import Fifo
from hw.lib.skid import Skid
from hw.lib.width import WidthConverter
from hw.network.config import NetworkConfig
from hw.network.kernel.count_gate import CountGate
from hw.network.kernel.loader import ImageLoader
from hw.network.kernel.tap_store import TapStore
from hw.network.matrix.array import MatrixArray
from hw.network.matrix.drain_lanes import DrainLanes
from hw.network.matrix.feed import PixelFeed
from hw.network.scratchpad.reader import GranuleReader
from hw.network.scratchpad.slice import ScratchpadSlice
from hw.scheduler.program.latency import DRAIN_CYCLES, FILL_CYCLES, TABLE_CYCLES, WALK_CYCLES

#: From a write of the scratchpad to its grant: the port's register, a slice's queue, its head.
_GRANT_CYCLES = 1 + Fifo.LATENCY + 1
#: From a grant to the count of a write: won, counted.
_COUNT_CYCLES = 2

#: From start to the first request of the image: the loader's command, the splitter.
LOAD_CYCLES = 2
#: From a beat of the image on the bus to its record: DMA, queue, two words of the port.
RECORD_CYCLES = ReadDMA.DATA_LATENCY + Skid.LATENCY + WidthConverter.LATENCY
#: From the last row of the image to the loader's end, and from there to the first rows of tables.
LOADED_CYCLES, ROWS_CYCLES = ImageLoader.DONE_LATENCY, TABLE_CYCLES
#: From the counts that a command waits for to its offer.
OFFER_CYCLES = CountGate.LATENCY
#: From the first rows of tables to the first request of weights: the port's queue, the splitter.
WEIGHTS_CYCLES = Skid.LATENCY + 1
#: From the first rows of tables to the first tap row; cycles between the rows of two commands.
TAPS_CYCLES, TAPS_PAUSE = TapStore.LATENCY, 2
#: From a matrix command, with its tap rows there, to its first pixel.
PIXEL_CYCLES = PixelFeed.LATENCY
#: Cycles by which a word that is not read, as all of it is outside of the image, comes earlier.
UNREAD_CYCLES = ScratchpadSlice.REQUEST_LATENCY + ScratchpadSlice.RESPONSE_LATENCY - Fifo.LATENCY - 1
#: From a grant to the word at the array, or at the drain: response, port, the feed's queue.
RESPONSE_CYCLES = ScratchpadSlice.RESPONSE_LATENCY + GranuleReader.RESPONSE_LATENCY
#: From a residual's first grant to the feeds' first one: the drain walks 3 cycles after its queue.
RESIDUAL_LEAD = PIXEL_CYCLES - Skid.LATENCY - GranuleReader.LATENCY - Fifo.LATENCY - 3
#: From the vector unit's first request to its word.
FIRST_WORD_CYCLES = GranuleReader.LATENCY + 2
#: From the count of the last transfer to done.
DRAINED_CYCLES = 1
#: From the last word of a transfer on the bus to its count, beyond the cycles of the scheduler's engine.
READ_COUNT_CYCLES = (
    ReadDMA.DATA_LATENCY + Skid.LATENCY + WidthConverter.LATENCY + _GRANT_CYCLES + _COUNT_CYCLES + 1
) - (FILL_CYCLES + 3)
#: From the issue of a write to its first word at the DMA, likewise.
WRITE_CYCLES = (
    Fifo.LATENCY + 1 + Skid.LATENCY + GranuleReader.LATENCY + WidthConverter.LATENCY + Skid.LATENCY
) - (WALK_CYCLES + DRAIN_CYCLES)


def drain_cycles(config: NetworkConfig) -> int:
    """Return the cycles from a command's last step to its end.

    The way is array, queue of results, lanes, queue of words, scratchpad.
    """
    lanes = Fifo.DEEP_LATENCY + DrainLanes.LATENCY + Fifo.LATENCY
    return MatrixArray.latency(config.matrix) + lanes + _GRANT_CYCLES + 1
