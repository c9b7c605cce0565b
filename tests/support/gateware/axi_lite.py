"""The host's side of an AXI-Lite port, in Amaranth's simulator."""

from __future__ import annotations

import random
from typing import Any

from tests.support.gateware.streams import hash_seed


class LiteManager:
    """Reads and writes registers, pausing wherever the protocol lets a manager pause.

    Parameters
    ----------
    port
        Any object with the members of `hw.lib.axi.LiteSignature`, as the subordinate has them.
    stall
        Probability of a pause before each address and each word of data, each cycle.
    response_stall
        Probability of not taking a response that is there, each cycle.
    seed
        Of the pauses, and of which of address and data comes first.
    """

    def __init__(self, port: Any, *, stall: float = 0.0, response_stall: float = 0.0, seed: int = 0) -> None:
        self.port = port
        self.stall = stall
        self.response_stall = response_stall
        self._write_rng = random.Random(hash_seed(seed, "lite write"))
        self._read_rng = random.Random(hash_seed(seed, "lite read"))

    async def write(self, ctx: Any, offset: int, value: int, strobes: int = 0b1111) -> int:
        """Write one word and return the response."""
        port, rng = self.port, self._write_rng
        ctx.set(port.awaddr, offset)
        ctx.set(port.wdata, value)
        ctx.set(port.wstrb, strobes)
        offered = {"aw": False, "w": False}
        moved = {"aw": False, "w": False}
        while not all(moved.values()):
            for channel in offered:
                offered[channel] = offered[channel] or rng.random() >= self.stall
                ctx.set(getattr(port, f"{channel}valid"), offered[channel] and not moved[channel])
            _, _, awready, wready, early = await ctx.tick().sample(port.awready, port.wready, port.bvalid)
            assert not early, "a response before the end of its request"
            moved["aw"] |= offered["aw"] and bool(awready)
            moved["w"] |= offered["w"] and bool(wready)
        ctx.set(port.awvalid, 0)
        ctx.set(port.wvalid, 0)
        (response,) = await self._response(ctx, "b", rng, port.bresp)
        return response

    async def read(self, ctx: Any, offset: int) -> tuple[int, int]:
        """Read one word; return it and the response."""
        port, rng = self.port, self._read_rng
        while rng.random() < self.stall:
            await ctx.tick()
        ctx.set(port.araddr, offset)
        ctx.set(port.arvalid, 1)
        ready = False
        while not ready:
            _, _, ready = await ctx.tick().sample(port.arready)
        ctx.set(port.arvalid, 0)
        word, response = await self._response(ctx, "r", rng, port.rdata, port.rresp)
        return word, response

    async def read64(self, ctx: Any, offset: int) -> int:
        """Read a 64-bit counter, the low word first."""
        low, _ = await self.read(ctx, offset)
        high, _ = await self.read(ctx, offset + 4)
        return low | high << 32

    async def _response(self, ctx: Any, channel: str, rng: random.Random, *payload: Any) -> tuple[int, ...]:
        """Take a response and return its payload, which must not change while it waits."""
        ready = getattr(self.port, f"{channel}ready")
        valid = getattr(self.port, f"{channel}valid")
        waiting: tuple[int, ...] | None = None
        while True:
            taking = rng.random() >= self.response_stall
            ctx.set(ready, taking)
            _, _, there, *words = await ctx.tick().sample(valid, *payload)
            assert waiting is None or (there and tuple(words) == waiting), (
                f"{channel} changed while it waited"
            )
            if there and taking:
                ctx.set(ready, 0)
                return tuple(words)
            waiting = tuple(words) if there else None
