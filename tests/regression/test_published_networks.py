"""Published networks on the default kernel of the U55C: every byte, the prediction, cycles, bytes."""

import numpy as np
import pytest

from hw.board import load_board
from hw.network.driver.tensors import stored_inputs
from hw.network.engine import NetworkEngine
from hw.network.graph.onnx_reader import read_network
from hw.network.predict import predict
from hw.network.program.lower import program_of
from sim.engines.network import nsfw
from sim.engines.network.compiling import compile_on
from sim.engines.network.job import NetworkJob
from tests.support.networks.integer_models import integer_model
from tests.support.networks.launches import run

#: For each network: most cycles, and most bytes of compulsory.
MOST = {
    "open_nsfw": (340_000, 1.25),
    "resnet18": (500_000, 1.25),
    "resnet50": (1_080_000, 1.25),
    "squeezenet": (150_000, 1.45),
    "mobilenet_v2": (515_000, 2.95),
    "vgg16": (4_400_000, 1.25),
}
#: Most error of the predicted cycles.
MOST_ERROR = 0.02


def job_of(name, config, board):
    """Return a launch of a network: open_nsfw on a photograph, others on drawn integers."""
    if name == "open_nsfw":
        network = read_network(nsfw.quantized_model())
        inputs = stored_inputs(network, {nsfw.INPUT: nsfw.network_input("coffee")})
    else:
        network = read_network(integer_model(name))
        rng = np.random.default_rng(0)
        inputs = {
            each: rng.integers(-128, 128, network.values[each].shape).astype(np.int8)
            for each in network.inputs
        }
    program = program_of(compile_on(network, config, board))
    return NetworkJob(network=network, program=program, inputs=inputs)


@pytest.mark.soak
@pytest.mark.parametrize("name", MOST)
def test_networks_are_exact_and_as_fast_as_predicted(name, tmp_path):
    board = load_board("u55c")
    config = NetworkEngine().default_config(board)
    job = job_of(name, config, board)
    (launch,) = run([job], config, board, tmp_path, seed=0, memory="model")
    assert not launch.mismatches
    cycles, ratio = MOST[name]
    predicted = predict(job.program, config, board)
    assert launch.counters["cycles_total"] <= cycles
    assert predicted.cycles_total == pytest.approx(launch.counters["cycles_total"], rel=MOST_ERROR)
    moved = sum(count for key, count in launch.counters.items() if key.endswith("_bytes"))
    assert moved == predicted.moved_bytes <= ratio * predicted.compulsory_bytes
