"""Sizes that do not suffice are refused by every door of the engine, with sizes that do."""

import re
from dataclasses import replace

import pytest

from hw.board import load_board
from hw.errors import InputError
from hw.oram.config import OramConfig
from hw.oram.driver.workload import OramWorkload
from hw.oram.engine import OramEngine
from hw.oram.sizing.failures import check_overflow, failures
from tests.support.command_line import refused

ENGINE, BOARD = OramEngine(), load_board("u55c")


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("fields", "sizes"),
    [
        (
            {"log_n": 22, "list_slots": 14},
            "0 or at least 15 with overflow_entries 128 or 14 with overflow_entries of at least 256, so",
        ),
        ({"log_n": 24, "list_slots": 14}, "0 or at least 16 with overflow_entries 128, so"),
        ({"log_n": 24, "list_slots": 14, "overflow_entries": 4}, "larger with more overflow_entries, so"),
        (
            {"log_n": 30, "list_slots": 22, "overflow_entries": 4},
            "22 with overflow_entries of at least 64, so",
        ),
    ],
)
def test_refusals_name_sizes_that_suffice(fields, sizes):
    config = OramConfig(**fields)
    message = f"list_slots must be {sizes} that .* less than 2\\^-40 .*, not {config.record_slots}$"
    with pytest.raises(InputError, match=message) as refusal:
        check_overflow(config)
    for field, values in (
        ("list_slots", re.findall(r"(\d+) with overflow_entries 128", str(refusal.value))),
        ("overflow_entries", re.findall(r"of at least (\d+)", str(refusal.value))),
    ):
        for value in map(int, values):
            check_overflow(replace(config, **{field: value}))


def test_every_door_refuses():
    config = OramConfig(log_n=24, list_slots=14)
    for use in (
        lambda: ENGINE.arguments(config, BOARD),
        lambda: ENGINE.placement(config, BOARD),
        lambda: ENGINE.predict(OramWorkload(operations=1), config, BOARD),
    ):
        with pytest.raises(InputError, match="list_slots must be 0 or at least 16"):
            use()


def test_the_command_line_says_it_in_a_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.yaml").write_text("log_n: 24\nlist_slots: 14\n")
    assert "list_slots must be 0 or at least 16" in refused(
        "verilog", "--engine", "oram", "--config", "c.yaml"
    )


def test_no_list_suffices_with_too_few_entries():
    with pytest.raises(InputError, match="overflow_entries must be more, whatever list_slots is, not 16"):
        ENGINE.arguments(OramConfig(overflow_entries=16), BOARD)


@pytest.mark.parametrize(("log_n", "ports"), [(24, 8), (25, 8), (26, 16)])
def test_large_maps_are_taken(log_n, ports):
    config = OramConfig(log_n=log_n, record_ports=ports)
    assert "records0" in str(ENGINE.arguments(config, BOARD))
    found = ENGINE.predict(OramWorkload(operations=1000, initialize=False), config, BOARD)
    assert (found.details["record_slots"], config.interval) == (18, 5)
    assert failures(config) == {name: found.details[name] for name in failures(config)}
    assert found.details["overflow_failure_log2"] < -70
    assert found.details["insertion_failure_log2"] < -100
