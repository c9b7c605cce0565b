# amaranth: UnusedElaboratable=no
"""Packed products against plain ones, for every input there is, in the generated Verilog."""

import subprocess
from pathlib import Path

import pytest
from amaranth.back import verilog
from amaranth.hdl import Module, Signal, signed, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.lib.arithmetic.packed import FIELD_BITS, INT8_SUMS, WORD_BITS, pack, split
from sim.build.toolchain import CXX_STANDARD, find_toolchain

#: Counts the fields that are not the product, and says how many it tried.  Verilator writes two
#: underscores of a name as ___05F.
_BENCH = """
#include <cstdio>
#include "Vproducts.h"

#define EVERY_PRODUCT(name, first, last, mask) \\
    tried = wrong = 0; \\
    for (int high = -128; high < 128; high++) \\
        for (int low = -128; low < 128; low++) \\
            for (int shared = first; shared <= last; shared++, tried++) { \\
                products.name##___05Fhigh = high; \\
                products.name##___05Flow = low; \\
                products.name##___05Fshared = shared & mask; \\
                products.eval(); \\
                wrong += products.name##___05Fo_high != (high * shared & 0x3ffff); \\
                wrong += products.name##___05Fo_low != (low * shared & 0x3ffff); \\
            } \\
    std::printf(#name ": %ld tried, %ld wrong\\n", tried, wrong);

int main() {
    Vproducts products;
    long tried, wrong;
    EVERY_PRODUCT(int8, -128, 127, 0xff)
    EVERY_PRODUCT(probability, 0, 256, 0x1ff)
}
"""


def product_signature(shared):
    """Return the ports of one multiplier."""
    factors = {"high": In(signed(8)), "low": In(signed(8)), "shared": In(shared)}
    return wiring.Signature({**factors, "o_high": Out(signed(FIELD_BITS)), "o_low": Out(signed(FIELD_BITS))})


class Products(wiring.Component):
    """Both multipliers of the arrays: factors registered nowhere, so that a bench can hurry."""

    int8: Out(product_signature(signed(8)))
    probability: Out(product_signature(unsigned(9)))

    def elaborate(self, platform):
        m = Module()
        for port in (self.int8, self.probability):
            word = Signal(WORD_BITS)
            high, low = split(word)
            m.d.comb += [
                word.eq(pack(port.high, port.low) * port.shared),
                port.o_high.eq(high),
                port.o_low.eq(low),
            ]
        return m


@pytest.mark.soak
def test_every_product(tmp_path):
    """2^24 inputs for two int8 and a third; 2^16 * 257 with a probability of 8 bits."""
    text = verilog.convert(Products(), name="products", emit_src=False)
    (tmp_path / "product.v").write_text(text)
    tools = find_toolchain()

    def said(*command):
        run = subprocess.run(
            command, cwd=tmp_path, env=tools.environment(), check=True, capture_output=True, text=True
        )
        return run.stdout

    verilator = str(tools.verilator.executable)
    said(verilator, "--cc", "-Wno-fatal", "-Wno-lint", "product.v", "--top-module", "products", "--Mdir", ".")
    # One text with the library in it: compiled apart, all of them take twice as long.
    parts = [*sorted(path.name for path in tmp_path.glob("*.cpp")), "verilated.cpp", "verilated_threads.cpp"]
    included = "".join(f'#include "{part}"\n' for part in parts)
    (tmp_path / "bench.cpp").write_text(included + _BENCH)
    include = Path(said(verilator, "--getenv", "VERILATOR_ROOT").strip(), "include")
    folders = ["-I.", f"-I{include}", f"-I{include / 'vltstd'}"]
    said(str(tools.cxx), CXX_STANDARD, "-Og", *folders, "-pthread", "-o", "bench", "bench.cpp")
    stdout = said("./bench")
    counts = {"int8": 2**24, "probability": 2**16 * 257}
    assert stdout == "".join(f"{name}: {count} tried, 0 wrong\n" for name, count in counts.items())


def test_sums_fit_their_field():
    """The extremes of a sum of products, and the first sum that would not fit."""
    low, high = -(2 ** (FIELD_BITS - 1)), 2 ** (FIELD_BITS - 1) - 1
    assert low <= -128 * 127 * INT8_SUMS
    assert 128 * 128 * INT8_SUMS <= high < 128 * 128 * (INT8_SUMS + 1)
    assert low <= -128 * 256 <= 127 * 256 <= high
