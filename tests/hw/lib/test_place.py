"""One parent, two ways to place its cells: the same behaviour, and one module however many copies."""

from amaranth.back import verilog
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from hw.lib.convert import ports, to_verilog
from hw.lib.place import CellPlacer, ControlPlacer, InlinePlacer
from tests.support.gateware import waves


class Accumulator(wiring.Component):
    """Adds ``i`` to a register every cycle."""

    def __init__(self):
        super().__init__({"i": In(8), "o": Out(16)})

    def elaborate(self, platform):
        m = Module()
        m.d.sync += self.o.eq(self.o + self.i)
        return m


class Row(wiring.Component):
    """``copies`` accumulators of i, i + 1, ...; o is their sum."""

    def __init__(self, copies, placer):
        self.copies, self.placer = copies, placer
        super().__init__({"i": In(8), "o": Out(16)})

    def elaborate(self, platform):
        m = Module()
        cells = [self.placer.place(m, f"cell_{n}", "accumulator", Accumulator) for n in range(self.copies)]
        for n, cell in enumerate(cells):
            m.d.comb += cell.i.eq(self.i + n)
        m.d.comb += self.o.eq(sum(cell.o for cell in cells))
        return m


def test_inline_placement_simulates():
    row = Row(4, InlinePlacer())

    async def bench(ctx):
        ctx.set(row.i, 5)
        await ctx.tick().repeat(3)
        assert ctx.get(row.o) == 3 * (5 + 6 + 7 + 8)

    simulator = Simulator(row)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    waves.run(simulator)


def test_cells_are_converted_once():
    placer = CellPlacer()
    text = verilog.convert(Row(32, placer), name="row", emit_src=False, strip_internal_attrs=True)
    assert list(placer.cells) == ["accumulator"]
    assert placer.verilog.count("module accumulator") == 1
    assert text.count("accumulator cell_") == 32
    assert ".clk(clk)" in text
    # A register of the reset for each.
    assert [f".rst(cell_{n}_rst)" in text for n in range(32)] == [True] * 32


class Negate(wiring.Component):
    """A cell without a register: it has no clock and no reset."""

    i: In(8)
    o: Out(8)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.o.eq(-self.i)
        return m


def test_a_cell_without_registers_gets_no_clock():
    class Pair(wiring.Component):
        i: In(8)
        o: Out(8)

        def elaborate(self, platform):
            m = Module()
            cell = placer.place(m, "negate_0", "negate", Negate)
            m.d.comb += cell.i.eq(self.i)
            m.d.sync += self.o.eq(cell.o)
            return m

    placer = CellPlacer()
    text = verilog.convert(Pair(), name="pair", emit_src=False, strip_internal_attrs=True)
    instance = text[text.index("negate negate_0") :]
    assert ".clk" not in instance[: instance.index(");")]


def test_cells_that_are_left_out_give_zero_and_the_others_stay():
    text = to_verilog(Row(3, placer := ControlPlacer(("accum",))), name="row")
    assert "accumulator cell_" not in text + placer.verilog
    assert to_verilog(Row(3, placer := ControlPlacer(("cell",))), name="row").count("accumulator cell_") == 3

    async def bench(ctx):
        ctx.set(row.i, 5)
        await ctx.delay(1e-6)
        assert ctx.get(row.o) == 0

    simulator = Simulator(row := Row(4, ControlPlacer(("accumulator",))))
    simulator.add_testbench(bench)
    waves.run(simulator)


def test_text_is_the_same_every_time():
    def text():
        placer = CellPlacer()
        top = verilog.convert(Row(3, placer), name="row", emit_src=False, strip_internal_attrs=True)
        return placer.verilog + top

    assert text() == text()


def test_what_is_constant_is_no_port():
    """A stream that is always ready, into a cell and out of it."""

    class Passing(wiring.Component):
        i: In(stream.Signature(8, always_ready=True))
        o: Out(stream.Signature(8, always_ready=True))

        def elaborate(self, platform):
            m = Module()
            m.d.sync += [self.o.valid.eq(self.i.valid), self.o.payload.eq(self.i.payload)]
            return m

    class Twice(wiring.Component):
        i: In(stream.Signature(8, always_ready=True))
        o: Out(stream.Signature(8, always_ready=True))

        def elaborate(self, platform):
            m = Module()
            first, second = (placer.place(m, f"cell_{n}", "passing", Passing) for n in range(2))
            wiring.connect(m, wiring.flipped(self.i), first.i)
            wiring.connect(m, first.o, second.i)
            wiring.connect(m, second.o, wiring.flipped(self.o))
            return m

    placer, twice = CellPlacer(), Twice()
    text = to_verilog(twice, name="twice")
    assert set(ports(twice)) == {"i__valid", "i__payload", "o__valid", "o__payload"}
    assert ".i__valid(" in text
    assert ".o__payload(" in text
    assert "ready" not in text + placer.verilog
