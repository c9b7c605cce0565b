"""What a job or a launch of the attention engine leaves decides nothing of the next: random jobs of all modes
in launches one after another, without a reset between them, equal the golden model bit for bit.
"""

import numpy as np
import pytest

from hw.attention.config import AttentionConfig
from hw.attention.kernel.arguments import CAUSES
from hw.board import load_board
from hw.lib.counters import counter_names
from hw.registry import find_engine
from sim.build.design import simulated_design
from sim.build.simulator import OPTIMIZE_VARIABLE
from sim.engines.attention.adapter import ADAPTER
from sim.engines.attention.cases import SMALL
from sim.run.launch import simulate
from tests.support.attention.sequences import JOBS, put_together, random_calls

BOARD = load_board("u55c")
#: Launches one after another without a reset.
CALLS = 5
#: Small in everything, and apart in rows, streams, lanes, folds, caches, formats and options.
CONFIGS = {
    "decode": SMALL,
    "one_row": AttentionConfig(
        rows=1, lanes=16, folds=2, tile_keys=16, streams=2, ports_per_stream=1, merge_lanes=1, cached_keys=32,
        probability_bits=8, exp_segments=8, output="int8",
    ),
    "one_stream": AttentionConfig(
        rows=2, lanes=32, folds=1, tile_keys=32, ports_per_stream=1, result_ports=2, merge_lanes=1,
        cached_keys=64, probability_bits=12, exp_segments=8, output="bfloat16", alibi=True, paged=True,
    ),
    "two_streams": AttentionConfig(
        rows=5, lanes=48, folds=2, tile_keys=16, streams=2, ports_per_stream=1, result_ports=4, merge_lanes=4,
        cached_keys=64, exp_segments=32, alibi=True, paged=True,
    ),
    "uncached": AttentionConfig(
        rows=4, lanes=16, folds=4, tile_keys=16, streams=4, ports_per_stream=1, merge_lanes=2, cached_keys=0,
        probability_bits=16, logit_cap=True, output="int16",
    ),
    "decode_int8": AttentionConfig(
        rows=2, lanes=16, folds=1, tile_keys=16, streams=4, merge_lanes=1, cached_keys=32,
        probability_bits=8, output="int8", decode=True,
    ),
}  # fmt: skip
#: Runs of `CALLS` launches of each configuration: in `make test`, on a simulator of other tests, and in the
#: soak.
IN_TEST = {"decode": 1}
IN_SOAK = dict.fromkeys(CONFIGS, 9)


def runs():
    for name in CONFIGS:
        for seed in range(IN_SOAK[name]):
            marks = [] if seed < IN_TEST.get(name, 0) else [pytest.mark.soak]
            yield pytest.param(name, seed, id=f"{name}-{seed}", marks=marks)


@pytest.mark.parametrize(("name", "seed"), list(runs()))
def test_launches_one_after_another(name, seed, tmp_path, monkeypatch):
    monkeypatch.setenv(OPTIMIZE_VARIABLE, "-O0")  # launches are short
    config, engine = CONFIGS[name], find_engine("attention")
    rng = np.random.default_rng([list(CONFIGS).index(name), seed])
    calls = random_calls(rng, config, BOARD, CALLS)
    simulated = simulate(
        simulated_design(engine, config, BOARD),
        put_together(rng, config, calls),
        directory=tmp_path / "simulation",
        expected_cycles=20_000,
        memory_mode=("model", "jitter", "fast")[seed % 3],
        seed=seed,
    )
    assert simulated.answer.resets_between_calls == 0
    for number, (parts, call) in enumerate(zip(calls, simulated.answer.calls, strict=True)):
        assert sum(len(part.job.pieces) for part in parts) in JOBS
        for n, part in enumerate(parts):
            golden = ADAPTER.golden(part.job, config)["o"]
            where = f"launch {number}, part {n}: {part.job.workload}"
            np.testing.assert_array_equal(part.outputs(config, simulated.buffers)["o"], golden, err_msg=where)
        assert call.counters["cycles_total"] == sum(
            call.counters[name] for name in counter_names(CAUSES) if name != "cycles_total"
        )
