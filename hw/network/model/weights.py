"""Packets of weights and sweeps of the array, event by event; compiled.

A word is as wide as a port.  All ports deliver in lockstep, so a word is there when the last port has it.
Constants come with the calls: a compiled function is cached with its own file alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hw.scheduler.compiled import compiled

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

#: Places of the rings: a power of two above all words of a DMA and of the channel's buffer.
RING = 2048


class PortMemory(NamedTuple):
    """A memory port of weights and its channel, in cycles of the kernel's clock."""

    request_cycles: float  #: From an address on the bus to the channel.
    response_cycles: float  #: From the channel to data on the bus.
    word_cycles: float  #: Of the channel, for a word.
    refresh_interval: float
    refresh_cycles: float
    buffer_words: int  #: That the channel may be ahead of the bus.


class PacketTiming(NamedTuple):
    """The way from the memory ports to the array."""

    lines: int  #: Words of a beat.
    burst_words: int
    fifo_words: int  #: Of a DMA.
    behind_words: int  #: Between a DMA's FIFO and a beat.
    entry_cycles: int  #: From the last kind of a command to the request of the one after the next.
    address_cycles: int  #: From a burst with room to its address on the bus.
    data_cycles: int  #: From data on the bus to the words of a beat.
    weight_beats: int
    parameter_beats: int
    parameters_wait: int  #: From the adoption of a packet to the next one's first parameters.


class WeightState(NamedTuple):
    """The stream so far."""

    #: ``[ports, 3]``: when the channel is free, when the bus had its last word, the next refresh.
    ports: Floats
    bus: Floats  #: ``[ports, RING]``: when each word was on its bus.
    left: Integers  #: ``[RING]``: when each word left its DMA's FIFO.
    stepped: Integers  #: ``[RING]``: when each word joined its beat.
    #: Words so far, last request, last beat taken, last adoption, when the last kind of this command and of
    #: the one before was taken.
    now: Integers


_WORDS, _ASKED, _TAKEN, ADOPTED, _KIND, _KIND_BEFORE = range(6)
_FREE, _BUS, _REFRESH = range(3)
#: Of ``now``.
STATE = 6


@compiled
def _arrival(
    word: int, first: bool, command: int, memory: PortMemory, timing: PacketTiming, state: WeightState
) -> float:
    """Return when the last port has a word on its bus; ``first``: of a burst."""
    now = state.now
    if first:
        asked = max(now[_ASKED] + 1, command)
        before = word + timing.burst_words - timing.fifo_words - 1
        if before >= 0:
            asked = max(asked, state.left[before % RING] + 1)
        now[_ASKED] = asked
    latest = 0.0
    for port in range(len(state.ports)):
        own = state.ports[port]
        at = max(own[_FREE], now[_ASKED] + timing.address_cycles + memory.request_cycles)
        if word >= memory.buffer_words:
            at = max(at, state.bus[port, (word - memory.buffer_words) % RING] - memory.response_cycles)
        while at >= own[_REFRESH]:
            at = max(at, own[_REFRESH] + memory.refresh_cycles)
            own[_REFRESH] += memory.refresh_interval
        own[_FREE] = at + memory.word_cycles
        own[_BUS] = max(own[_BUS] + 1, np.ceil(at + memory.response_cycles))
        state.bus[port, word % RING] = own[_BUS]
        latest = max(latest, own[_BUS])
    return latest


@compiled
def _load(
    beats: int,
    plain: int,
    place: int,
    begins: bool,
    command: int,
    memory: PortMemory,
    timing: PacketTiming,
    state: WeightState,
) -> int:
    """Load a packet; return when it may be adopted.

    ``place``: of its first word in a port's memory. ``begins``: it is the first of its pass. ``plain``: beats
    of weights, before those of parameters.
    """
    now = state.now
    for beat in range(beats):
        for line in range(timing.lines):
            word = now[_WORDS]
            number = beat * timing.lines + line
            first = (begins and number == 0) or (place + number) % timing.burst_words == 0
            arrives = int(_arrival(word, first, command, memory, timing, state))
            stepped = arrives + timing.data_cycles
            if word:
                stepped = max(stepped, state.stepped[(word - 1) % RING] + 1)
            if line == 0:
                stepped = max(stepped, now[_TAKEN])
            state.stepped[word % RING] = stepped
            left = arrives + 1
            if word >= timing.behind_words:
                left = max(left, state.stepped[(word - timing.behind_words) % RING])
            state.left[word % RING] = left
            now[_WORDS] += 1
        taken = max(stepped + 1, now[_TAKEN] + 1, now[ADOPTED] + 1)
        if beat >= plain and now[ADOPTED] >= 0:
            taken = max(taken, now[ADOPTED] + timing.parameters_wait)
        now[_TAKEN] = taken
    return int(now[_TAKEN]) + 1


@compiled
def sweep(
    command: Integers,
    pixels: int,
    early: int,
    start: int,
    memory: PortMemory,
    timing: PacketTiming,
    state: WeightState,
) -> tuple[int, int]:
    """Run the sweeps of a command; return the last step, and the cycles without weights.

    ``command``: k tiles, column tiles, blocks, steps of a block and of the last one, first word of the pass.
    ``pixels``: when the words of the feed are there; the first one is ``early``. ``start``: when the first
    entry of weights is.
    """
    k_tiles, n_tiles, blocks, steps, last_steps, place = command
    now = state.now
    # The stream has the entry of the next command, and the one behind it only when the kinds have that.
    asks = max(start, now[_KIND_BEFORE] + timing.entry_cycles)
    now[_KIND_BEFORE] = now[_KIND]
    at, waits = pixels - early, 0
    for block in range(blocks):
        number = place
        for tile in range(n_tiles * k_tiles):
            plain = timing.weight_beats
            beats = plain + timing.parameter_beats * (tile % k_tiles == 0)
            if block == blocks - 1 and tile == n_tiles * k_tiles - 1:
                now[_KIND] = max(now[_TAKEN], now[_KIND]) + 1
            loaded = _load(beats, plain, number, tile == 0, asks, memory, timing, state)
            number += beats * timing.lines
            waits += max(0, loaded - at)
            at = max(at, loaded)
            now[ADOPTED] = at
            at = max(at, pixels)
            at += last_steps if block == blocks - 1 else steps
    return at - 1, waits


@compiled
def stream(count: int, asked: int, memory: PortMemory, timing: PacketTiming, state: WeightState) -> Integers:
    """Return when each of ``count`` words of one long read, for which there is room, is on the bus.

    ``asked``: when its first burst may be requested.
    """
    found = np.zeros(count, np.int64)
    for word in range(count):
        found[word] = int(_arrival(word, word % timing.burst_words == 0, asked, memory, timing, state))
    return found
