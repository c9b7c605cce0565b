"""Random networks on one kernel, launch after launch without a reset, to the last bit."""

import numpy as np
import pytest

from hw.board import load_board
from hw.errors import InputError
from hw.network.graph.onnx_reader import read_network
from sim.build.simulator import OPTIMIZE_VARIABLE
from sim.engines.network.adapter import network_job
from sim.engines.network.cases import SMALL
from tests.support.networks.launches import run
from tests.support.networks.plans import QUICK
from tests.support.networks.quantized import quantized, random_network

#: Networks of `make test`, and of each run of the soak; runs of the soak.
IN_TEST, IN_SOAK, RUNS = 15, 20, 15
#: Images have fewer rows and columns.  Every second plan has so few bytes that tensors are spilled or cut.
SIDE_IN_TEST, SIDE_IN_SOAK = 10, 20
BYTES_IN_TEST, BYTES_IN_SOAK = 6144, 12288
_MEMORIES = ("jitter", "model", "fast")


def drawn(first, count, *, side, space):
    """Return jobs of random networks; every second plan has ``space`` bytes."""
    for seed in range(first, first + count):
        network = read_network(quantized(random_network(seed, side=side)))
        rng = np.random.default_rng(seed)
        inputs = {
            name: rng.integers(-128, 128, network.values[name].shape).astype(np.int8)
            for name in network.inputs
        }
        # In a few bytes some networks have no plan: they get all.
        try:
            few = space if seed % 2 else None
            yield network_job(network, inputs, SMALL, scratchpad_bytes=few, techniques=QUICK)
        except InputError:
            yield network_job(network, inputs, SMALL, techniques=QUICK)


@pytest.mark.parametrize(
    "number", [0, *(pytest.param(n, marks=pytest.mark.soak) for n in range(1, RUNS + 1))]
)
def test_launches_without_a_reset_are_exact(number, tmp_path, monkeypatch):
    monkeypatch.setenv(OPTIMIZE_VARIABLE, "-O0")  # launches are short, in the soak too
    if number:
        first = IN_TEST + IN_SOAK * (number - 1)
        jobs = list(drawn(first, IN_SOAK, side=SIDE_IN_SOAK, space=BYTES_IN_SOAK))
    else:
        jobs = list(drawn(0, IN_TEST, side=SIDE_IN_TEST, space=BYTES_IN_TEST))
    memory = _MEMORIES[number % len(_MEMORIES)]
    seen = run(jobs, SMALL, load_board("u55c"), tmp_path, seed=number, memory=memory)
    for job, launch in zip(jobs, seen, strict=True):
        assert not launch.mismatches, (job.network.name, launch.mismatches)
        causes = [value for key, value in launch.counters.items() if key.startswith("cycles_")]
        assert sum(causes) == 2 * launch.counters["cycles_total"]  # with their sum
        assert launch.counters["steps_total"] == len(job.program.steps)
