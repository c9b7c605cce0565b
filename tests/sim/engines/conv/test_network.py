"""A network as a launch: planned once, its maps, its predictions and its log."""

from pathlib import Path
from time import process_time

import numpy as np
import pytest

from hw.board import load_board
from hw.conv.config import ConvConfig
from hw.conv.core.layouts import Offsets
from hw.conv.driver import workload
from hw.conv.driver.network import build
from hw.conv.driver.route import plan_route
from hw.conv.driver.table import NETWORK, read_table, square
from hw.conv.engine import ConvEngine
from hw.conv.model.predict import predict
from hw.errors import InputError
from sim.engines.conv.adapter import ADAPTER, as_network
from sim.engines.conv.cases import BLOCKS, SMALL
from sim.run.adapter import UNWRITTEN

WIDE = "name,kind,H,Cin,Cout,K,s,g,OH,W,OW,d,p\n"


@pytest.mark.parametrize(
    "tensors", [{NETWORK: as_network(list(BLOCKS))}, dict(np.load("examples/layer.npz"))]
)
def test_a_job_is_planned_once(tensors, monkeypatch):
    """Reading, launching, the golden run and the prediction share one plan of each job."""
    planned, plan_job = [], workload.plan_job

    def counted(*args, **changes):
        planned.append(args)
        return plan_job(*args, **changes)

    monkeypatch.setattr(workload, "plan_job", counted)
    workload.plan_at_zero.cache_clear()
    plan_route.cache_clear()
    board = load_board("u55c")
    job = ADAPTER.job(tensors, SMALL)
    ADAPTER.launch(job, SMALL, board)
    ADAPTER.golden(job, SMALL)
    predict(ADAPTER.workload(job, SMALL), SMALL, board)
    jobs = {step.job for step in job.program.steps}
    layers = {(tensors.layer,) for step in job.program.steps for tensors in step.layers}
    assert len(planned) == len(jobs)
    # Each layer of a network is planned alone for its cost, and again only if it shares a job.
    assert plan_route.cache_info().misses <= len(jobs) + len(layers)


@pytest.mark.soak
@pytest.mark.parametrize("name", ["a", "c", "d"])
def test_networks_are_predicted_in_a_moment(name):
    """On the smallest engine of the docs, whose blocks have the most tiles; the fastest of five counts."""
    config = ConvConfig(lanes=64, taps=1, strip=False, inputs=16, outputs=16, weight_bits=4, block_pixels=64)
    rows = read_table(Path(f"sim/engines/conv/tables/codenet_{name}.csv"))
    workload = build(rows, config).workload
    board, seconds = load_board("u55c"), []
    for _ in range(5):
        start = process_time()
        predict(workload, config, board)
        seconds.append(process_time() - start)
    assert min(seconds) < 0.25, seconds


@pytest.mark.parametrize("name", ["a", "c"])
def test_codenet_runs_on_the_default_of_its_own_board(name):
    """Offsets of up to six pixels, and pixels of up to 1,024 channels, on an Ultra96-V2."""
    board = load_board("ultra96v2")
    config = ConvEngine().default_config(board)
    rows = read_table(Path(f"sim/engines/conv/tables/codenet_{name}.csv"))
    prediction = predict(build(rows, config).workload, config, board)
    assert sum(prediction.cycles.values()) > max(prediction.job_cycles) > 0


def test_a_pixel_of_more_channels_than_parameter_rows_is_refused():
    """Configuration d of CoDeNet has pixels of 2,153 channels, 135 words of 16; there are 64 rows."""
    config = ConvEngine().default_config(load_board("ultra96v2"))
    rows = read_table(Path("sim/engines/conv/tables/codenet_d.csv"))
    with pytest.raises(InputError, match=r"channels .+ must be at most 1024, not 2153"):
        build(rows, config)


def predicted(rows):
    job = ADAPTER.job({NETWORK: as_network(rows)}, SMALL)
    return predict(ADAPTER.workload(job, SMALL), SMALL, load_board("u55c"))


def test_jobs_are_predicted_to_end_in_order():
    """Small jobs of both units, which do not wait for each other; their results are written in order."""
    rows = [square("u0.a", "dw", 1, 3, 3, 3, 1, 3), square("u1.a", "dw", 16, 64, 64, 3, 1, 64)]
    assert min(predicted([*rows, square("u2.a", "pw", 1, 1, 64, 1, 1, 1)]).job_cycles) > 0
    rng = np.random.default_rng(0)
    for _ in range(30):
        rows = []
        for n in range(3):
            kind = str(rng.choice(["dw", "pw", "conv"]))
            side, channels, outputs = (
                int(rng.choice(sizes)) for sizes in ((1, 4, 12), (1, 3, 40), (1, 8, 40))
            )
            group = channels if kind == "dw" else 1
            outputs = channels if kind == "dw" else outputs
            rows.append(square(f"u{n}.a", kind, side, channels, outputs, 1 if kind == "pw" else 3, 1, group))
        assert min(predicted(rows).job_cycles) > 0


def test_shuffled_maps_are_those_of_channels_in_turn():
    job = ADAPTER.job({NETWORK: as_network(list(BLOCKS)), "seed": np.array(3)}, SMALL)
    maps = ADAPTER.golden(job, SMALL)
    [step] = [step for step in job.program.steps if step.result.endswith("s1.1.pw2")]
    before = maps[step.bypass.name]
    assert (maps[step.result][::2] == before[: len(before) // 2]).all()


def test_every_column_of_a_table_takes_effect(tmp_path):
    """Maps that are not square; kernels, strides, dilations and pads of two axes; free offsets on chip."""
    path = tmp_path / "layers.csv"
    path.write_text(
        WIDE
        + "a,conv,9,4,6,3x2,2x1,2,5,7,8,1x2,1x2x1x1\n"
        + "b,dw,5,6,6,3,1,6,5,8,8,2,2\n"
        + "c,pw,5,6,8,1,1,1,5,8,8,1,0\n"
        + "dc0.off,pw,5,8,18,1,1,1,5,8,8,1,0\n"
        + "dc0.ddw,ddw,5,8,8,3,1,8,5,8,8,1,1\n"
        + "dc0.pw,pw,5,8,4,1,1,1,5,8,8,1,0\n"
    )
    program = build(read_table(path), SMALL)
    maps = ADAPTER.golden(ADAPTER.job({NETWORK: as_network(read_table(path))}, SMALL), SMALL)
    layers = {
        row: tensors.layer
        for step in program.steps
        for row, tensors in zip(step.name.split("+"), step.layers, strict=True)
    }
    assert (layers["a"].kernel, layers["a"].strides, layers["a"].dilations) == ((3, 2), (2, 1), (1, 2))
    assert layers["a"].pads == (1, 2, 1, 1)
    assert layers["b"].dilations == (2, 2)
    assert (layers["dc0.ddw"].offsets, layers["dc0.ddw"].dot) == (Offsets.FREE, True)
    shapes = {name.rpartition("+")[2]: found.shape for name, found in maps.items() if name != UNWRITTEN}
    assert shapes["dc0.pw"] == (4, 10, 16)
    assert [step.source.name for step in program.steps[:1]] == ["(input of a)"]


def test_the_log_says_how_long_each_job_took():
    job = ADAPTER.job({NETWORK: as_network(list(BLOCKS))}, SMALL)
    ends = np.cumsum(np.arange(100, 100 + len(job.program.steps)), dtype="<u8")
    cycles = ADAPTER.job_cycles(job, SMALL, {"log": ends.view(np.uint8)})
    assert list(cycles) == [step.name for step in job.program.steps]
    assert list(cycles.values()) == list(range(100, 100 + len(cycles)))
    with pytest.raises(
        InputError, match=r"^end of job .* in the log must be above 0, the one before, not 0$"
    ):
        ADAPTER.job_cycles(job, SMALL, {"log": np.zeros_like(ends).view(np.uint8)})


def test_a_network_has_no_other_tensors():
    tensors = {NETWORK: as_network(list(BLOCKS)), "x": np.zeros(3)}
    with pytest.raises(InputError, match="tensor name must be seed"):
        ADAPTER.job(tensors, SMALL)
