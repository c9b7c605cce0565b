"""What `loomwork compare oram` measures is what its formulas say, of the oblivious map's RTL."""

import pytest

from hw.board import load_board
from sim.build.simulator import OPTIMIZE_VARIABLE
from sim.engines.oram.compare import measure
from sim.engines.oram.compare.compare import OURS


@pytest.mark.soak
@pytest.mark.parametrize("shape", OURS.values(), ids="-".join)
def test_formulas_hold(shape, tmp_path, monkeypatch):
    monkeypatch.setenv(OPTIMIZE_VARIABLE, "-O0")  # the simulator of `test_engines`, too
    monkeypatch.setattr(measure, "OPERATIONS", 600)
    found = measure.measure(measure.measured_config(shape), load_board("u55c"), 0, tmp_path)
    counted, predicted = found.counted, found.predicted
    assert found.exact
    assert (counted.page_bytes, counted.bursts) == (predicted.page_bytes, predicted.bursts)
    assert 0.95 * predicted.hbm_bytes <= counted.hbm_bytes <= predicted.hbm_bytes
    assert found.cycles_error == pytest.approx(0, abs=0.02)
