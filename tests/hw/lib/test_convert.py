"""Conversion to Verilog: memories without content, all others as Amaranth writes them."""

import re
import subprocess
import sys
import time

import pytest
from amaranth.back import rtlil, verilog
from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hw.lib.convert import to_verilog, without_content
from hw.lib.memory import NO_INIT, BankedMemory, uninitialised
from tests.support.gateware.streams import simulate


class Tables(wiring.Component):
    """A table with content beside two memories without, one of them in a module of its own."""

    def __init__(self, depth=3, width=8):
        self._depth, self._width = depth, width
        super().__init__(
            {"at": In(range(depth)), "en": In(1), "i": In(width), "o": Out(width), "table": Out(8)}
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.rom = rom = Memory(shape=8, depth=3, init=[1, 2, 3], attrs={"ram_style": "block"})
        m.submodules.scratch = scratch = uninitialised(
            width=self._width, depth=self._depth, ram_style="block"
        )
        m.submodules.banks = BankedMemory(
            banks=1, depth=4, lanes=1, lane_width=4, read_latency=1, ram_style="block"
        )
        fixed, read, write = rom.read_port(), scratch.read_port(), scratch.write_port()
        m.d.comb += [
            fixed.addr.eq(self.at),
            self.table.eq(fixed.data),
            read.addr.eq(self.at),
            self.o.eq(read.data),
            write.addr.eq(self.at),
            write.data.eq(self.i),
            write.en.eq(self.en),
        ]
        return m


def test_only_marked_memories_lose_their_content():
    text = to_verilog(Tables(), name="tables")
    assert text.count("initial begin") == 1
    assert "rom[2] = 8'h03" in text
    assert NO_INIT not in text
    # All else is what Amaranth's own conversion gives, but for initial values, which stand by themselves.
    own = verilog.convert(Tables(), name="tables", emit_src=False, strip_internal_attrs=True)
    assert NO_INIT in own
    own = re.sub(r"^ *initial begin\n(?: *(?:scratch|bank_0)\[\d+\] = [^\n]*\n)+ *end\n", "", own, flags=re.M)
    own = re.sub(rf"^ *\(\* {NO_INIT} = .*\n", "", own, flags=re.M)
    assert re.sub(r";\n +initial \S+ +(= [^;\n]*;)$", r" \1", text, flags=re.M) == own


def test_a_component_can_still_be_simulated():
    """In Amaranth's simulator memories without content hold zeros, before and after a conversion."""
    dut = Tables()
    to_verilog(dut, name="tables")

    async def bench(ctx):
        ctx.set(dut.at, 2)
        await ctx.tick()
        assert (ctx.get(dut.o), ctx.get(dut.table)) == (0, 3)
        ctx.set(dut.i, 77)
        ctx.set(dut.en, 1)
        await ctx.tick().repeat(2)
        assert ctx.get(dut.o) == 77

    simulate(dut, bench)


def test_deep_memories_take_no_time():
    """65,536 words of 512 bits: written out they would take minutes."""
    start = time.process_time()
    text = to_verilog(Tables(depth=65536, width=512), name="deep")
    assert time.process_time() - start < 5
    assert "[511:0] scratch [65535:0]" in text
    assert len(text) < 20_000


def netlist():
    return rtlil.convert(Tables(), name="tables", emit_src=False)


def test_netlists_without_content():
    text = netlist()
    kept = without_content(text)
    assert (text.count("$meminit_v2"), kept.count("$meminit_v2")) == (3, 1)
    assert (text.count(NO_INIT), kept.count(NO_INIT)) == (2, 0)
    assert kept.count("memory width") == text.count("memory width") == 3
    assert without_content(kept) == kept


def test_what_is_not_known_is_noticed():
    text = netlist()
    without = text.replace('"\\\\scratch"', '"\\\\other"')
    with pytest.raises(ValueError, match=r"content of memory \\scratch of module \S+ is written 0 times"):
        without_content(without)
    with pytest.raises(ValueError, match="is no memory"):
        without_content(re.sub(r"  memory width 8 size 3 \\scratch", r"  wire \\scratch", text))


def test_what_has_no_bits_has_no_name():
    """With its source line or without: what stands before a name goes with it."""

    class Fields(wiring.Component):
        i: In(data.StructLayout({"word": 8, "zero": 0}))
        o: Out(data.StructLayout({"word": 8, "zero": 0}))

        def elaborate(self, platform):
            m = Module()
            state = Signal(self.i.shape())
            m.d.sync += state.eq(self.i)
            m.d.comb += self.o.word.eq(state.word + self.i.word)
            return m

    for sources in (False, True):
        text = to_verilog(Fields(), name="fields", sources=sources)
        assert ("src = " in text) == sources
        assert "zero" not in text
        assert not re.search(r"\*\)\n *assign", text)


def test_a_writer_that_fails_is_one_line():
    """As on a full disk: it has no room for what it is given."""
    code = "from tests.hw.lib.test_convert import Tables, to_verilog; to_verilog(Tables(), name='t')"
    run = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024)); {code}"
    ended = subprocess.run([sys.executable, "-B", "-c", run], capture_output=True, text=True, check=False)
    error = ended.stderr.splitlines()[-1]
    assert error.startswith("hw.errors.ToolError: Yosys could not write the Verilog of t: ")
    assert "File too large" in error
