"""The figures the attention engine promises: predicted, and in the soak measured on the generated RTL.

The memory is the calibrated model of the HBM.  ``docs/attention-figures.md`` has the measured numbers, and
`sim.engines.attention.figures` prints them.
"""

import dataclasses
import resource

import numpy as np
import pytest

from hw.attention.config import UNIT_BITS
from hw.attention.core.timing import CoreTiming
from hw.attention.driver.division import divide
from hw.attention.driver.job import workload_of
from hw.attention.driver.tensors import read_inputs
from hw.attention.driver.workload import AttentionWorkload
from hw.attention.engine import AttentionEngine
from hw.attention.model.pieces import PassAddresses
from hw.attention.walk.job_setup import BITMAP_ROW_BYTES, PAGE_ENTRY_BYTES
from hw.board import load_board
from hw.config import config_of
from sim.api import simulate
from sim.build.simulator import OPTIMIZE_VARIABLE
from sim.engines.attention.cases import SMALL
from sim.engines.attention.figures import BOARD, FIGURES, figures_of, measure
from sim.engines.attention.predictions import SHORT, PredictionCheck, compare, small_launch, summary
from sim.run.run import find_adapter, run
from tests.support.attention.cycles import core_cycles, pass_shapes


def predict(figure):
    """Return what the bars are about, without a simulation."""
    board = load_board(BOARD)
    workload = workload_of(read_inputs(figure.tensors(), figure.config))
    prediction = AttentionEngine().predict(workload, figure.config, board)
    realistic = board.memory.realistic_bytes_per_second / (board.clock_mhz * 1e6)
    bytes_per_cycle = prediction.moved_bytes / prediction.cycles_total
    return {
        "cycles": prediction.cycles_total,
        "utilization": prediction.useful_macs / prediction.mac_slots,
        "over_compulsory": prediction.moved_bytes / prediction.compulsory_bytes,
        "bytes_per_cycle": bytes_per_cycle,
        "of_realistic": bytes_per_cycle / realistic,
    }


@pytest.mark.sample(4)
@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_figures_are_predicted_within_their_bars(figure):
    """`tests.regression.test_engines` compares the model with the RTL; here it speaks for large launches."""
    predicted = predict(figure)
    for bar in figure.bars:
        assert bar.holds(predicted), bar.text(predicted)


def bytes_beside(figure):
    """What whole beats carry beside what is asked for: what is read or written may begin or end within one.

    Keys, values and queries of the figures fill beats.  Rows of bitmaps and entries of pages may not, nor
    results: each row has a slice at each port.
    """
    config, board = figure.config, load_board(BOARD)
    workload = workload_of(read_inputs(figure.tensors(), config))
    beat, beside, places = config.port_width(board.memory.port_data_width) // 8, 0, PassAddresses(config)

    def ends(first, length):
        return first % beat + -(first + length) % beat if length else 0

    for job in (share.shape for share in divide(workload, config)):
        row_bytes = config.result_units(job.value_size) * UNIT_BITS // 8
        bitmap_bytes = job.bitmap_rows * BITMAP_ROW_BYTES
        for number, this in enumerate(job.passes(config)):
            beside += ends(number * bitmap_bytes, bitmap_bytes)
            beside += ends(this.entries.start * PAGE_ENTRY_BYTES, len(this.entries) * PAGE_ENTRY_BYTES)
            pieces = places.add(job, this, row_bytes=row_bytes)
            for n in range(pieces.count):
                beside += config.result_ports * ends(pieces.first + n * pieces.stride, pieces.length)
    return beside


@pytest.mark.soak
@pytest.mark.parametrize(
    "figure",
    [figure for figure in FIGURES if not figure.name.startswith("long_")],  # minutes, and of the same kind
    ids=lambda figure: figure.name,
)
def test_figure(figure, tmp_path):
    alone = measure(figure, tmp_path, control_only=True)[0].report
    result, _ = measure(figure, tmp_path)
    assert result.bit_exact, result.mismatches
    report = result.report
    assert report.prediction.predicted_read_error_bytes == 0
    assert report.prediction.predicted_write_error_bytes == 0
    assert abs(report.prediction.predicted_cycles_error_ratio) <= 0.02
    assert report.errors["relative_rms_error_int8_inputs"] <= 1.5e-3
    assert report.traffic.bus_bytes - report.traffic.useful_bytes == bytes_beside(figure)
    # From the start bit on the bus to the interrupt pin: a few cycles around what the kernel counts.
    assert 0 <= report.simulation.cycles_start_to_done - report.cycles.cycles_total <= 12
    for bar in figure.bars:
        assert bar.holds(figures_of(report)), bar.text(figures_of(report))
    # Without the gates that only compute it is the same to the last digit.
    assert (alone.cycles, alone.traffic) == (report.cycles, report.traffic)
    assert alone.simulation.cycles_start_to_done == report.simulation.cycles_start_to_done


@pytest.mark.soak
def test_many_heads_are_simulated_in_seconds(tmp_path):
    """12 heads of 1,024 tokens, 400,000 cycles, with the simulator in the cache: whole, and control alone.

    Seconds are the simulator's own processor time, as others may take a part of the processor.  Without
    models of multipliers control alone was 15 times as fast.
    """
    figure = next(figure for figure in FIGURES if figure.name == "heads_1024")
    seconds = []
    for control_only in (False, True):
        measure(figure, tmp_path, control_only=control_only)
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        measure(figure, tmp_path, control_only=control_only)
        seconds.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)
    assert seconds[0] <= 20
    assert seconds[1] <= 4.5
    assert seconds[0] <= 8 * seconds[1]


@pytest.mark.soak
@pytest.mark.parametrize(
    ("lanes", "keys", "query_size", "value_size", "heads"),
    [
        (64, 32, 32, 32, 48),
        (32, 32, 64, 64, 48),
        (32, 32, 32, 64, 192),
    ],
)
def test_results_that_take_longer_than_keys_are_predicted(lanes, keys, query_size, value_size, heads):
    """The channel of queries and results is what then decides: a launch of one block of queries a head."""
    config = {
        "rows": 32,
        "lanes": lanes,
        "folds": 64 // lanes,
        "merge_lanes": lanes // 16,
        "ports_per_stream": lanes // 32,
        "tile_keys": 32,
        "streams": 2,
    }
    board, engine = load_board(BOARD), AttentionEngine()
    found = config_of(engine, config, board)
    workload = AttentionWorkload(
        heads=heads, queries=(128,), keys=(keys,), query_size=query_size, value_size=value_size
    )
    tensors = find_adapter("attention").tensors(workload, found, seed=0)
    report = simulate("attention", tensors, found, board, control_only=True).report
    assert report.cycles.cycles_total > 1.15 * report.cycles.cycles_busy
    assert abs(report.prediction.predicted_cycles_error_ratio) <= 0.02


@pytest.mark.soak
@pytest.mark.parametrize("engines", [False, True], ids=["default", "engines"])
def test_random_launches_are_predicted(engines, monkeypatch):
    """150 of the default engine; one of each of 20 random small engines, built without optimizing.

    A small engine reads queries that see no key faster than memory prefetches them over a refresh: seed 16.
    """
    if engines:
        monkeypatch.setenv(OPTIMIZE_VARIABLE, "-O0")
    found = list(compare(range(20 if engines else 150), engines=engines))
    assert np.mean([abs(each.error) for each in found]) <= 0.0035 + 0.0035 * engines, summary(found)
    within = [each for each in found if not (engines and each.seed == 16)]
    assert all(each.of_allowed <= 1 for each in within), summary(found)
    assert max(abs(each.error) for each in found if each.cycles >= SHORT) <= 0.05, summary(found)


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(4))
def test_launches_of_a_small_engine_are_predicted(seed, tmp_path, monkeypatch):
    monkeypatch.setenv(OPTIMIZE_VARIABLE, "-O0")  # the simulator of the regression, data and all
    tensors = small_launch(np.random.default_rng([3, seed]), SMALL)
    report = run("attention", SMALL, load_board(BOARD), tensors, directory=tmp_path).report
    found = PredictionCheck(
        seed=seed,
        text="",
        cycles=report.cycles.cycles_total,
        predicted=report.prediction.predicted_cycles,
    )
    assert found.of_allowed <= 1, found


def test_first_score_to_last_output_of_a_small_array():
    """The core alone, whose law is exact: 256 keys and queries on 1,024 multipliers."""
    figure = next(figure for figure in FIGURES if figure.name == "small_array")
    config = figure.config
    count = core_cycles(config, pass_shapes(config, queries=256, keys=256))
    assert count - (config.rows + 1 + CoreTiming(config).scale) <= 8360


@pytest.mark.soak
def test_rising_maxima_cost_no_cycle(tmp_path):
    """The same launch with every key alike and with keys that raise the maximum at every tile."""
    figure = next(figure for figure in FIGURES if figure.name == "rising")
    tensors = figure.tensors()
    flat = dataclasses.replace(figure, tensors=lambda: tensors | {"k": tensors["k"] * 0})
    cycles = [measure(each, tmp_path)[0].report.cycles.cycles_total for each in (figure, flat)]
    assert cycles[0] == cycles[1]
