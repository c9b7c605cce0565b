"""Memories that answer with an error in the middle of a launch, at every port and either way of it."""

import pytest

from hw.board import load_board
from hw.lib.arguments import STATUS_BUS
from hw.oram.kernel.arguments import Fault
from sim.build.simulator import OPTIMIZE_VARIABLE, SimulationError
from sim.run.adapter import FaultyLaunch, Refusal
from sim.run.run import Target, compare, find_adapter, run

#: Launches in which every port moves something, and some of it steers the engine; long ones in the soak.
LAUNCHES = [
    ("attention", "decode_first"),
    ("conv", "random_1"),
    ("scheduler", "default_u55c_fast_1"),
    ("network", "default_fast_2"),
    pytest.param("attention", "decode_mixed", marks=pytest.mark.soak),
    pytest.param("attention", "paged_bitmap", marks=pytest.mark.soak),
    pytest.param("conv", "blocks_model", marks=pytest.mark.soak),
]


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setenv(OPTIMIZE_VARIABLE, "-O0")  # as the regression does


def results(call):
    """Return what a call did, whenever it did it; the log of convolution says when."""
    counted = {name: count for name, count in call.counters.items() if not name.startswith("cycles_")}
    return counted, {name: digest for name, digest in call.digests.items() if name != "log"}


class Calls:
    """A launch of an engine's regression, called again and again without a reset."""

    def __init__(self, engine, name, directory):
        self.case = next(case for case in find_adapter(engine).cases() if case.name == name)
        self.engine, self.directory, self.board = engine, directory, load_board(self.case.board)
        self.prepared = Target.of(engine, self.case.config, self.board).prepare(self.case.tensors)
        self.launch = find_adapter(engine).launch(self.prepared.job, self.case.config, self.board)
        self.done = self.make(1)
        #: Bursts of each port and way.
        self.bursts = {
            (port, write): counted["write_bursts" if write else "read_bursts"]
            for memory in self.done.answer.memories.values()
            for port, counted in zip(self.ports(memory), memory["ports"], strict=True)
            for write in (False, True)
        }

    def ports(self, memory):
        """Return the names of a memory's ports: of the host's, or all others."""
        host = self.board.host is not None and memory is self.done.answer.memories.get(self.board.host.name)
        return [port for port in self.prepared.target.table.ports if port.startswith("host") == host]

    def make(self, count, refusals=(), **changes):
        launch = FaultyLaunch.of(self.launch, then=(changes,) * (count - 1), refusals=refusals)
        return self.prepared.simulate(launch, directory=self.directory, memory_mode="fast", seed=0)


@pytest.mark.sample(2)
@pytest.mark.parametrize(("engine", "name"), LAUNCHES)
def test_an_error_ends_the_call_and_leaves_nothing_to_the_next(engine, name, tmp_path):
    calls = Calls(engine, name, tmp_path)
    places = [place for place, count in calls.bursts.items() if count]
    assert {port for port, _ in places} == set(calls.prepared.target.table.ports)
    refusals = tuple(
        Refusal(port=port, write=write, skip=calls.bursts[port, write] // 2, call=2 * n + 1)
        for n, (port, write) in enumerate(places)
    )
    done = calls.make(1 + 2 * len(places), refusals)
    first, *others = done.answer.calls
    assert first.counters == calls.done.answer.calls[0].counters
    assert first.counters["status"] == 0
    for place, wrong, right in zip(places, others[::2], others[1::2], strict=True):
        assert wrong.counters["status"] == STATUS_BUS, place
        assert not any(count for name, count in wrong.counters.items() if name != "status")
        assert results(right) == results(first), place
        # The pace of the memory is no whole number of cycles a beat.
        cycles = first.counters["cycles_total"]
        assert right.counters["cycles_total"] == pytest.approx(cycles, abs=16), place
    golden = calls.prepared.target.adapter.golden(calls.prepared.job, calls.case.config)
    integers = calls.prepared.target.adapter.outputs(calls.prepared.job, calls.case.config, done.buffers)
    assert not compare(integers, golden)


def test_simulation_says_so_in_a_line(tmp_path, monkeypatch):
    adapter = find_adapter("scheduler")
    case = next(iter(adapter.cases()))
    launch = adapter.launch

    def refused(*args):
        return FaultyLaunch.of(launch(*args), refusals=(Refusal(port="gmem0", write=True, skip=0),))

    monkeypatch.setattr(adapter, "launch", refused)
    with pytest.raises(
        SimulationError, match=r"^A memory answered with an error .* status 32, and no results$"
    ):
        run("scheduler", case.config, load_board(case.board), case.tensors, directory=tmp_path)


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_the_map_answers_no_more(tmp_path, every):
    """After an error at any port; it must not be reset, as its keys and nonces serve once."""
    name = next(iter(find_adapter("oram").cases())).name
    calls = Calls("oram", name, tmp_path)
    places = [place for place, count in calls.bursts.items() if count]
    assert {port for port, _ in places} == set(calls.prepared.target.table.ports)
    for port, write in places if every else [("gmem0", False)]:
        refusal = Refusal(port=port, write=write, skip=calls.bursts[port, write] // 2)
        wrong, later = calls.make(2, (refusal,), initialize=0).answer.calls
        assert wrong.counters["status"] & Fault.BUS, (port, write)
        assert later.counters["status"] == wrong.counters["status"] | Fault.EMPTY
        assert later.counters["host1_write_bytes"] == 0
