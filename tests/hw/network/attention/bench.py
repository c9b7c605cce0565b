# amaranth: UnusedElaboratable=no
"""The attention unit on a scratchpad, beside another reader and writer, and its runs."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np
from amaranth.hdl import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import connect

from hw.lib.place import InlinePlacer
from hw.network.attention.config import AttentionUnitConfig
from hw.network.attention.fields import attention_fields
from hw.network.attention.unit import AttentionUnit
from hw.network.commands import AttentionCommand, HeadTensor
from hw.network.scratchpad.scratchpad import GranuleScratchpad
from sim.golden.attention.formats import Arithmetic
from sim.golden.program_attention import attention
from tests.support.gateware.streams import Side, exchange_within, put, set_all, simulate


class RowlessPlacer(InlinePlacer):
    """Leaves the rows of the core out: the control stays, and all results are zero."""

    def place(self, m, name, cell, make):
        if not cell.startswith("attention_"):
            return super().place(m, name, cell, make)
        component = make()
        component._MustUse__used = True  # it is left out on purpose: Amaranth is not to warn
        return component.signature.create(path=(name,))


class UnitBench(wiring.Component):
    """The unit on a scratchpad.  Another reader and another writer come first at the banks."""

    def __init__(self, config: AttentionUnitConfig, *, placer: type = InlinePlacer) -> None:
        self.config = config
        self.unit = AttentionUnit(config, placer())
        self.scratchpad = GranuleScratchpad(config.shape, InlinePlacer(), readers=3, writers=2)
        super().__init__({})

    def elaborate(self, platform):
        m = Module()
        m.submodules.scratchpad = self.scratchpad
        m.submodules.unit = self.unit
        for own, port in zip(self.unit.read, self.scratchpad.read[1:], strict=True):
            connect(m, own, port)
        connect(m, self.unit.write, self.scratchpad.write[1])
        return m


@dataclass
class Run:
    """The result of commands in gates."""

    memory: np.ndarray
    taken: list[int] = field(default_factory=list)  #: Cycle in which each command was taken.
    done: list[int] = field(default_factory=list)  #: Cycle in which each command was done.
    #: Cycle, address and granules of each word of each read port, and of the write port, in order.
    words: list[list[tuple[int, int, int]]] = field(default_factory=lambda: [[], [], []])
    busy: int = 0
    waits_read: int = 0
    waits_write: int = 0


def expected(config: AttentionUnitConfig, commands: list[AttentionCommand], memory: np.ndarray) -> np.ndarray:
    """Return the granules after all commands, by the golden model."""
    memory = memory.copy()
    core = config.core
    arithmetic = Arithmetic(
        tile_keys=core.tile_keys,
        streams=1,
        probability_bits=core.probability_bits,
        exp_segments=core.exp_segments,
    )
    for command in commands:
        attention(command, memory, arithmetic)
    return memory


def run(
    bench: UnitBench,
    commands: list[AttentionCommand],
    memory: np.ndarray,
    *,
    waits: dict[int, int] | None = None,
    disturb: tuple[float, float] = (0.0, 0.0),
    seed: int = 0,
    spare: int = 0,
    limit: int = 100_000,
) -> Run:
    """Run commands, each as soon as the unit takes it.

    ``waits``: command -> commands that must be done before. ``disturb``: shares of cycles in which the others
    read, and write. ``spare``: granules at the end of ``memory`` that the other writer overwrites.
    """
    unit, pad = bench.unit, bench.scratchpad
    found = Run(memory=memory.copy())
    waits = waits or {}
    rng = random.Random(seed)
    loaded, ended = [], []
    numbers = [int.from_bytes(granule.tobytes(), "little") for granule in memory]
    size = len(memory)
    granules = bench.config.shape.words * bench.config.shape.granules

    async def main(ctx):
        writes = [{"address": at, "enable": 15, "data": numbers[at : at + 4]} for at in range(0, size, 4)]
        await put(ctx, pad.write[0].write, writes)
        while not ctx.get(pad.write[0].idle):
            await ctx.tick()
        loaded.append(True)
        for at, command in enumerate(commands):
            while len(found.done) < waits.get(at, 0):
                await ctx.tick()
            await put(ctx, unit.command, [attention_fields(bench.config, command)])
        while len(found.done) < len(commands):
            await ctx.tick()
        ended.append(True)
        for _ in range(100):  # requests of the others end
            await ctx.tick()
        asked = [{"address": at, "enable": 15} for at in range(0, size, 4)]
        port = pad.read[0]
        sides = {"asked": Side(port.request, items=asked), "answered": Side(port.response, count=len(asked))}
        await exchange_within(ctx, sides)
        words = b"".join(
            number.to_bytes(16, "little") for word in sides["answered"].received for number in word["data"]
        )
        found.memory = np.frombuffer(words, np.int8).reshape(size, 16)

    async def others(ctx):
        """Read a few banks again and again, and write the spare granules."""
        if not any(disturb):
            return
        while not loaded:
            await ctx.tick()
        reads, writes = pad.read[0], pad.write[0].write
        set_all(ctx, [(reads.response.ready, 1)])
        reading = writing = False
        near = 0
        while not ended:
            if not reading:
                near = rng.randrange(granules) if rng.random() < 0.1 else near + rng.choice((0, 1, 4))
                reading = rng.random() < disturb[0]
                payload = {"address": near % granules, "enable": rng.choice((15, rng.getrandbits(4)))}
                set_all(ctx, [(reads.request.payload, payload), (reads.request.valid, int(reading))])
            if not writing:
                writing = spare > 8 and rng.random() < disturb[1]
                place = granules - spare + rng.randrange(spare - 4) if writing else 0
                payload = {"address": place, "enable": rng.getrandbits(4), "data": [0] * 4}
                set_all(ctx, [(writes.payload, payload), (writes.valid, int(writing))])
            _, _, read, written = await ctx.tick().sample(reads.request.ready, writes.ready)
            reading, writing = reading and not read, writing and not written
        set_all(ctx, [(reads.request.valid, 0), (writes.valid, 0)])

    async def watch(ctx):
        command = unit.command
        requests = [*(port.request for port in unit.read), unit.write.write]
        moves = Cat(
            command.valid & command.ready, *(port.valid & port.ready for port in requests), unit.done,
            unit.busy, unit.waits_read, unit.waits_write,
        )  # fmt: skip
        words = [Cat(port.payload.address, port.payload.enable) for port in requests]
        tick = ctx.tick().sample(moves, *words)
        cycle, bits = 0, bench.config.shape.granule_address_bits
        while True:
            _, _, moved, *words = await tick
            taken, *worded, done, busy, waits_read, waits_write = (moved >> n & 1 for n in range(8))
            found.taken += [cycle] * taken
            found.done += [cycle] * done
            found.busy += busy
            found.waits_read += waits_read
            found.waits_write += waits_write
            for own, moved, word in zip(found.words, worded, words, strict=True):
                own += [(cycle, word % (1 << bits), (word >> bits).bit_count())] * moved
            cycle += 1

    simulate(bench, main, background=[others, watch], limit=limit)
    return found


@dataclass
class Drawn:
    """Draws commands whose tensors do not overlap; addresses wrap at the end of the scratchpad."""

    rng: random.Random
    config: AttentionUnitConfig
    granules: int  #: That may be used, from granule 0 on.
    used: int = 0

    def tensor(self, heads: int, rows: int, units: int) -> HeadTensor | None:
        """Place a tensor; None if it does not fit."""
        if self.rng.random() < 0.5:
            pitch, step = heads * units + self.rng.randrange(3), units
        else:
            pitch, step = units, rows * units + self.rng.randrange(3)
        base = self.used
        self.used += (rows - 1) * pitch + (heads - 1) * step + units
        return HeadTensor(base=base, pitch=pitch, step=step) if self.used <= self.granules else None

    def command(self, *, tokens: int, heads: int = 3, **fixed) -> AttentionCommand | None:
        """Draw a command; None if it does not fit."""
        rng = self.rng
        causal = fixed.pop("causal", rng.random() < 0.4)
        keys = fixed.pop("keys", 0) or rng.randint(1, tokens)
        queries = fixed.pop("queries", 0) or rng.randint(1, keys if causal else tokens)
        heads = rng.randint(1, heads)
        units = fixed.pop("units", 0) or rng.randint(1, self.config.granules)
        shapes = {"q": queries, "k": keys, "v": keys, "out": queries}
        tensors = {name: self.tensor(heads, rows, units) for name, rows in shapes.items()}
        if None in tensors.values():
            return None
        return AttentionCommand(
            heads=heads,
            queries=queries,
            keys=keys,
            head_dim=16 * units,
            causal=causal,
            **tensors,
            multiplier=rng.randrange(2**16, 2**17),
            shift=rng.randrange(16, 22),
            output_multiplier=rng.randrange(2**16, 2**17),
            output_shift=rng.choice((33, 33, 32, 34)),
        )
