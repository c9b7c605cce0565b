"""Predictions: sums, the roofline, and what is refused."""

import dataclasses

import pytest

from hw.errors import InputError
from hw.prediction import Prediction

PREDICTION = Prediction(
    cycles={"cycles_busy": 80, "cycles_stall_key": 15, "cycles_idle": 5},
    read_bytes={"keys": 300, "values": 200},
    write_bytes={"results": 100},
    useful_macs=1500,
    mac_slots_per_cycle=20,
    compulsory_bytes=550,
    memory_bytes_per_cycle=8.0,
)


def test_parts_add_up():
    assert PREDICTION.cycles_total == 100
    assert PREDICTION.mac_slots == 2000
    assert (PREDICTION.read_bytes_total, PREDICTION.write_bytes_total, PREDICTION.moved_bytes) == (
        500,
        100,
        600,
    )


def test_the_larger_bound_binds():
    assert (PREDICTION.compute_bound_cycles, PREDICTION.memory_bound_cycles) == (75, 69)
    assert PREDICTION.bound_cycles == 75
    assert dataclasses.replace(PREDICTION, memory_bytes_per_cycle=5.0).bound_cycles == 110
    assert dataclasses.replace(PREDICTION, least_compute_cycles=90).bound_cycles == 90
    without = dataclasses.replace(PREDICTION, useful_macs=0, mac_slots_per_cycle=0)
    assert (without.compute_bound_cycles, without.bound_cycles) == (0, 69)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"cycles": {"cycles_total": 3}}, "cause of cycles must be cycles_busy"),
        ({"cycles": {"cycles_busy": -1}}, "cycles_busy must be at least 0"),
        ({"compulsory_bytes": 0}, "compulsory_bytes must be greater than 0"),
        ({"memory_bytes_per_cycle": 0.0}, "memory_bytes_per_cycle must be greater than 0"),
    ],
)
def test_refuses_senseless_figures(changes, complaint):
    with pytest.raises(InputError, match=complaint):
        dataclasses.replace(PREDICTION, **changes)
