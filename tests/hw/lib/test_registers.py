# amaranth: UnusedElaboratable=no
"""The register file: a naive model of its document, any order of requests, pauses on every side."""

from __future__ import annotations

import random

import pytest
from amaranth.hdl import Cat

from hw.lib.arguments import Argument, ArgumentKind, ArgumentTable
from hw.lib.registers import (
    CONTROL,
    GLOBAL_INTERRUPT_ENABLE,
    INTERRUPT_ENABLE,
    INTERRUPT_STATUS,
    RegisterFile,
)
from tests.support.gateware.axi_lite import LiteManager
from tests.support.gateware.streams import STALLS, grid, simulate

TABLE = ArgumentTable(
    (
        Argument(name="n", kind=ArgumentKind.SCALAR, doc="a number"),
        Argument(name="p", kind=ArgumentKind.POINTER, port="gmem0", doc="an address"),
        Argument(name="k", kind=ArgumentKind.SCALAR, doc="a key", secret=True),
        Argument(name="q", kind=ArgumentKind.POINTER, port="gmem0", doc="a secret address", secret=True),
        Argument(name="l", kind=ArgumentKind.SCALAR, doc="the lock", locks=True),
        Argument(name="cycles", kind=ArgumentKind.COUNTER, doc="cycles"),
        Argument(name="bytes", kind=ArgumentKind.COUNTER, doc="bytes"),
    )
)
SECRET_WORDS, LOCK = (0x24, 0x2C, 0x30), 0x38
ARGUMENT_WORDS = (0x10, 0x18, 0x1C, *SECRET_WORDS, LOCK)
#: Every register, and neighbours where there is none.
OFFSETS = (
    0x00,
    0x04,
    0x08,
    0x0C,
    *ARGUMENT_WORDS,
    0x14,
    0x20,
    0x28,
    0x34,
    0x400,
    0x404,
    0x408,
    0x40C,
    0x410,
    0xFFC,
)
START, DONE, IDLE, READY, AUTO_RESTART = 0x01, 0x02, 0x04, 0x08, 0x80


class Model:
    """One cycle after the other, from the document alone."""

    def __init__(self):
        self.words = dict.fromkeys(ARGUMENT_WORDS, 0)
        self.started = self.running = self.done = self.ready = self.restart = False
        self.enabled = self.enables = self.status = self.high = 0
        self.address = self.data = self.asked = None
        self.write_open = False  # acted, response not taken
        self.written = None  # acted on a word of arguments, which has it a cycle later
        self.sampled = self.answer = None
        self.args, self.keyed = (0, 0, 0, 0), False
        self.taken, self.locked = set(), False
        self.start = False

    def interrupt(self):
        return bool(self.enabled and self.status)

    def value(self, offset, counters):
        cycles, moved = counters
        control = START * self.started + DONE * self.done + IDLE * (not self.started)
        control += READY * self.ready + AUTO_RESTART * self.restart
        fixed = {0x00: control, 0x04: self.enabled, 0x08: self.enables, 0x0C: self.status}
        fixed |= {0x400: cycles % 2**32, 0x404: self.high, 0x408: moved % 2**32, 0x40C: self.high}
        return (fixed | self.words | dict.fromkeys(SECRET_WORDS, 0)).get(offset, 0)

    def step(self, seen, counters):
        """Go through one clock edge; ``seen`` says which transfers were made and whether the body is done."""
        launch = self.started and not self.running
        ended = seen["done"] and self.running
        started_bit = False
        toggles = 0
        # The read and the write that became due see the state of before this edge.
        self.answer = self.sampled
        if self.asked is not None and self.sampled is None:
            self.sampled = self.value(self.asked, counters)
            if self.asked == 0x00:
                self.done = self.ready = False
            if self.asked in (0x400, 0x408):
                self.high = counters[self.asked == 0x408] >> 32
        low = {offset: self.words[offset] | self.words[offset + 4] << 32 for offset in (0x18, 0x2C)}
        args = (self.words[0x10], low[0x18], self.words[0x24], low[0x2C])
        keyed = self.taken == set(SECRET_WORDS)
        restart = self.restart
        enables = self.enables
        if self.written is not None:
            address, word, mask = self.written
            self.written = None
            if address not in SECRET_WORDS or not (self.locked or address in self.taken):
                self.words[address] = self.words[address] & ~mask | word & mask
                if mask:
                    self.taken |= {address} & set(SECRET_WORDS)
            self.locked |= address == LOCK and mask != 0
        if self.address is not None and self.data is not None and not self.write_open:
            self.write_open = True
            word, strobes = self.data
            low = strobes & 1
            if self.address in self.words:
                mask = sum(0xFF << 8 * lane for lane in range(4) if strobes >> lane & 1)
                self.written = self.address, word, mask
            elif self.address == 0x00 and low:
                self.restart = bool(word & AUTO_RESTART)
                started_bit = bool(word & START)
            elif self.address == 0x04 and low:
                self.enabled = word & 1
            elif self.address == 0x08 and low:
                self.enables = word & 3
            elif self.address == 0x0C and low:
                toggles = word & 3
        self.status = (self.status ^ toggles) | (enables if ended else 0)
        self.start = launch
        if not self.running:
            self.args, self.keyed = args, keyed
        if launch:
            self.running = True
        if ended:
            self.running, self.started = False, restart
            self.done = self.ready = True
        self.started = self.started or started_bit
        # Transfers of this edge.
        if seen["aw"] is not None:
            self.address = seen["aw"] & ~3
        if seen["w"] is not None:
            self.data = seen["w"]
        if seen["b"]:
            self.address = self.data = None
            self.write_open = False
        if seen["ar"] is not None:
            self.asked = seen["ar"] & ~3
        if seen["r"]:
            self.asked = self.sampled = self.answer = None


def compare(dut, model):
    """Make a background testbench that steps ``model`` beside ``dut`` and compares every output."""
    bus = dut.bus

    async def watch(ctx):
        while True:
            _, _, *values = await ctx.tick().sample(
                bus.awvalid & bus.awready, bus.awaddr, bus.wvalid & bus.wready, bus.wdata, bus.wstrb,
                bus.bvalid & bus.bready, bus.bvalid, bus.bresp, bus.arvalid & bus.arready, bus.araddr,
                bus.rvalid & bus.rready, bus.rvalid, bus.rdata, bus.rresp, dut.done, dut.counters.cycles,
                dut.counters.bytes, dut.start, Cat(dut.interrupt, dut.keyed),
                dut.args.n, dut.args.p, dut.args.k, dut.args.q,
            )  # fmt: skip
            aw, awaddr, w, wdata, wstrb, b, bvalid, bresp, ar, araddr = values[:10]
            r, rvalid, rdata, rresp, done, cycles, moved, start, levels, *args = values[10:]
            assert (start, levels) == (model.start, model.interrupt() + 2 * model.keyed)
            assert tuple(args) == model.args
            assert bvalid == model.write_open
            assert rvalid == (model.answer is not None)
            if rvalid:
                assert rdata == model.answer, f"read of {model.asked:#x}"
                assert rresp == 0
            if bvalid:
                assert bresp == 0
            seen = {
                "aw": awaddr if aw else None,
                "w": (wdata, wstrb) if w else None,
                "b": b,
                "ar": araddr if ar else None,
                "r": r,
                "done": done,
            }
            model.step(seen, (cycles, moved))

    return watch


def body(dut, seed, longest):
    """Make a background body: done some cycles after start, now and then a done that nobody waits for."""

    async def work(ctx):
        rng = random.Random(f"body {seed}")
        left = None
        while True:
            ctx.set(dut.counters.cycles, rng.getrandbits(64))
            ctx.set(dut.counters.bytes, rng.getrandbits(64))
            if ctx.get(dut.start):
                left = rng.randrange(longest)
            stray = left is None and rng.random() < 0.1
            ctx.set(dut.done, left == 0 or stray)
            if left is not None:
                left = left - 1 if left else None
            await ctx.tick()

    return work


@pytest.mark.parametrize(("stall", "response_stall", "seed"), grid(STALLS, STALLS))
def test_any_requests_at_any_pace(stall, response_stall, seed):
    dut = RegisterFile(TABLE)
    manager = LiteManager(dut.bus, stall=stall, response_stall=response_stall, seed=seed)
    rng = random.Random(f"requests {stall} {response_stall} {seed}")

    async def writer(ctx):
        for _ in range(50):
            offset = rng.choice((CONTROL, *OFFSETS))
            assert (
                await manager.write(ctx, offset + rng.randrange(4), rng.getrandbits(32), rng.getrandbits(4))
                == 0
            )

    async def reader(ctx):
        for _ in range(50):
            _, response = await manager.read(ctx, rng.choice((CONTROL, *OFFSETS)) + rng.randrange(4))
            assert response == 0

    simulate(dut, writer, reader, background=[body(dut, seed, 12), compare(dut, Model())])


def run(dut, host, *background):
    simulate(dut, host, background=background)


def test_what_is_written_is_read_back_byte_by_byte():
    dut = RegisterFile(TABLE)
    manager = LiteManager(dut.bus)

    async def host(ctx):
        for offset in set(ARGUMENT_WORDS) - set(SECRET_WORDS):
            await manager.write(ctx, offset, 0x11223344)
            await manager.write(ctx, offset, 0xAABBCCDD, strobes=0b0110)
            assert await manager.read(ctx, offset) == (0x11BBCC44, 0)

    run(dut, host)


def test_a_call_as_xrt_makes_it():
    dut = RegisterFile(TABLE)
    manager = LiteManager(dut.bus)
    calls = []

    async def kernel(ctx):
        left = 0
        while True:
            if ctx.get(dut.start):
                left = 20
            ctx.set(dut.done, left == 1)
            if left == 1:
                calls.append((ctx.get(dut.args.n), ctx.get(dut.args.p)))
            left = max(0, left - 1)
            await ctx.tick()

    async def host(ctx):
        assert await manager.read(ctx, CONTROL) == (IDLE, 0)
        await manager.write(ctx, 0x10, 7)
        await manager.write(ctx, 0x18, 0x89ABCDEF)
        await manager.write(ctx, 0x1C, 0x01234567)
        await manager.write(ctx, INTERRUPT_ENABLE, 1)
        await manager.write(ctx, GLOBAL_INTERRUPT_ENABLE, 1)
        await manager.write(ctx, CONTROL, START)
        assert (await manager.read(ctx, CONTROL))[0] == START
        # For the next call: this one must not see it.
        await manager.write(ctx, 0x10, 8)
        while not ctx.get(dut.interrupt):
            await ctx.tick()
        assert await manager.read(ctx, INTERRUPT_STATUS) == (1, 0)
        await manager.write(ctx, INTERRUPT_STATUS, 1)
        assert not ctx.get(dut.interrupt)
        assert (await manager.read(ctx, CONTROL))[0] == DONE | IDLE | READY
        assert (await manager.read(ctx, CONTROL))[0] == IDLE
        await manager.write(ctx, CONTROL, START)
        await ctx.tick().repeat(30)

    run(dut, host, kernel)
    assert calls == [(7, 0x0123456789ABCDEF), (8, 0x0123456789ABCDEF)]


def test_auto_restart_goes_on_until_it_is_taken_back():
    dut = RegisterFile(TABLE)
    manager = LiteManager(dut.bus)
    starts = []

    async def kernel(ctx):
        while True:
            _, _, start = await ctx.tick().sample(dut.start)
            starts.append(start)
            ctx.set(dut.done, start)  # done a cycle after start

    async def host(ctx):
        await manager.write(ctx, CONTROL, START | AUTO_RESTART)
        await ctx.tick().repeat(30)
        assert sum(starts) > 5
        assert (await manager.read(ctx, CONTROL))[0] & (START | IDLE | AUTO_RESTART) == START | AUTO_RESTART
        await manager.write(ctx, CONTROL, 0)
        await ctx.tick().repeat(5)
        ended = sum(starts)
        await ctx.tick().repeat(10)
        assert sum(starts) == ended
        assert (await manager.read(ctx, CONTROL))[0] == IDLE | DONE | READY

    run(dut, host, kernel)


def test_a_counter_that_carries_between_two_reads_is_read_whole():
    dut = RegisterFile(TABLE)
    manager = LiteManager(dut.bus)
    before = 0xFFFF_FFF0

    async def count(ctx):
        value = before
        while True:
            ctx.set(dut.counters.cycles, value)
            ctx.set(dut.counters.bytes, value << 20)
            await ctx.tick()
            value += 1

    async def host(ctx):
        last = before
        for _ in range(12):
            value = await manager.read64(ctx, TABLE.offset("cycles"))
            assert last < value < last + 16
            last = value
        assert last > 1 << 32
        assert await manager.read64(ctx, TABLE.offset("bytes")) > before << 20

    run(dut, host, count)


def test_requests_wait_for_the_end_of_reset():
    dut = RegisterFile(TABLE)

    async def host(ctx):
        assert not ctx.get(dut.bus.awready | dut.bus.wready | dut.bus.arready)
        await ctx.tick()
        assert ctx.get(dut.bus.awready & dut.bus.wready & dut.bus.arready)

    run(dut, host)


def test_a_kernel_may_have_no_arguments_and_no_counters():
    dut = RegisterFile(ArgumentTable(()))
    manager = LiteManager(dut.bus)

    async def host(ctx):
        await manager.write(ctx, CONTROL, START)
        assert (await manager.read(ctx, CONTROL))[0] == START
        assert (await manager.read(ctx, 0x10))[0] == 0

    run(dut, host)


@pytest.mark.parametrize("locked", [None, *range(4)])
def test_secret_words_are_written_once_until_the_lock(locked):
    """Before, between, and without a lock; whatever is written, they read zero."""
    dut = RegisterFile(TABLE)
    manager = LiteManager(dut.bus)
    rng = random.Random(locked)
    first, second = ([rng.getrandbits(32) | 1 for _ in SECRET_WORDS] for _ in range(2))
    taken = len(SECRET_WORDS) if locked is None else locked

    async def host(ctx):
        for n, (offset, word) in enumerate(zip(SECRET_WORDS, first, strict=True)):
            assert not ctx.get(dut.keyed)
            if n == locked:
                await manager.write(ctx, LOCK, 0)
            await manager.write(ctx, offset, ~word & 0xFFFFFFFF, strobes=0)
            await manager.write(ctx, offset, word)
        if locked == len(SECRET_WORDS):
            await manager.write(ctx, LOCK, 1)
        for offset, word in zip(SECRET_WORDS, second, strict=True):
            await manager.write(ctx, offset, word)
            assert await manager.read(ctx, offset) == (0, 0)
        await manager.write(ctx, CONTROL, START)
        await ctx.tick().repeat(2)
        low, *high = (word if n < taken else 0 for n, word in enumerate(first))
        assert ctx.get(dut.args.k) == low
        assert ctx.get(dut.args.q) == high[0] | high[1] << 32
        assert ctx.get(dut.keyed) == (taken == len(SECRET_WORDS))
        assert [await manager.read(ctx, offset) for offset in SECRET_WORDS] == [(0, 0)] * 3

    run(dut, host)


def test_secrets_are_forgotten_at_once():
    """While the kernel runs; neither its end nor a further write returns them."""
    dut = RegisterFile(TABLE)
    manager = LiteManager(dut.bus)

    async def host(ctx):
        for offset in SECRET_WORDS:
            await manager.write(ctx, offset, 0xFFFFFFFF)
        await manager.write(ctx, CONTROL, START)
        await ctx.tick().repeat(3)
        assert ctx.get(dut.args.k) == 0xFFFFFFFF
        ctx.set(dut.forget, 1)
        await ctx.tick()
        assert (ctx.get(dut.args.k), ctx.get(dut.args.q)) == (0, 0)
        ctx.set(dut.forget, 0)
        ctx.set(dut.done, 1)
        await ctx.tick()
        ctx.set(dut.done, 0)
        for offset in SECRET_WORDS:
            await manager.write(ctx, offset, 0xFFFFFFFF)
        await manager.write(ctx, CONTROL, START)
        await ctx.tick().repeat(3)
        assert (ctx.get(dut.args.k), ctx.get(dut.args.q)) == (0, 0)

    run(dut, host)


def test_a_word_that_was_written_in_part_is_written():
    dut = RegisterFile(TABLE)
    manager = LiteManager(dut.bus)

    async def host(ctx):
        await manager.write(ctx, 0x24, 0x11223344, strobes=0b0100)
        await manager.write(ctx, 0x24, 0xFFFFFFFF)
        await ctx.tick().repeat(3)
        assert ctx.get(dut.args.k) == 0x220000

    run(dut, host)
