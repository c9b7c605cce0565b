import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hw.scheduler.check.check import check
from hw.scheduler.graph.graph import Access, Graph, Operator, Tensor, TensorKind
from hw.scheduler.plan.documents import plan_to_json
from hw.scheduler.plan.plan import Direction
from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.address.blocks import AddressBlock
from hw.scheduler.planner.residency.stays import Stay, StreamUse
from hw.scheduler.planner.transfers.hiding import Hiding, Move, simulate
from hw.scheduler.planner.transfers.transfers import (
    latest_moves,
    least_step_cycles,
    make_transfers,
    reading_order,
)
from tests.support.planner.planned import (
    MACS_PER_CYCLE,
    plan_of,
    random_graph,
    random_residency,
    residency_of,
)


def problems_of(plan):
    return check(json.loads(plan_to_json(plan)))


def moves_of(plan):
    return [
        Move(
            words=transfer.size_bytes // plan.word_bytes,
            start=transfer.start_step,
            deadline=transfer.deadline_step,
            reads=transfer.direction is Direction.READ,
            streams=transfer.stream is not None,
            block=0,
        )
        for transfer in plan.transfers
    ]


def chain(count, words=64, macs=100_000):
    """A chain in which the last operator needs the first tensor again."""
    names = [f"t{number}" for number in range(count)]
    kinds = [TensorKind.INPUT, *[TensorKind.ACTIVATION] * (count - 2), TensorKind.OUTPUT]
    tensors = tuple(
        Tensor(name=name, size_bytes=32 * words, kind=kind) for name, kind in zip(names, kinds, strict=True)
    )
    operators = tuple(
        Operator(
            name=f"o{number}", kind="conv", outputs=(names[number],), macs=macs,
            inputs=(names[number - 1], "t1") if 3 < number == count - 1 else (names[number - 1],),
        )
        for number in range(1, count)
    )  # fmt: skip
    return Problem(graph=Graph(name="chain", tensors=tensors, operators=operators))


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 10_000), kept=st.floats(0, 1), streamed=st.floats(0, 1))
def test_every_plan_is_valid_whether_transfers_hide_or_not(seed, kept, streamed):
    problem = Problem(graph=random_graph(seed))
    order = tuple(range(problem.operator_count))
    residency = random_residency(problem, order, seed, kept=kept, streamed=streamed)
    cycles = least_step_cycles(problem, order, MACS_PER_CYCLE)
    plain = plan_of(problem, order, residency)
    assert problems_of(plain) == []
    assert plain.totals.avoidable_bytes == residency.avoidable_words * 32
    assert plain.totals.peak_bytes == residency.peak_words * 32
    hidden = plan_of(problem, order, residency, step_cycles=cycles)
    assert problems_of(hidden) == []
    assert hidden.totals == plain.totals
    timings = [simulate(moves_of(plan), cycles) for plan in (hidden, plain)]
    assert sum(cycles) <= timings[0].total <= timings[1].total
    assert timings[1] == simulate(latest_moves(problem, order, residency), cycles)
    assert [episode.address for episode in hidden.episodes] == [episode.address for episode in plain.episodes]


def test_a_fetch_starts_early_and_a_spill_ends_late_where_the_region_is_free():
    problem = chain(7)
    order = range(6)
    # t1 leaves the chip after its first use and returns for the last step; its address is free meanwhile.
    stays = [Stay(tensor=0, first_step=0, last_step=0), Stay(tensor=1, first_step=0, last_step=1)]
    stays += [Stay(tensor=number, first_step=number - 1, last_step=number) for number in (2, 3, 4, 5)]
    stays += [Stay(tensor=1, first_step=5, last_step=5), Stay(tensor=6, first_step=5, last_step=5)]
    residency = residency_of(problem, order, stays)
    addresses = [128, 0, 64, 128, 64, 128, 0, 64 * 4]
    lazy = make_transfers(problem, order, residency, addresses)
    cycles = [500] * 6
    eager = make_transfers(problem, order, residency, addresses, step_cycles=cycles)

    def steps(moved, tensor, direction):
        return [
            (transfer.start_step, transfer.deadline_step)
            for transfer in moved.transfers
            if (transfer.tensor, transfer.direction) == (tensor, direction)
        ]

    assert steps(lazy, "t1", Direction.WRITE) == [(0, 2)]
    assert steps(lazy, "t1", Direction.READ) == [(5, 5)]
    assert steps(eager, "t1", Direction.READ) == [(2, 5)]  # as soon as its place is free
    assert steps(eager, "t1", Direction.WRITE) == [(0, 2)]  # no step waits for it
    assert steps(eager, "t0", Direction.READ) == [(0, 0)]
    # Steps shorter than the transfer, and no address for the fetch before step 5: the spill takes all steps.
    addresses[6] = 64
    quick = make_transfers(problem, order, residency, addresses, step_cycles=[70] * 6)
    assert steps(quick, "t1", Direction.READ) == [(5, 5)]
    assert steps(quick, "t1", Direction.WRITE) == [(0, 5)]
    assert [(e.first_step, e.last_step) for e in quick.episodes if e.tensor == "t1"] == [(0, 4), (5, 5)]


@pytest.mark.parametrize(
    ("address", "streams_out", "start"),
    [
        pytest.param(512, False, 2, id="free all the time: as early as the spill allows"),
        pytest.param(256, False, 5, id="another tensor lies there until step 4"),
        pytest.param(512, True, 5, id="with a window instead of the output the peak has no room for it"),
    ],
)
def test_a_full_region_or_a_full_scratchpad_hides_nothing(address, streams_out, start):
    problem = chain(7, words=256)
    stays = [Stay(tensor=0, first_step=0, last_step=0)]
    stays += [Stay(tensor=number, first_step=number - 1, last_step=number) for number in range(1, 6)]
    stays.append(Stay(tensor=1, first_step=5, last_step=5))
    if streams_out:
        streams = [StreamUse(tensor=6, step=5, direction=Direction.WRITE)]
    else:
        stays, streams = [*stays, Stay(tensor=6, first_step=5, last_step=5)], []
    residency = residency_of(problem, range(6), stays, streams)
    addresses = [256, 0, 256, 0, 256, 0, address, 256]
    moved = make_transfers(problem, range(6), residency, addresses, step_cycles=[10] * 6)
    reads = [t.start_step for t in moved.transfers if t.tensor == "t1" and t.direction is Direction.READ]
    assert reads == [start]


@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_hiding_is_never_worse_and_close_to_the_best_of_all_choices(data):
    """Two or three fetches into a few steps: every combination of starts is tried."""
    steps = data.draw(st.integers(3, 5))
    cycles = data.draw(st.lists(st.integers(0, 300), min_size=steps, max_size=steps))
    count = data.draw(st.integers(1, 3))
    moves, blocks = [], [AddressBlock(first=0, last=steps - 1, size=500)]
    for index in range(count):
        use = data.draw(st.integers(0, steps - 1))
        words = data.draw(st.integers(1, 200))
        moves.append(Move(words=words, start=use, deadline=use, reads=True, streams=False, block=index + 1))
        blocks.append(AddressBlock(first=use, last=use, size=words))
    # A block of its own sets the peak.
    blocks.append(AddressBlock(first=steps - 1, last=steps - 1, size=600))
    addresses = [10_000, *(1000 * index for index in range(count)), 5000]
    owners = range(count + 2)
    latency_cycles = 20
    found = simulate(
        Hiding(moves, blocks, addresses, owners, cycles, latency_cycles).run(), cycles, latency_cycles
    ).total
    best = simulate(moves, cycles, latency_cycles).total
    assert found <= best

    def starts(index):
        if index == count:
            yield []
            return
        for first in range(moves[index].deadline + 1):
            for rest in starts(index + 1):
                yield [first, *rest]

    for chosen in starts(0):
        tried = [
            Move(words=m.words, start=s, deadline=m.deadline, reads=True, streams=False, block=m.block)
            for m, s in zip(moves, chosen, strict=True)
        ]
        best = min(best, simulate(tried, cycles, latency_cycles).total)
    assert found <= best + count * (latency_cycles + max(move.words for move in moves))


def test_the_model_of_the_queues():
    latency_cycles = 10
    read = Move(words=50, start=0, deadline=0, reads=True, streams=False, block=0)
    ahead = Move(words=30, start=0, deadline=1, reads=True, streams=False, block=1)
    write = Move(words=40, start=0, deadline=1, reads=False, streams=False, block=2)
    timing = simulate([ahead, write, read], [100, 5], latency_cycles)
    assert timing.read_waits == (60, 0)
    # The write begins when step 0 is computed, 160, and delays slot 1 until its response.
    assert timing.write_waits == (0, 50)
    assert timing.total == 215
    stream = Move(words=300, start=1, deadline=2, reads=True, streams=True, block=3)
    assert simulate([read, stream], [100, 5], latency_cycles).total == 160 + 10 + 300
    out = Move(words=300, start=1, deadline=2, reads=False, streams=True, block=3)
    assert simulate([read, out], [100, 5], latency_cycles).total == 160 + 300 + 10


def test_streams_go_through_the_queue_as_operators_take_them():
    first = Operator(name="a", kind="k", inputs=("p", "q"), outputs=("m",))
    second = Operator(name="b", kind="k", inputs=("r", "m", "s"), outputs=("z",), accesses={"m": Access()})
    group = Operator(
        name="g",
        kind="group",
        inputs=("p", "q", "r", "s"),
        outputs=("z",),
        members=(first, second),
        inner=(Tensor(name="m", size_bytes=32, shape=(32,)),),
        fifo_bytes=32,
    )
    assert reading_order(first) == ("p", "q")
    assert reading_order(group) == ("r", "p", "q", "s")
    tensors = tuple(
        Tensor(name=name, size_bytes=9000, kind=TensorKind.INPUT) for name in ("p", "q", "r", "s")
    )
    out = Tensor(name="z", size_bytes=9000, kind=TensorKind.OUTPUT)
    problem = Problem(graph=Graph(name="g", tensors=(*tensors, out), operators=(group,)))
    streams = [StreamUse(tensor=index, step=0, direction=Direction.READ) for index in (0, 1, 2, 3)]
    residency = residency_of(problem, (0,), [Stay(tensor=4, first_step=0, last_step=0)], streams)
    plan = plan_of(problem, (0,), residency)
    assert [t.tensor for t in plan.transfers] == ["r", "p", "q", "s", "z"]
    assert problems_of(plan) == []


def test_homes_are_only_for_what_is_ever_off_chip():
    problem = chain(4)
    stays = [Stay(tensor=0, first_step=0, last_step=0), Stay(tensor=1, first_step=0, last_step=1)]
    stays += [Stay(tensor=2, first_step=1, last_step=2), Stay(tensor=3, first_step=2, last_step=2)]
    moved = make_transfers(problem, range(3), residency_of(problem, range(3), stays), [0, 64, 128, 192])
    assert moved.homes == {"t0": 0, "t3": 64 * 32}
    assert [(t.tensor, t.direction, t.dram_address) for t in moved.transfers] == [
        ("t0", Direction.READ, 0),
        ("t3", Direction.WRITE, 64 * 32),
    ]
