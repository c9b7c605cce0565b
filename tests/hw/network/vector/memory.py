"""A naive scratchpad: two read ports and a write port, each with its own random delays."""

from __future__ import annotations

import random
from collections import deque

import numpy as np
from amaranth.hdl import Cat, Value

from tests.support.gateware.streams import payload_of


class NaiveScratchpad:
    """Granules in an array.

    ``latency``: least cycles from a request to its response. ``stalls``: probability that a read port, and
    the write port, does not move in a cycle.
    """

    def __init__(self, granules: np.ndarray, *, latency: int, stalls: tuple[float, float], seed: int) -> None:
        self.granules = granules.copy()
        self._latency = latency
        self._read_stall, self._write_stall = stalls
        self._rng = random.Random(seed)

    def serve(self, unit):
        """Return a testbench that serves the ports of a unit."""

        async def bench(ctx):
            reads, write = unit.read, unit.write
            pins = Cat(*(Cat(port.request.ready, port.response.valid, Value.cast(port.response.payload))
                         for port in reads), write.write.ready, write.idle)  # fmt: skip
            seen = Cat(*(Cat(port.request.valid, port.response.ready, Value.cast(port.request.payload))
                         for port in reads), write.write.valid, Value.cast(write.write.payload))  # fmt: skip
            request_bits = len(Value.cast(reads[0].request.payload))
            response_bits = len(Value.cast(reads[0].response.payload))
            asked = [deque() for _ in reads]
            offered = [None for _ in reads]
            accepting = [False for _ in reads]
            takes, pending = False, deque()
            tick = ctx.tick().sample(seen)
            cycle = 0
            while True:
                driven, offset = 0, 0
                for n in range(len(reads)):
                    if (
                        offered[n] is None
                        and asked[n]
                        and asked[n][0][0] <= cycle
                        and self._moves(self._read_stall)
                    ):
                        offered[n] = self._word(asked[n].popleft()[1])
                    accepting[n] = len(asked[n]) < 32 and self._moves(self._read_stall)
                    bits = int(accepting[n]) | (0 if offered[n] is None else 2 | offered[n] << 2)
                    driven |= bits << offset
                    offset += 2 + response_bits
                takes = len(pending) < 8 and self._moves(self._write_stall)
                driven |= (int(takes) | int(not pending) << 1) << offset
                ctx.set(pins, driven)
                _, _, word = await tick
                for n, port in enumerate(reads):
                    valid, ready = word & 1, word >> 1 & 1
                    if valid and accepting[n]:
                        request = word >> 2 & (1 << request_bits) - 1
                        asked[n].append((cycle + self._latency, payload_of(port.request.payload, request)))
                    if ready and offered[n] is not None:
                        offered[n] = None
                    word >>= 2 + request_bits
                if pending and self._moves(self._write_stall):
                    self._store(pending.popleft())
                if word & 1 and takes:
                    pending.append(payload_of(write.write.payload, word >> 1))
                cycle += 1

        return bench

    def _moves(self, stall: float) -> bool:
        return stall == 0 or self._rng.random() >= stall

    def _word(self, request) -> int:
        word = 0
        for n in range(4):
            if request["enable"] >> n & 1:
                granule = self.granules[(request["address"] + n) % len(self.granules)]
                value = int.from_bytes(granule.tobytes(), "little")
            else:
                value = self._rng.getrandbits(128)
            word |= value << 128 * n
        return word | request["enable"] << 512

    def _store(self, write) -> None:
        for n in range(4):
            if write["enable"] >> n & 1:
                granule = np.frombuffer(int(write["data"][n]).to_bytes(16, "little"), np.int8)
                self.granules[(write["address"] + n) % len(self.granules)] = granule
