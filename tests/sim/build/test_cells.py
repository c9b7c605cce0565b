"""Cells are found in Verilog as Amaranth writes it."""

from amaranth.back import verilog
from amaranth.hdl import Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.lib.place import CellPlacer
from sim.build.cells import cell_inputs


class Register(wiring.Component):
    """A register behind ``stages`` more, which make its text longer."""

    def __init__(self, stages):
        super().__init__({"i": In(8), "load": In(1), "o": Out(8)})
        self.stages = stages

    def elaborate(self, platform):
        m = Module()
        value = self.i
        for number in range(self.stages):
            m.d.sync += (stage := Signal(8, name=f"stage_{number}")).eq(value)
            value = stage
        with m.If(self.load):
            m.d.sync += self.o.eq(value)
        return m


def registers(count, stages=20):
    """Return the Verilog of ``count`` registers placed as cells."""
    m, placer = Module(), CellPlacer()
    i, load, out = Signal(8), Signal(count), Signal(8)
    total = Const(0, 8)
    for n in range(count):
        cell = placer.place(m, f"register_{n}", "cell_register", lambda: Register(stages))
        m.d.comb += [cell.i.eq(i), cell.load.eq(load[n])]
        total = total ^ cell.o
    m.d.comb += out.eq(total)
    return placer.verilog + verilog.convert(m, name="top", ports=[i, load, out], emit_src=False)


def test_a_module_placed_often_is_a_cell_and_its_clock_is_left_alone():
    assert cell_inputs(registers(5)) == {"cell_register": ("i", "load", "rst")}


def test_a_module_placed_a_few_times_is_none():
    assert cell_inputs(registers(3)) == {}


def test_where_sharing_does_not_double_the_text_it_does_not_pay():
    assert cell_inputs(registers(5, stages=1)) == {}


def test_what_the_text_does_not_define_is_none():
    text = "module top(a);\n  input a;\n" + "".join(
        f"  black_box b{n} (\n    .a(a)\n  );\n" for n in range(9)
    )
    assert cell_inputs(text + "endmodule\n") == {}
