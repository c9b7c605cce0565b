"""Latencies and queues of the gates, in cycles and words: the gates and their timing model share them.

Queues are built with these numbers.  A latency follows from the registers on a way, those of `hw.lib` from
what its blocks say of themselves; `tests/hw/scheduler/kernel` holds the sum of each way to the gates.
"""

from __future__ import annotations

from hw.lib.axi import MAX_BURST_BEATS
from hw.lib.dma.read import ReadDMA
from hw.lib.dma.write import WriteDMA
from hw.lib.fifo import Fifo
from hw.lib.skid import Skid

#: From the grant of a read of the scratchpad to its word at the port: the arbiter's register, the RAM, the
#: RAM's output register, the FIFO.
READ_LATENCY = 3 + Fifo.LATENCY
#: Words a read port may have under way: enough for one a cycle.
READS_AHEAD = 8
#: Transfers that may wait between their DMA command and their first word in the scratchpad.
TRANSFERS_AHEAD = 16
#: Words that a DMA holds, and those of a burst.
DMA_WORDS = ReadDMA.FIFO_BEATS
MAX_BURST_WORDS = MAX_BURST_BEATS
#: From start to the first row of a table: its position, the RAM, the output register.
TABLE_CYCLES = 3
#: From an operator's command to its first places: operands, walker.
COMMAND_CYCLES = 2
#: From a place to the bank, and the words that fit before the one that asks the bank.
GATE_CYCLES = Skid.LATENCY
GATE_WORDS = Skid.CAPACITY
#: From a transfer's leave to run to its first address on the bus; from a word on the bus to the gate.
ADDRESS_CYCLES = Skid.LATENCY + ReadDMA.ADDRESS_LATENCY
FILL_CYCLES = ReadDMA.DATA_LATENCY
#: From a transfer's leave to run to its first read of the scratchpad (queue, walker, gate); from that to the
#: write DMA; from a whole burst there to its first word on the bus; from the response to "complete".
WALK_CYCLES = Fifo.LATENCY + 2 + GATE_CYCLES
DRAIN_CYCLES = READ_LATENCY
SEND_CYCLES = WriteDMA.ADDRESS_LATENCY
TOKEN_CYCLES = WriteDMA.DONE_LATENCY
