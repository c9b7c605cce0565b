# amaranth: UnusedElaboratable=no
"""Packed products against plain ones, for every input there is, in the generated Verilog."""

import subprocess

import pytest
from amaranth.back import verilog
from amaranth.hdl import Module, Signal, signed, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.lib.arithmetic.packed import FIELD_BITS, INT8_SUMS, WORD_BITS, pack, split
from sim.build.toolchain import CXX_STANDARD, find_toolchain

#: Counts the inputs for which a field is not the product, and says how many it tried.
_BENCH = """
#include <cstdio>
#include "Vpacked_product.h"

int main() {{
    Vpacked_product product;
    long tried = 0, wrong = 0;
    for (int high = -128; high < 128; high++)
        for (int low = -128; low < 128; low++)
            for (int shared = {first}; shared <= {last}; shared++, tried++) {{
                product.high = high;
                product.low = low;
                product.shared = shared & {mask};
                product.eval();
                int field_high = high * shared & 0x3ffff, field_low = low * shared & 0x3ffff;
                wrong += product.o_high != field_high || product.o_low != field_low;
            }}
    std::printf("%ld tried, %ld wrong\\n", tried, wrong);
}}
"""


class Product(wiring.Component):
    """One multiplier, as the arrays use it: both factors registered nowhere, so that a bench can hurry."""

    def __init__(self, shared):
        super().__init__(
            {
                "high": In(signed(8)),
                "low": In(signed(8)),
                "shared": In(shared),
                "o_high": Out(signed(FIELD_BITS)),
                "o_low": Out(signed(FIELD_BITS)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        word = Signal(WORD_BITS)
        high, low = split(word)
        m.d.comb += [
            word.eq(pack(self.high, self.low) * self.shared),
            self.o_high.eq(high),
            self.o_low.eq(low),
        ]
        return m


@pytest.mark.parametrize(
    ("shared", "first", "last"), [(signed(8), -128, 127), (unsigned(9), 0, 256)], ids=["int8", "probability"]
)
def test_every_product(shared, first, last, tmp_path):
    """2^24 inputs for two int8 and a third; 2^16 * 257 with a probability of 8 bits."""
    text = verilog.convert(Product(shared), name="packed_product", emit_src=False)
    (tmp_path / "product.v").write_text(text)
    mask = (1 << shared.width) - 1
    (tmp_path / "bench.cpp").write_text(_BENCH.format(mask=mask, first=first, last=last))
    tools = find_toolchain()
    environment = {**tools.environment(), "MAKEFLAGS": "CFG_CXXFLAGS_PCH_I=-include OPT_FAST=-O2"}
    command = [str(tools.verilator.executable), "--cc", "--exe", "--build", "-Wno-fatal", "-Wno-lint"]
    command += ["-CFLAGS", CXX_STANDARD, "product.v", "bench.cpp", "--top-module", "packed_product"]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
    program = tmp_path / "obj_dir" / "Vpacked_product"
    run = subprocess.run([program], check=True, capture_output=True, text=True)
    assert run.stdout == f"{2**16 * (last - first + 1)} tried, 0 wrong\n"


def test_sums_fit_their_field():
    """The extremes of a sum of products, and the first sum that would not fit."""
    low, high = -(2 ** (FIELD_BITS - 1)), 2 ** (FIELD_BITS - 1) - 1
    assert low <= -128 * 127 * INT8_SUMS
    assert 128 * 128 * INT8_SUMS <= high < 128 * 128 * (INT8_SUMS + 1)
    assert low <= -128 * 256 <= 127 * 256 <= high
