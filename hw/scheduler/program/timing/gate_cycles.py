"""How long the gates take, in cycles: exact for what runs alone, and the base of `timeline`.

A step whose slot and reads wait for nothing takes `step_cycles`; a launch takes its steps and
`LAUNCH_CYCLES`.  What runs at the same time shares two things.  Banks: two users that go through memory word
by word meet once, and the later one loses a cycle, each time one of them begins anew or jumps.  The memory
port: a word a cycle in each direction, and what the memory gives when both are used.

A ring of two words, or of a multiple of the banks, passes a word a cycle; of one word, one every second
cycle.  Two cores joined by a ring take the pipeline of both and then run word by word together.
"""

from __future__ import annotations

from hw.lib.axi import MAX_BURST_BEATS

#: From start to the first slot, and from the last transfer to done.
LAUNCH_CYCLES = 2
#: Of a step, beside its slowest operator: the slot, the reads, and the step's end.
SEQUENCER_CYCLES = 3
#: From the command to the first word read, through the scratchpad and the digest to the first word written.
_PIPELINE_CYCLES = 9
#: The same for an operator that reads nothing.
_OUTPUT_CYCLES = 3
#: From the slot to the address of a read on the bus, and from its last word on the bus to "complete".
_READ_CYCLES = 6
#: From start to the address of the image on the bus, and from its last word there to the start of the tables.
_LOAD_CYCLES = 5
#: From the step's end to the first word in the write DMA, and from the last response to "complete".
_WRITE_CYCLES = 9


def load_cycles(words: int, latency_cycles: int) -> int:
    """Count the cycles a launch takes more when a program image of so many words of the port is loaded.

    Words are at least as wide as a record; ``latency_cycles`` as of `read_cycles`.
    """
    return words + latency_cycles + _LOAD_CYCLES


def operator_cycles(input_words: int, output_words: int, compute_cycles: int) -> int:
    """Count the cycles of one operator with whole operands, from its command to done."""
    pipeline = _PIPELINE_CYCLES if input_words else _OUTPUT_CYCLES
    return max(compute_cycles, max(input_words, output_words) + pipeline)


def step_cycles(input_words: int, output_words: int, compute_cycles: int) -> int:
    """Count the cycles of a step of one operator that waits for no transfer."""
    return SEQUENCER_CYCLES + operator_cycles(input_words, output_words, compute_cycles)


def read_cycles(words: int, latency_cycles: int) -> int:
    """Count the cycles from the slot's begin to the completion of the first read, at a word a cycle.

    Parameters
    ----------
    words
        Of this read and of those right behind it, up to the one that is waited for.
    latency_cycles
        Of the memory, from an address on the bus to the first word.
    """
    return words + latency_cycles + _READ_CYCLES


def write_cycles(words: int, latency_cycles: int) -> int:
    """Count the cycles from the step's end to the completion of the first write, at a word a cycle.

    A burst waits in the DMA until it is whole (`hw.lib.dma_write`).

    Parameters
    ----------
    words
        Of this write and of those right behind it, up to the one that is waited for.
    latency_cycles
        Of the memory, from the last word on the bus to the response.
    """
    return words + max(2, min(words, MAX_BURST_BEATS)) + latency_cycles + _WRITE_CYCLES
