"""Both DMAs as Verilog, before an AXI memory that is not ours."""

from __future__ import annotations

import pytest
from amaranth.back import verilog

from sim.build.simulator import build, run
from tests.support.gateware.copier import Copier


def built_copier():
    copier = Copier(data_width=128, addr_width=16, fifo_beats=128)
    text = verilog.convert(copier, name="copier", emit_src=False)
    ports = ["__".join(map(str, path)) for path, _, _ in copier.signature.flatten(copier)]
    return build({"copier.v": text}, top="copier", visible=["clk", "rst", *ports])


@pytest.mark.soak
@pytest.mark.parametrize("stall", [0.0, 0.7])
def test_copies_are_exact(stall, tmp_path):
    environ = {"DMA_SEED": "1", "DMA_STALL": str(stall)}
    run(built_copier(), module="tests.bench.copier", directory=tmp_path, environ=environ)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 14))
def test_copies_are_exact_for_many_seeds(seed, tmp_path):
    environ = {"DMA_SEED": str(seed), "DMA_STALL": str([0.0, 0.3, 0.7, 0.95][seed % 4])}
    run(built_copier(), module="tests.bench.copier", directory=tmp_path, environ=environ)
