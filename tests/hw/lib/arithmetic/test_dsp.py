# amaranth: UnusedElaboratable=no
"""Slices as a device's cells, with the model that simulations have of these, and as registers written out."""

from amaranth.back import verilog
from amaranth.hdl import Cat, Module, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.lib.arithmetic.dsp import accumulated, long_product, packed_product, weighted_sum, wide_product
from hw.lib.arithmetic.models import models_of
from hw.lib.arithmetic.multiply_add import multiply_add
from hw.lib.convert import to_verilog
from tests.support.gateware.bench import assert_equal


class Chain(wiring.Component):
    """Two slices, one behind the other."""

    high: In(signed(8))
    low: In(signed(8))
    load: In(1)
    shared: In(signed(8))
    o: Out(signed(36))

    def elaborate(self, platform):
        m = Module()
        word = None
        for n in range(2):
            word = packed_product(
                m,
                platform,
                f"word_{n}",
                high=self.high,
                low=self.low,
                load=self.load,
                shared=self.shared,
                shared_registers=2 - n,
                cascade=word,
                ends=n == 1,
            )
        m.d.comb += self.o.eq(word)
        return m


class Sums(wiring.Component):
    """Sums that take turns, with any control."""

    factor: In(signed(22))
    value: In(signed(8))
    first: In(1)
    turn: In(1)
    rest: In(1)
    o: Out(signed(33))

    def elaborate(self, platform):
        m = Module()
        control = {name: getattr(self, name) for name in ("factor", "value", "first", "turn", "rest")}
        m.d.comb += self.o.eq(accumulated(m, platform, "sum", bits=33, **control))
        return m


class Wide(wiring.Component):
    """A product of two slices."""

    value: In(signed(33))
    factor: In(signed(27))
    load: In(1)
    o: Out(signed(60))

    def elaborate(self, platform):
        m = Module()
        inputs = {"value": self.value, "factor": self.factor, "load": self.load}
        m.d.comb += self.o.eq(wide_product(m, platform, "wide", **inputs))
        return m


class Weighted(wiring.Component):
    """A sum of two products."""

    first: In(signed(9))
    second: In(signed(9))
    factor: In(signed(27))
    other: In(signed(27))
    add: In(signed(9))
    keep: In(1)
    o: Out(signed(40))

    def elaborate(self, platform):
        m = Module()
        values, factors = (self.first, self.second), (self.factor, self.other)
        m.d.comb += self.o.eq(
            weighted_sum(
                m, platform, "weighted", values=values, factors=factors, add=self.add, keep=self.keep
            )
        )
        return m


class Long(wiring.Component):
    """A product of three slices."""

    value: In(20)
    factor: In(51)
    o: Out(37)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.o.eq(long_product(m, platform, "long", value=self.value, factor=self.factor))
        return m


class Added(wiring.Component):
    """Two slices that multiply and add, with any control of the chain."""

    factor: In(signed(27))
    value: In(signed(16))
    add: In(signed(43))
    keep: In(1)
    other: In(signed(18))
    chained: In(1)
    o: Out(signed(96))

    def elaborate(self, platform):
        m = Module()
        first, cascade = multiply_add(
            m, platform, "first", factor=self.factor, value=self.value, add=self.add, keep=self.keep
        )
        second, _ = multiply_add(
            m,
            platform,
            "second",
            factor=self.factor,
            value=self.other,
            add=first,
            cascade=cascade,
            chained=self.chained,
        )
        m.d.comb += self.o.eq(Cat(first, second))
        return m


def test_slices_are_what_is_written_out(tmp_path):
    """All kinds in one bench, a part of its bits each."""
    texts, widths, bits = {}, {}, 0
    placed = {"gold": "", "gate": ""}
    for component in (Chain, Sums, Wide, Weighted, Long, Added):
        name, members = component.__name__, component().signature.members.items()
        inputs = {pin: getattr(member.shape, "width", member.shape) for pin, member in members if pin != "o"}
        own = len(component().o)
        texts |= {
            f"gold_{name}.v": verilog.convert(component(), name=f"Gold{name}"),
            f"gate_{name}.v": to_verilog(component(), name=f"Gate{name}"),
        }
        assert "DSP48E2" in texts[f"gate_{name}.v"]
        assert "DSP48E2" not in texts[f"gold_{name}.v"]
        pins = ", ".join(f".{pin}({name}_{pin})" for pin in inputs)
        for kind, reset in (("gold", ".rst(1'b0), "), ("gate", "")):
            out = f"{kind}[{bits + own - 1}:{bits}]"
            placed[kind] += f"{kind.title()}{name} {kind}_{name} (.clk(clk), {reset}{pins}, .o({out}));\n"
        widths |= {f"{name}_{pin}": width for pin, width in inputs.items()}
        bits += own
    texts |= {path.name: path.read_text() for path in models_of("".join(texts.values()))}
    assert_equal(tmp_path, texts, widths, bits=bits, **placed)
