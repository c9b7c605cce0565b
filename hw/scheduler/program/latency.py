"""Latencies in cycles and queue depths in words, shared by the RTL and its cycle model.

The RTL is built with these depths.  A latency is the sum of the registers on a path; blocks of `hw.lib` state
their own.  `tests/hw/scheduler/kernel` compares each sum with the RTL.
"""

from hw.lib.axi import MAX_BURST_BEATS
from hw.lib.dma.read import ReadDMA
from hw.lib.dma.write import WriteDMA
from hw.lib.fifo import Fifo
from hw.lib.skid import Skid

#: From the grant of a scratchpad read to its response: arbiter register, RAM, output register, FIFO.
READ_LATENCY = 3 + Fifo.LATENCY
#: Outstanding reads of a port: enough for a word a cycle.
READS_AHEAD = 8
#: Transfers queued between their DMA command and their first word in the scratchpad.
TRANSFERS_AHEAD = 16
#: Words that a DMA buffers, and words of a burst.
DMA_WORDS = ReadDMA.FIFO_BEATS
MAX_BURST_WORDS = MAX_BURST_BEATS
#: From start to the first row of a table: read position, RAM, output register.
TABLE_CYCLES = 3
#: From an operator's command to its first addresses: operand stream, address generator.
COMMAND_CYCLES = 2
#: From an address to its bank's request, and the words the gate buffers ahead of that request.
GATE_CYCLES = Skid.LATENCY
GATE_WORDS = Skid.CAPACITY
#: From a transfer's issue to its first address on the bus; from a word on the bus to the gate.
ADDRESS_CYCLES = Skid.LATENCY + ReadDMA.ADDRESS_LATENCY
FILL_CYCLES = ReadDMA.DATA_LATENCY
#: From a write's issue to its first scratchpad read; from that read to the write DMA.  From a whole burst in
#: the DMA to its first word on the bus; from the response to completion.
WALK_CYCLES = Fifo.LATENCY + 2 + GATE_CYCLES
DRAIN_CYCLES = READ_LATENCY
SEND_CYCLES = WriteDMA.ADDRESS_LATENCY
TOKEN_CYCLES = WriteDMA.DONE_LATENCY
