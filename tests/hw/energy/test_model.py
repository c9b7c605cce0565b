"""Energy: sources add up, more of anything costs more, and every engine has an activity."""

import dataclasses

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from hw.board import board_names, load_board
from hw.board.resources import RamWords, Resources
from hw.energy import Activity, MemoryActivity, Span, energy
from hw.energy.coefficients import load_coefficients
from hw.energy.launch import measured_activity, memory_activity, predicted_activity, row_bytes
from hw.energy.model import SOURCES
from hw.errors import InputError
from hw.registry import ENGINES, find_engine
from sim.run.run import find_adapter

KERNEL = Resources(lut=100_000, ff=120_000, dsp=1_000, bram36=200, uram=40)
BUSY = Activity(
    clock_mhz=300.0,
    cycles=10_000,
    busy_cycles=8_000,
    multiply_cycles=6_000,
    kernel=KERNEL,
    words=RamWords(bram36=150, uram=10),
    device_luts=1_000_000,
    memories=(
        MemoryActivity(name="hbm", kind="hbm2", channels=32, row_bytes=1024, read_bytes=1e6, write_bytes=5e5),
        MemoryActivity(name="host", kind="host", channels=1, row_bytes=0, read_bytes=2e5, write_bytes=1e5),
    ),
)
counts = st.integers(0, 10**7)


def test_sources_add_up():
    found = energy(BUSY)
    assert tuple(found.picojoules) == SOURCES
    assert all(span.value > 0 for span in found.picojoules.values())
    for end in ("low", "value", "high"):
        parts = sum(getattr(span, end) for span in found.picojoules.values())
        assert getattr(found.total, end) == pytest.approx(parts)
    assert found.watts.value == pytest.approx(found.total.value * 1e-12 / (10_000 / 300e6))


def test_each_source_by_hand():
    """With the formulas written out, from the coefficients as the file has them."""
    known, found = load_coefficients(), energy(BUSY).picojoules
    scale, toggles, seconds = known.scale.value, known.toggles.value, 10_000 / 300e6
    data = {cell: known.part(cell, "data").value for cell in ("lut", "ff", "dsp", "bram36", "uram")}
    access = {cell: known.part(cell, "access").value for cell in ("bram36", "uram")}
    clock = {cell: known.part(cell, "clock").value for cell in ("ff", "dsp", "bram36", "uram")}
    hbm, host = known.memories["hbm2"], known.memories["host"]
    expected = {
        "macs": scale * 6_000 * 1_000 * data["dsp"] * toggles,
        "logic": scale * 8_000 * (1e5 * data["lut"] + 1.2e5 * data["ff"]) * toggles,
        "block_ram": scale * 8_000 * 150 * (access["bram36"] + data["bram36"] * toggles),
        "ultra_ram": scale * 8_000 * 10 * (access["uram"] + data["uram"] * toggles),
        "memory_activate": 1.5e6 / 1024 * hbm["activate"].value,
        "memory_read": 1e6 * hbm["read"].value,
        "memory_write": 5e5 * hbm["write"].value,
        "memory_standby": 32 * seconds * 1e12 * hbm["standby"].value,
        "host_link": 2e5 * host["read"].value + 1e5 * host["write"].value,
        "clock": scale * 10_000 * sum(dict(KERNEL.items())[cell] * clock[cell] for cell in clock),
        "leakage": seconds * 1e12 * known.leakage.value,
    }
    for name, value in expected.items():
        assert found[name].value == pytest.approx(value), name


def test_range_is_at_most_twice_as_wide():
    total = energy(BUSY).total
    assert total.low < total.value < total.high <= 2 * total.low


def test_energy_scales_with_the_launch():
    memories = tuple(
        dataclasses.replace(memory, read_bytes=3 * memory.read_bytes, write_bytes=3 * memory.write_bytes)
        for memory in BUSY.memories
    )
    thrice = dataclasses.replace(
        BUSY, cycles=30_000, busy_cycles=24_000, multiply_cycles=18_000, memories=memories
    )
    assert energy(thrice).total.value == pytest.approx(3 * energy(BUSY).total.value)
    assert energy(thrice).watts.value == pytest.approx(energy(BUSY).watts.value)


def test_a_launch_without_a_cycle_has_no_energy():
    found = energy(dataclasses.replace(BUSY, cycles=0, busy_cycles=0, multiply_cycles=0, memories=()))
    assert found.total == Span()
    assert found.watts == Span()


@st.composite
def activities(draw):
    cycles = draw(counts)
    return Activity(
        clock_mhz=draw(st.floats(50, 600)),
        cycles=cycles,
        busy_cycles=draw(st.integers(0, cycles)),
        multiply_cycles=draw(st.integers(0, cycles)),
        kernel=Resources(**{name: draw(counts) for name in ("lut", "ff", "dsp", "bram36", "uram")}),
        words=RamWords(bram36=draw(counts), uram=draw(counts)),
        device_luts=draw(counts),
        memories=tuple(
            MemoryActivity(
                name=kind, kind=kind, channels=draw(st.integers(0, 64)), row_bytes=row,
                read_bytes=draw(counts), write_bytes=draw(counts),
                activates=draw(st.none() | counts),
            )
            for kind, row in (("hbm2", 1024), ("ddr4", 8192), ("lpddr4", 4096), ("host", 0))
        ),
    )  # fmt: skip


@given(activities(), st.data())
@settings(max_examples=30)
def test_more_of_anything_never_costs_less(activity, data):
    """One count grows; no source and no end of a range shrinks."""
    name = data.draw(st.sampled_from(("cycles", "busy_cycles", "device_luts", "lut", "uram", "read_bytes")))
    if name in ("lut", "uram"):
        counted = dict(activity.kernel.items())
        more = dataclasses.replace(activity, kernel=Resources(**counted | {name: counted[name] + 7}))
    elif name == "read_bytes":
        first = dataclasses.replace(activity.memories[0], read_bytes=activity.memories[0].read_bytes + 7)
        more = dataclasses.replace(activity, memories=(first, *activity.memories[1:]))
    elif name == "busy_cycles":
        more = dataclasses.replace(activity, busy_cycles=activity.cycles)
    else:
        more = dataclasses.replace(activity, **{name: getattr(activity, name) + 7})
    before, after = energy(activity), energy(more)
    for source in SOURCES:
        for end in ("low", "value", "high"):
            less, enough = (getattr(found.picojoules[source], end) for found in (before, after))
            assert enough >= less * (1 - 1e-12), source


@pytest.mark.parametrize(
    ("field", "value"), [("busy_cycles", 10_001), ("multiply_cycles", -1), ("cycles", -1), ("clock_mhz", -1)]
)
def test_refuses_an_activity_that_cannot_be(field, value):
    with pytest.raises(InputError, match=f"{field} must be "):
        dataclasses.replace(BUSY, **{field: value})


@pytest.mark.parametrize("field", ["read_bytes", "write_bytes", "activates", "channels"])
def test_refuses_a_memory_that_cannot_be(field):
    with pytest.raises(InputError, match=f"{field} must be at least 0, not -1"):
        dataclasses.replace(BUSY.memories[0], **{field: -1})


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", sorted(ENGINES))
@pytest.mark.parametrize("board_name", board_names())
def test_every_default_says_which_of_its_rams_work(name, board_name):
    engine, board = find_engine(name), load_board(board_name)
    if name == "oram" and board.host is None:  # it has no default without a link to a host
        with pytest.raises(InputError, match="board"):
            engine.default_config(board)
        return
    config = engine.default_config(board)
    need, words = engine.resources(config, board), engine.ram_words(config, board)
    assert 0 < words.bram36 <= need.bram36
    assert 0 <= words.uram <= need.uram
    assert bool(words.uram) == bool(need.uram)


@pytest.mark.parametrize("name", sorted(ENGINES))
def test_every_engine_has_an_activity_of_its_prediction(name):
    engine, board, adapter = find_engine(name), load_board("u55c"), find_adapter(name)
    case = next(case for case in adapter.cases() if case.board == "u55c")
    config, tensors = case.config, case.tensors
    prediction = engine.predict(adapter.workload(adapter.control_job(tensors, config), config), config, board)
    activity = predicted_activity(engine, config, board, prediction)
    moved = {memory.kind: memory.read_bytes + memory.write_bytes for memory in activity.memories}
    assert moved == {
        "hbm2": 0 if name == "oram" else prediction.moved_bytes,
        "host": prediction.moved_bytes if name == "oram" else 0,
    }
    assert activity.cycles == prediction.cycles_total
    assert (activity.multiply_cycles > 0) == (prediction.useful_macs > 0)
    assert energy(activity).total.value > 0


def test_counts_replace_predictions():
    counted = measured_activity(
        BUSY,
        cycles=12_000,
        busy_cycles=9_000,
        moved={"hbm": {"read_bytes": 64.0, "write_bytes": 0.0, "activates": 1.0}},
    )
    hbm, host = counted.memories
    assert (hbm.read_bytes, hbm.write_bytes, hbm.rows) == (64, 0, 1)
    assert (host.read_bytes, host.write_bytes) == (0, 0)
    assert (counted.cycles, counted.busy_cycles, counted.kernel) == (12_000, 9_000, KERNEL)


def test_rows_of_memories():
    board = load_board("u280")
    assert [row_bytes(memory) for memory in board.memories] == [1024, 8192, 0]
    assert memory_activity(board.memory).rows == 0
