"""Known blocks through Yosys: blocks and the shell of every kernel keep to the budget.

Blocks share one run of Yosys as one component: starting it costs more than a block.
"""

import pytest
from amaranth.hdl import Module, Signal, unsigned
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from examples.vadd.engine import VaddConfig, VaddEngine
from hw.board import load_board
from hw.lib.arbiter import Arbiter
from hw.lib.convert import to_verilog
from hw.lib.fifo import Fifo
from hw.lib.width import WidthConverter
from hw.verilog import generate
from sim.timing.delays import load_delays
from sim.timing.estimate import estimate

DELAYS = load_delays()


def found_over(verilog, top, *, worst=5):
    return estimate(verilog, top, load_board("u55c"), worst=worst)


def within_budget(found):
    worst = [f"{path.slack_ps:+.0f} ps {path.steps[0].name} -> {path.endpoint}" for path in found.paths]
    assert not found.endpoints_over, worst[:5]


class Known(wiring.Component):
    """An adder, two products and two memories between registers."""

    def __init__(self):
        words = {name: In(unsigned(width)) for name, width in [("a", 32), ("b", 32), ("c", 16), ("d", 16)]}
        super().__init__({**words, "address": In(9), "write": In(1), "result": Out(32)})

    def elaborate(self, platform):
        m = Module()
        a, b, address = Signal(32), Signal(32), Signal(9)
        c, d = Signal(16), Signal(16)
        total, product, late, read, late_read = (
            Signal(32, name=name, reset_less=True)
            for name in ("total", "product", "late", "read", "late_read")
        )
        m.d.sync += [a.eq(self.a), b.eq(self.b), c.eq(self.c), d.eq(self.d), address.eq(self.address)]
        m.submodules.ram = ram = memory.Memory(shape=32, depth=512, init=[], attrs={"ram_style": "block"})
        write = ram.write_port()
        straight, masked = ram.read_port(), ram.read_port()
        m.d.comb += [write.addr.eq(address), write.data.eq(a), write.en.eq(self.write)]
        m.d.comb += [straight.addr.eq(address), masked.addr.eq(~address), straight.en.eq(1), masked.en.eq(1)]
        m.d.sync += [
            total.eq(a + b),
            product.eq(c * d),
            late.eq((a[:16] * b[16:]) ^ b),
            read.eq(straight.data),
            late_read.eq(masked.data ^ a),
            self.result.eq(total ^ product ^ late ^ read ^ late_read),
        ]
        return m


class Library(wiring.Component):
    """Blocks of ``hw/lib`` outside the shell, and known paths, each between registers at the ports."""

    def __init__(self):
        self.blocks = {
            "known": Known(),
            "shallow": Fifo(64, depth=64),
            "deep": Fifo(256, depth=512),
            "arbiter": Arbiter(data.StructLayout({"word": 64, "last": 1}), inputs=8, packets=True),
            "join": WidthConverter(lane_width=8, i_lanes=4, o_lanes=32),
            "split": WidthConverter(lane_width=8, i_lanes=32, o_lanes=4),
        }
        super().__init__({name: Out(block.signature) for name, block in self.blocks.items()})

    def elaborate(self, platform):
        m = Module()
        for name, block in self.blocks.items():
            m.submodules[name] = block
            ports = zip(
                block.signature.flatten(getattr(self, name)), block.signature.flatten(block), strict=True
            )
            for (_, member, outer), (_, _, inner) in ports:
                m.d.comb += outer.eq(inner) if member.flow is Out else inner.eq(outer)
        return m


@pytest.fixture(scope="module")
def library():
    return found_over(to_verilog(Library(), name="library", sources=True), "library", worst=10_000)


def test_library_within_budget(library):
    within_budget(library)


def test_known_paths(library):
    slowest = {}
    for path in library.paths:
        slowest.setdefault(path.endpoint.split("[")[0].split("/")[0], path)

    def slowest_to(name, *delays):
        steps = slowest[f"known.{name}"].steps
        return slowest[f"known.{name}"].delay_ps, sum(DELAYS[delay] for delay in delays), steps[0].loads

    taken, cells, loads = slowest_to(
        "total", "ff_clock_to_out", "lut", "lut_to_carry", "carry_first_bit", *["carry_bit"] * 3,
        *["carry_through"] * 6, "carry_sum", "carry_to_ff", "ff_setup",
    )  # fmt: skip
    assert taken == pytest.approx(cells + routed(loads))
    assert slowest["known.total"].source.startswith("tests/sim/timing/test_blocks.py:")
    # The registers around the product go into the DSP; its period without MREG is 1/544 MHz in DS923.
    product, *_ = slowest_to("product")
    assert product == pytest.approx(1e6 / 544, rel=0.02)
    assert slowest_to("late")[0] > product + routed(1) + DELAYS["lut"] - 300
    taken, cells, _ = slowest_to("read", "block_ram_clock_to_out", "ff_setup")
    assert taken == pytest.approx(cells)
    taken, cells, _ = slowest_to("late_read", "block_ram_clock_to_out", "lut", "lut_to_ff", "ff_setup")
    assert taken == pytest.approx(cells + routed(1))


def routed(loads):
    return DELAYS["routed"] + DELAYS["routed_spread"] * loads**0.5


@pytest.mark.soak
def test_kernel_shell_within_budget():
    """A vadd kernel: registers, reset, ports of 128 bits and DMAs with all their parts."""
    design = generate(VaddEngine(), VaddConfig(), load_board("zcu104"), sources=True)
    within_budget(found_over(design.verilog, design.top_name))
