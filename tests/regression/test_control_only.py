"""Simulations of control alone: every figure that is not of data equals that of the whole kernel."""

from itertools import groupby

import numpy as np
import pytest

from hw.board import load_board
from hw.network.graph.transformer.writer import written
from hw.registry import ENGINES, find_engine
from sim.build.design import kernel_design
from sim.build.simulator import OPTIMIZE_VARIABLE
from sim.engines.network.cases import SMALL
from sim.run.adapter import SATURATED
from sim.run.run import find_adapter, run
from tests.support.networks.sentences import small

#: The engine of which `make test` has launches: of its first configuration, the first and a random one.
TESTED, IN_TEST = "attention", 1
#: Most launches of a configuration in the soak.
IN_SOAK = 15
#: Sentences for the small network kernel.
SENTENCES = {
    "input_ids": [[3, 1, 4, 1, 5, 9], [2, 6, 5, 0, 0, 0]],
    "attention_mask": [[1] * 6, [1, 1, 1, 0, 0, 0]],
}


def simulators():
    """Return launches of the regression that share both simulators: some in `make test`, others in the
    soak.
    """
    for engine in ENGINES:
        if not find_engine(engine).data_cells:
            continue
        cases = list(find_adapter(engine).cases())
        for number, (_, found) in enumerate(groupby(cases, lambda case: (case.board, case.config))):
            alike = list(found)
            short = [case for case in alike if not case.soak] if (engine, number) == (TESTED, 0) else []
            quick = short[:1] + short[-IN_TEST:]
            if quick:
                yield pytest.param(engine, quick, id=f"{engine}-quick")
            rest = [case for case in alike if case not in quick][:IN_SOAK]
            yield pytest.param(engine, rest, id=f"{engine}-{number}", marks=pytest.mark.soak)


def figures(report):
    """Return what must be equal, the memory models' own counters among it."""
    cycles = report.simulated.cycles_start_to_done, report.simulated.cycles_simulated
    # What saturates is known to the rows that are left out.
    details = {name: value for name, value in report.details.items() if not name.startswith(SATURATED)}
    return cycles, report.cycles, report.traffic, details, report.prediction


def compared(engine, config, board, tensors, folder, **options):
    """Run a launch with and without data; hold the figures of control alone to those of the whole kernel."""
    whole, control = (
        run(engine, config, board, tensors, directory=folder, control_only=alone, **options)
        for alone in (False, True)
    )
    assert figures(control.report) == figures(whole.report)
    assert control.report.bit_exact is None
    assert not any(name.startswith(SATURATED) for name in control.report.details)
    assert not control.outputs
    return whole


@pytest.mark.parametrize(("engine", "cases"), list(simulators()))
def test_counters_cycles_and_bytes_equal_the_whole_kernel(engine, cases, tmp_path, subtests, monkeypatch):
    monkeypatch.setenv(OPTIMIZE_VARIABLE, "-O0")  # launches are short
    for case in cases:
        with subtests.test(case.name):
            options = {"seed": case.seed, "memory_mode": case.memory}
            compared(engine, case.config, load_board(case.board), case.tensors, tmp_path, **options)


@pytest.mark.soak
def test_of_a_kernel_with_attention(tmp_path, monkeypatch):
    """Sentences pass all of its units.  The kernel has cells of each kind that its control is without."""
    monkeypatch.setenv(OPTIMIZE_VARIABLE, "-O0")
    (path := tmp_path / "small.onnx").write_bytes(written(small("mask", "heads")))
    adapter = find_adapter("network")
    tensors = adapter.read_files({"model": path}, SMALL, seed=0)
    tensors |= {name: np.array(each) for name, each in SENTENCES.items()}
    board, engine = load_board("u55c"), find_engine("network")
    assert compared("network", SMALL, board, tensors, tmp_path).bit_exact
    whole, control = (kernel_design(engine, SMALL, board, control_only=alone) for alone in (False, True))
    for kind in engine.data_cells:
        assert f"\nmodule {kind}" in whole.verilog
        assert f"\nmodule {kind}" not in control.verilog
