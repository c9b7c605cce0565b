"""The network engine's simulation side: inputs refused, buffers of a launch, bytes compared."""

from dataclasses import replace

import numpy as np
import pytest

from hw.board import load_board
from hw.errors import InputError
from hw.network.program.program import Core
from sim.engines.network.adapter import ADAPTER
from sim.engines.network.cases import SMALL
from sim.run.adapter import UNWRITTEN

BOARD = load_board("u55c")


def job(**tensors):
    return ADAPTER.job({name: np.asarray(value) for name, value in tensors.items()}, SMALL)


def test_the_default_network_has_work_for_both_units_and_two_pixels_a_cycle():
    steps = job().program.steps
    assert {step.core for step in steps} == {Core.MATRIX, Core.VECTOR}
    matrix = [step.command for step in steps if step.core is Core.MATRIX]
    assert any(command.halves for command in matrix)
    assert any(command.residual for command in matrix)


def test_its_results_are_spread():
    for seed in range(3):
        golden = ADAPTER.golden(job(seed=seed), SMALL)
        assert np.unique(golden["gated"]).size > 100


def test_a_launch_has_a_buffer_for_each_pointer():
    made = ADAPTER.launch(job(), SMALL, BOARD)
    assert [buffer.argument for buffer in made.buffers] == ["memory", "program", "weights_0", "weights_1"]
    assert [buffer.argument for buffer in made.buffers if buffer.output] == ["memory"]


def test_inputs_are_the_models_own_or_drawn():
    image = np.random.default_rng(0).normal(size=(1, 15, 13, 3))
    own, seeded = job(image=image), job(seed=1)
    assert own.inputs["image"].shape == (15, 13, 3)
    assert (job(image=image[0]).inputs["image"] == own.inputs["image"]).all()
    assert (job(seed=1).inputs["image"] == seeded.inputs["image"]).all()
    assert (job(seed=2).inputs["image"] != seeded.inputs["image"]).any()


@pytest.mark.parametrize(
    "tensors",
    [
        {"other": np.zeros((1, 15, 13, 3))},
        {"image": np.zeros((1, 13, 15, 3))},
        {"image": np.full((1, 15, 13, 3), np.nan)},
        {"image": np.zeros((1, 15, 13, 3)), "seed": 1},
        {"seed": -1},
        {"seed": 0.5},
    ],
)
def test_other_inputs_are_refused(tensors):
    with pytest.raises(InputError):
        job(**tensors)


def test_a_program_beyond_the_kernel_is_refused_before_the_launch():
    with pytest.raises(InputError, match="steps of the program"):
        ADAPTER.launch(job(), replace(SMALL, max_steps=1), BOARD)


def test_a_wrong_byte_anywhere_is_seen():
    made = job()
    golden, region = ADAPTER.golden(made, SMALL), made.region.copy()
    for home in made.program.outputs:
        stored = home.form.stored(golden[home.value.name])
        region[home.address : home.address + home.size_bytes] = stored.reshape(-1).view(np.uint8)
    assert all(
        (ADAPTER.outputs(made, SMALL, {"memory": region})[name] == golden[name]).all() for name in golden
    )
    for place, name in ((made.program.outputs[0].address, None), (made.program.inputs[0].address, UNWRITTEN)):
        wrong = region.copy()
        wrong[place] ^= 1
        found = ADAPTER.outputs(made, SMALL, {"memory": wrong})
        differ = {key for key in golden if (found[key] != golden[key]).any()}
        assert differ == {name or made.program.outputs[0].value.name}
