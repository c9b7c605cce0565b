# amaranth: UnusedElaboratable=no
"""The kernel shell: port names and constants as Vitis has them, reset, and a whole call through the pins."""

from __future__ import annotations

import random

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from examples.vadd.engine import VaddBody, VaddConfig, vadd_table
from hw.errors import InputError
from hw.lib import axi
from hw.lib.arguments import Argument, ArgumentKind, ArgumentTable
from hw.lib.kernel import RESET_STAGES, BodySignature, Kernel, kernel_members, port_constants
from hw.lib.place import InlinePlacer
from hw.lib.registers import CONTROL, GLOBAL_INTERRUPT_ENABLE, INTERRUPT_ENABLE
from tests.support.boards import small_board
from tests.support.gateware import waves
from tests.support.gateware.axi_lite import LiteManager
from tests.support.gateware.axi_memory import AxiMemory
from tests.support.gateware.calls import Pins
from tests.support.gateware.streams import PERIOD_SECONDS, built, simulate

# The ports of kernels that Vitis HLS makes, but for the user signals.
LITE = [
    *("AWVALID", "AWREADY", "AWADDR", "WVALID", "WREADY", "WDATA", "WSTRB", "BVALID", "BREADY", "BRESP"),
    *("ARVALID", "ARREADY", "ARADDR", "RVALID", "RREADY", "RDATA", "RRESP"),
]
FULL = [
    *(f"{way}{name}" for way in ("AW", "AR") for name in ("VALID", "READY", "ADDR", "ID", "LEN", "SIZE")),
    *(f"{way}{name}" for way in ("AW", "AR") for name in ("BURST", "LOCK", "CACHE", "PROT", "QOS", "REGION")),
    *("WVALID", "WREADY", "WDATA", "WSTRB", "WLAST", "BVALID", "BREADY", "BRESP", "BID"),
    *("RVALID", "RREADY", "RDATA", "RRESP", "RLAST", "RID"),
]


def vadd(config=None):
    return Kernel("k", vadd_table(), VaddBody(config or VaddConfig(), small_board(), InlinePlacer()))


def test_ports_are_those_of_a_vitis_kernel_and_no_others():
    expected = {"ap_clk", "ap_rst_n", "interrupt"}
    expected |= {f"s_axi_control_{name}" for name in LITE}
    expected |= {f"m_axi_{port}_{name}" for port in vadd_table().ports for name in FULL}
    assert set(vadd().signature.members) == expected


def test_directions_and_widths():
    members = vadd().signature.members
    for name, flow, width in (
        ("ap_clk", In, 1),
        ("ap_rst_n", In, 1),
        ("interrupt", Out, 1),
        ("s_axi_control_AWADDR", In, 12),
        ("s_axi_control_AWREADY", Out, 1),
        ("s_axi_control_RDATA", Out, 32),
        ("m_axi_gmem0_ARADDR", Out, 64),
        ("m_axi_gmem0_ARREADY", In, 1),
        ("m_axi_gmem0_RDATA", In, 64),
        ("m_axi_gmem1_WSTRB", Out, 8),
        ("m_axi_gmem1_ARLEN", Out, 8),
    ):
        assert (members[name].flow, members[name].shape) == (flow, width), name


def run(kernel, host, *background):
    """Run with a few cycles of reset first; ``host`` starts in the cycle in which it is released."""

    async def whole(ctx):
        ctx.set(kernel.ap_rst_n, 0)
        for _ in range(RESET_STAGES + 2):
            await ctx.tick()
        ctx.set(kernel.ap_rst_n, 1)
        await host(ctx)

    simulate(kernel, whole, background=background)


@pytest.mark.parametrize(("data_width", "size"), [(32, 2), (64, 3), (128, 4), (256, 5), (512, 6), (1024, 7)])
def test_constants_say_full_width_incr_bursts(data_width, size):
    class Idle(wiring.Component):
        def elaborate(self, platform):
            m = Module()
            m.d.comb += self.done.eq(self.start)
            return m

    table = ArgumentTable((Argument(name="p", kind=ArgumentKind.POINTER, port="gmem0", doc="x"),))
    kernel = Kernel("k", table, Idle(BodySignature(table, data_width=data_width)))

    async def host(ctx):
        for channel in ("AW", "AR"):
            values = {"SIZE": size, "BURST": 1, "LOCK": 0, "CACHE": 3, "PROT": 0, "QOS": 0, "REGION": 0}
            for name, value in values.items():
                assert ctx.get(getattr(kernel, f"m_axi_gmem0_{channel}{name}")) == value

    run(kernel, host)


def test_reset_is_active_low_and_reaches_the_gates_some_cycles_later():
    class Count(wiring.Component):
        """Counts cycles out of reset."""

        def __init__(self):
            super().__init__(BodySignature(ArgumentTable(()), data_width=32))
            self.count = Signal(8)

        def elaborate(self, platform):
            m = Module()
            m.d.sync += self.count.eq(self.count + 1)
            return m

    body = Count()
    kernel = Kernel("k", ArgumentTable(()), body)
    trace = []

    async def host(ctx):
        for low in [0] * 6 + [1] * 12 + [0] * 8:
            ctx.set(kernel.ap_rst_n, low)
            await ctx.tick()
            trace.append(ctx.get(body.count))

    simulator = Simulator(kernel)
    simulator.add_clock(PERIOD_SECONDS)
    simulator.add_testbench(host)
    waves.run(simulator)
    released, asserted = 6 + RESET_STAGES, 18 + RESET_STAGES
    assert trace[:released] == [0] * released
    assert trace[released:asserted] == list(range(1, 13))
    assert set(trace[asserted:]) == {0}


@pytest.mark.parametrize("stall", [0.0, 0.7])
@pytest.mark.parametrize("words", [0, 1, 37])
def test_a_whole_call_through_the_pins(words, stall):
    kernel = built(vadd)
    lite = Pins(kernel, "s_axi_control", axi.LiteSignature(addr_width=12))
    full = axi.Signature(data_width=64)
    memories = [
        AxiMemory(Pins(kernel, f"m_axi_{port}", full), stall=stall, seed=seed)
        for seed, port in enumerate(vadd_table().ports)
    ]
    manager = LiteManager(lite, stall=stall, response_stall=stall)
    table = vadd_table()
    rng = random.Random(words)
    a, b = ([rng.getrandbits(32) for _ in range(words)] for _ in range(2))
    address = {"a": 0x1_0000_0F80, "b": 0x2000, "c": 0x3_0000_4FC0}
    for memory, name, values in ((memories[0], "a", a), (memories[1], "b", b)):
        raw = b"".join(value.to_bytes(4, "little") for value in values)
        memory.bytes.update(enumerate(raw, address[name]))
    counters = {}

    async def host(ctx):
        for name, value in address.items():
            await manager.write(ctx, table.offset(name), value & 0xFFFF_FFFF)
            await manager.write(ctx, table.offset(name) + 4, value >> 32)
        await manager.write(ctx, table.offset("words"), words)
        await manager.write(ctx, INTERRUPT_ENABLE, 1)
        await manager.write(ctx, GLOBAL_INTERRUPT_ENABLE, 1)
        await manager.write(ctx, CONTROL, 1)
        while not ctx.get(kernel.interrupt):
            await ctx.tick()
        for register in table.counter_registers:
            counters[register.argument.name] = await manager.read64(ctx, register.offset)

    run(kernel, host, *(bench for memory in memories for bench in memory.testbenches()))
    raw = memories[2].content(address["c"], 4 * words)
    sums = [int.from_bytes(raw[4 * index : 4 * index + 4], "little") for index in range(words)]
    assert sums == [(x + y) % 2**32 for x, y in zip(a, b, strict=True)]
    assert set(memories[2].bytes) == set(range(address["c"], address["c"] + 4 * words))
    assert not memories[0].writes + memories[1].writes
    total = counters.pop("cycles_total")
    assert total == sum(count for name, count in counters.items() if name.startswith("cycles_"))
    assert {count for name, count in counters.items() if name.endswith("_bytes")} == {4 * words}


def test_a_second_call_needs_no_reset():
    kernel = vadd()
    manager = LiteManager(Pins(kernel, "s_axi_control", axi.LiteSignature(addr_width=12)))
    states = []

    async def host(ctx):
        for _ in range(3):
            await manager.write(ctx, CONTROL, 1)
            await ctx.tick().repeat(8)
            states.append((await manager.read(ctx, CONTROL))[0])

    run(kernel, host)
    assert states == [0b1110] * 3


@pytest.mark.parametrize("name", ["", "K", "2k", "k k", "kä", 7])
def test_kernel_name_is_an_identifier(name):
    with pytest.raises(InputError, match="kernel name must be a lower-case C identifier, not "):
        Kernel(name, vadd_table(), VaddBody(VaddConfig(), small_board(), InlinePlacer()))


def test_body_must_be_made_for_the_table():
    body = VaddBody(VaddConfig(), small_board(), InlinePlacer())
    with pytest.raises(ValueError, match="made for another argument table"):
        Kernel("k", ArgumentTable(()), body)

    class Stranger(wiring.Component):
        def __init__(self):
            super().__init__({"start": In(1)})

    with pytest.raises(TypeError, match="signature must be a BodySignature, not "):
        Kernel("k", vadd_table(), Stranger())


def test_port_names_do_not_collide_with_the_other_members():
    table = ArgumentTable((Argument(name="p", kind=ArgumentKind.POINTER, port="args", doc="x"),))
    with pytest.raises(
        InputError, match="port must be different from start, done, args, counters, not 'args'"
    ):
        BodySignature(table, data_width=64)


def test_ports_have_widths_of_their_own():
    table = ArgumentTable(
        tuple(Argument(name=p, kind=ArgumentKind.POINTER, port=p, doc="x") for p in ("gmem0", "host0"))
    )
    body = BodySignature(table, data_width={"gmem0": 256, "host0": 512})
    ports = kernel_members(body)
    assert [len(Signal(ports[f"m_axi_{port}_WDATA"].shape)) for port in table.ports] == [256, 512]
    sizes = [[v for n, _, v in port_constants(body.ports[p]) if n == "AWSIZE"] for p in table.ports]
    assert sizes == [[5], [6]]


def test_body_signatures_compare_by_their_members():
    one = BodySignature(vadd_table(), data_width=64)
    assert one == BodySignature(vadd_table(), data_width=64)
    assert one != BodySignature(vadd_table(), data_width=128)
    assert one != wiring.Signature(dict(one.members))
    assert "data_width=64" in repr(one)
