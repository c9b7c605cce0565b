"""Calls of a whole kernel through its pins, one after the other without a reset between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hw.lib import axi
from hw.lib.arguments import STATUS_BUS
from hw.lib.kernel import CONTROL_PREFIX, MEMORY_PREFIX, RESET_STAGES, Kernel
from hw.lib.registers import AP_DONE, CONTROL
from tests.support.gateware.axi_lite import LiteManager
from tests.support.gateware.axi_memory import AxiMemory
from tests.support.gateware.streams import simulate

#: A port, and one of its ways: "read" or "write".
Way = tuple[str, str]


class Pins:
    """A bus of a kernel as the models want it: lower-case members, and the signature."""

    def __init__(self, kernel: Kernel, prefix: str, signature: Any) -> None:
        self.signature = signature
        for name in signature.members:
            setattr(self, name, getattr(kernel, f"{prefix}_{name.upper()}"))


@dataclass
class Call:
    """One call."""

    arguments: Mapping[str, int]  #: By name.
    content: Mapping[str, Mapping[int, int]]  #: Bytes by address, of each port's memory.
    check: Callable[[Mapping[str, AxiMemory]], None]  #: Checks the memories, by port, after the call.


def break_every_port(
    kernel: Kernel, calls: list[Call], *, stall: float = 0.0, seed: int = 0, limit: int = 200_000
) -> set[Way]:
    """Refuse the middle burst of every port in each direction, a call for each; return the directions tested.

    Such a call must report the error, leave no burst behind, and not change the next call.  ``calls`` take
    turns; each runs without an error first.
    """
    table = kernel.table
    manager = LiteManager(Pins(kernel, CONTROL_PREFIX, axi.LiteSignature(addr_width=12)))
    memories = {
        port: AxiMemory(
            Pins(kernel, f"{MEMORY_PREFIX}_{port}", signature),
            stall=stall,
            latency=(1, 12) if stall else (6, 6),
            seed=seed + n,
        )
        for n, (port, signature) in enumerate(kernel.body.signature.ports.items())
    }
    broken: set[Way] = set()

    async def carry_out(ctx: Any, call: Call) -> dict[str, int]:
        """Run a call and return its counters."""
        for port, memory in memories.items():
            memory.bytes.clear()
            memory.bytes.update(call.content.get(port, {}))
            memory.reads.clear()
            memory.writes.clear()
        for register in table.registers:
            value = call.arguments[register.argument.name]
            for part in range(0, register.argument.bits // 8, 4):
                await manager.write(ctx, register.offset + part, value >> 8 * part & 0xFFFF_FFFF)
        await manager.write(ctx, CONTROL, 1)
        while not (await manager.read(ctx, CONTROL))[0] >> AP_DONE & 1:
            pass
        assert not any(memory.under_way for memory in memories.values()), "a burst was left behind"
        return {
            register.argument.name: await manager.read64(ctx, register.offset)
            for register in table.counter_registers
        }

    async def host(ctx: Any) -> None:
        ctx.set(kernel.ap_rst_n, 0)
        for _ in range(RESET_STAGES + 2):
            await ctx.tick()
        ctx.set(kernel.ap_rst_n, 1)
        good, bursts = [], []
        for call in calls:
            good.append(await carry_out(ctx, call))
            call.check(memories)
            begun = {(port, "read"): len(memory.reads) for port, memory in memories.items()}
            begun |= {(port, "write"): len(memory.writes) for port, memory in memories.items()}
            bursts.append(begun)
        for port, way in bursts[0]:
            moving = [n for n, begun in enumerate(bursts) if begun[port, way]]
            if not moving:
                continue
            broken.add((port, way))
            n = moving[len(broken) % len(moving)]
            memories[port].refuse(**{way: bursts[n][port, way] // 2})
            counters = await carry_out(ctx, calls[n])
            assert counters.pop("status") == STATUS_BUS, (port, way)
            assert not any(counters.values()), (port, way)
            for memory in memories.values():
                memory.refuse()
            after = (n + 1) % len(calls)
            counters = await carry_out(ctx, calls[after])
            calls[after].check(memories)
            assert counters["status"] == 0
            if not stall:
                assert counters == good[after], f"another call than before the error at {port}, {way}"

    benches = [bench for memory in memories.values() for bench in memory.testbenches()]
    simulate(kernel, host, background=benches, limit=limit)
    return broken
