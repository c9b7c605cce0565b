"""Latencies and queues of the gates, in cycles and words: the gates and their timing model share them.

Queues are built with these numbers.  A latency follows from the registers on a way; the regression measures
each in simulation.
"""

from __future__ import annotations

from hw.lib.axi import MAX_BURST_BEATS

#: From the grant of a read of the scratchpad to its word at the port: the arbiter's register, the RAM, the
#: RAM's output register, the FIFO.
READ_LATENCY = 4
#: Words a read port may have under way: enough for one a cycle.
READS_AHEAD = 8
#: Transfers that may wait between their DMA command and their first word in the scratchpad.
TRANSFERS_AHEAD = 16
#: Words that a DMA holds, and those of a burst.
DMA_WORDS = 512
MAX_BURST_WORDS = MAX_BURST_BEATS
#: From an operator's command to its first read.
COMMAND_CYCLES = 2
#: From a transfer's leave to run to its first address on the bus; from a word on the bus to the scratchpad.
ADDRESS_CYCLES, FILL_CYCLES = 3, 2
#: From a transfer's leave to run to its first read of the scratchpad; from that to the write DMA; from a
#: whole burst there to its first word on the bus; from the response to "complete".
WALK_CYCLES, DRAIN_CYCLES, SEND_CYCLES, TOKEN_CYCLES = 3, 4, 3, 1
