"""Other schedules of convolution: their formulas, the schedules played step by step, and as published."""

import math
from collections import deque
from dataclasses import replace

import numpy as np
import pytest

from hw.board import load_board
from hw.conv.core.layouts import Offsets
from hw.conv.driver.layer import ConvLayer
from sim.engines.conv.baselines.codenet import (
    CLOCK_MHZ,
    LEAD_ROWS,
    PUBLISHED,
    PipelineRun,
    codenet,
    runs,
    unit_cycles,
)
from sim.engines.conv.baselines.gather import gather, requested_pixels
from sim.engines.conv.baselines.memory import BaselinePort
from sim.engines.conv.baselines.work import BUFFERED_ROWS, Cost, Work, random_offset
from sim.engines.conv.compare.operations import ARRAY, OUTSIDE, operation, works

BOARD = load_board("u55c")
WORKS = {work.name: work for work in works()}


def layer(**given):
    sizes = {"channels": 4, "rows": 7, "columns": 9, "outputs": 4, "group": 4, "kernel": (3, 3)}
    return ConvLayer(**{**sizes, "pads": (1, 1, 1, 1), **given})


def counted(layer, offset):
    """Count requests and pixels one by one: of each row of neighbours, of each row of a plain kernel."""
    requests = pixels = 0
    for oy, ox in np.ndindex(*layer.out_size):
        rows = {}
        for k, (i, j) in enumerate(np.ndindex(*layer.kernel)):
            y = oy * layer.strides[0] - layer.pads[0] + i * layer.dilations[0]
            x = ox * layer.strides[1] - layer.pads[1] + j * layer.dilations[1]
            if offset is not None:
                y, x = y + offset.dy[k, oy, ox], x + offset.dx[k, oy, ox]
            for row in {math.floor(y), math.ceil(y)}:
                for column in {math.floor(x), math.ceil(x)}:
                    if 0 <= row < layer.rows and 0 <= column < layer.columns:
                        apart = offset is not None or layer.dilations[1] > 1
                        rows.setdefault((row, k if apart else i), set()).add(column)
        requests += len(rows)
        pixels += sum(map(len, rows.values()))
    return requests, pixels


@pytest.mark.parametrize(
    ("given", "bits"),
    [
        ({}, 0),
        ({"strides": (2, 2), "pads": (0, 2, 1, 0)}, 0),
        ({"dilations": (1, 2), "pads": (2, 2, 2, 2), "kernel": (2, 3)}, 0),
        ({"offsets": Offsets.FREE}, 2),
        ({"offsets": Offsets.FREE, "bound": 3, "strides": (2, 1), "kernel": (3, 2)}, 1),
        ({"offsets": Offsets.SQUARE, "bound": 2}, 3),
    ],
)
def test_gathered_pixels_are_those_counted_one_by_one(given, bits):
    shape = layer(**given)
    offset = random_offset(shape, bits, np.random.default_rng(7))
    found = requested_pixels(shape, offset)
    assert (len(found), found.sum()) == counted(shape, offset)


def played_read(port, lengths):
    """Play requests in order: an address a cycle, up to the most outstanding requests, data in order."""
    address, free, last, under_way = 0, 0.0, 0.0, deque()
    for length in lengths:
        if len(under_way) == port.outstanding:
            address = max(address, math.ceil(under_way.popleft()))
        free = max(free, address + port.read_latency)
        free += length * port.beat_cycles
        under_way.append(free)
        address, last = address + 1, free
    return last


@pytest.mark.parametrize("outstanding", [1, 4, 64])
@pytest.mark.parametrize("length", [1, 4, 16])
@pytest.mark.parametrize("bandwidth", [64.0, 20.0])
def test_reads_take_as_long_as_played(outstanding, length, bandwidth):
    port = BaselinePort(
        beat_bytes=32,
        bytes_per_cycle=bandwidth,
        read_latency=54,
        write_latency=30,
        outstanding=outstanding,
    )
    count = 500
    found = port.read_cycles(count, count * length)
    assert found == pytest.approx(played_read(port, [length] * count), rel=0.02)
    assert port.shared_cycles(100, 50) == pytest.approx(150 * 32 / bandwidth)


def test_gathering_everything_takes_memory_s_time():
    """Offsets without a fraction inside the map: nine reads of a pixel for each result."""
    shape = layer(channels=256, outputs=256, group=256, rows=32, columns=32, pads=(0, 0, 0, 0))
    cost = gather(Work(name="", layers=(shape,)), ARRAY, BOARD)
    assert cost.moved_bytes == 30 * 30 * 9 * 256 + 256 * 9 // 2 + 30 * 30 * 256
    # Nine cycles for each of four words a pixel; a request of three pixels is six beats of each port.
    busy = 30 * 30 * 4 * 9
    assert busy + 84 <= cost.cycles <= busy + 150
    assert cost.utilization == pytest.approx(30 * 30 * 256 * 9 / cost.cycles / (256 + 64))
    # Where a beat takes longer than the arrays, memory limits.
    narrow = replace(ARRAY, ports=1)
    beats = 30 * 30 * 3 * 24
    alone = gather(Work(name="", layers=(shape,)), narrow, BOARD)
    assert alone.cycles == pytest.approx(BOARD.idle_read_cycles + beats + BOARD.idle_write_cycles, rel=0.01)


class Queue:
    """A queue between two loops, and the times when its places are taken and free."""

    def __init__(self, depth):
        self.depth, self.written, self.read = depth, [], []


def play(processes):
    """Run loops that wait for each other; each yields ("put" or "get", queue) or a number of cycles."""
    times = [0] * len(processes)
    waiting = [next(process, None) for process in processes]
    while any(step is not None for step in waiting):
        moved = False
        for n, process in enumerate(processes):
            while waiting[n] is not None:
                step = waiting[n]
                if isinstance(step, int):
                    times[n] += step
                elif step[0] == "put":
                    queue = step[1]
                    place = len(queue.written) - queue.depth
                    if place >= len(queue.read):
                        break
                    times[n] = max(times[n], queue.read[place] if place >= 0 else 0) + 1
                    queue.written.append(times[n])
                else:
                    queue = step[1]
                    item = len(queue.read)
                    if item >= len(queue.written):
                        break
                    times[n] = max(times[n], queue.written[item])
                    queue.read.append(times[n])
                waiting[n] = next(process, None)
                moved = True
        assert moved, "the loops wait for each other"
    return max(times)


def played_units(run, loop_cycles):
    """Play the loops of a run word by word, as its source has them."""
    first, last = run.layers[0], run.layers[-1]
    words, tiles = -(-first.channels // 16), -(-last.outputs // 16)
    given, middle, results = Queue(2), Queue(2), Queue(2)

    def read():
        for _ in range(first.rows * first.columns * words):
            yield ("put", given)

    def point():
        for _ in range(first.rows * first.columns):
            for _ in range(words):
                yield ("get", given)
                yield ("put", middle) if run.point is None else 1
            yield loop_cycles
            if run.point is not None:
                for _ in range(tiles):
                    yield words - 1 + loop_cycles
                    yield ("put", middle)

    def buffer():
        for row in range(-LEAD_ROWS, last.rows):
            for column in range(last.columns):
                if row + LEAD_ROWS < last.rows:
                    for _ in range(tiles):
                        yield ("get", middle)
                        yield 1
                    yield loop_cycles
                if row >= 0 and row % last.strides[0] == column % last.strides[1] == 0:
                    for _ in range(tiles):
                        yield ("put", results)
                    yield loop_cycles

    def written():
        for _ in range(last.out_size[0] * last.out_size[1] * tiles):
            yield ("get", results)

    return play([read(), point(), buffer(), written()])


def pointwise(channels, outputs, side):
    return ConvLayer(channels=channels, outputs=outputs, rows=side, columns=side)


def depthwise(channels, side, stride=1):
    return layer(
        channels=channels,
        outputs=channels,
        group=channels,
        rows=side,
        columns=side,
        strides=(stride, stride),
    )


@pytest.mark.parametrize("loop_cycles", [0, 11])
@pytest.mark.parametrize(
    "run",
    [
        PipelineRun(taps=depthwise(64, 24)),
        PipelineRun(taps=depthwise(40, 24, stride=2)),
        PipelineRun(point=pointwise(64, 48, 24), taps=depthwise(48, 24)),
        PipelineRun(point=pointwise(16, 64, 24), taps=depthwise(64, 24)),
        PipelineRun(point=pointwise(32, 32, 24), taps=depthwise(32, 24, stride=2)),
    ],
)
def test_units_take_as_long_as_their_loops_played(run, loop_cycles):
    played = played_units(run, loop_cycles)
    assert unit_cycles(run, loop_cycles, request_cycles=0) == pytest.approx(played, rel=0.05)


def test_depthwise_and_pointwise_by_hand():
    side = depthwise(256, 64)
    assert unit_cycles(PipelineRun(taps=side), 0, request_cycles=50) == 64 * 64 * 2 * 16
    assert unit_cycles(PipelineRun(taps=side), 11, request_cycles=50) == 64 * 64 * 2 * 27
    point = pointwise(64, 32, 10)
    assert unit_cycles(PipelineRun(point=point), 1, request_cycles=50) == 100 * 5 * 3
    # Without a line buffer a tap is a request, its words, and the loop's entry.
    free = operation("depthwise", Offsets.FREE)
    assert unit_cycles(PipelineRun(taps=free), 2, request_cycles=50) == 4096 * 9 * (50 + 16 + 2)
    # The full array: a cycle for each tile of 8 x 8 of each result, after the first rows.
    full = operation("full")
    assert unit_cycles(PipelineRun(taps=full), 0, request_cycles=50) == 8 * 64 * 32 + 4096 * (32 + 32 * 32)
    # Nine addresses through three ports.
    bounded = operation("depthwise", Offsets.FREE, 6)
    assert unit_cycles(PipelineRun(taps=bounded), 0, request_cycles=50) == 4096 * (16 + 48)


def test_layers_that_follow_share_a_run():
    first, second = pointwise(16, 32, 8), depthwise(32, 8)
    stem = ConvLayer(channels=3, outputs=16, rows=8, columns=8, kernel=(3, 3), pads=(1, 1, 1, 1))
    deformed = replace(second, offsets=Offsets.SQUARE, bound=3)
    last = pointwise(32, 4, 8)
    found = list(runs([stem, first, second, last, deformed, depthwise(32, 4), last]))
    assert found == [
        PipelineRun(point=first, taps=second),
        PipelineRun(point=last),
        PipelineRun(taps=deformed),
        PipelineRun(taps=depthwise(32, 4)),
        PipelineRun(point=last),
    ]


@pytest.mark.parametrize(("name", "within"), [("config a", 0.15), ("config c", 0.02), ("config d", 0.02)])
def test_the_schedule_takes_the_measured_cycles(name, within):
    measured = PUBLISHED[name][0] * CLOCK_MHZ * 1e3
    assert codenet(WORKS[name], BOARD).cycles == pytest.approx(measured, rel=within)


def test_schedule_moves_maps_weights_scales_and_offsets():
    cost = codenet(WORKS["depthwise, square"], BOARD)
    assert cost.moved_bytes == 2 * 64 * 64 * 256 + 256 * 9 // 2 + 256 * 4 + 64 * 64
    assert cost.macs == 144
    # Weights come first, a cycle a channel for scales and biases each; then read, units, write.
    units = 64 * 64 * 2 * 27
    assert cost.cycles == 512 + BOARD.idle_read_cycles + units + BOARD.idle_write_cycles
    free = codenet(WORKS["depthwise, deformable"], BOARD)
    assert free.moved_bytes == 64 * 64 * (9 * 256 + 18 + 256) + 256 * 9 // 2 + 256 * 4


def test_offsets_are_within_their_bounds():
    rng = np.random.default_rng(0)
    bounded = random_offset(operation("depthwise", Offsets.FREE, 6), 5, rng)
    assert abs(bounded.dy).max() == abs(bounded.dx).max() == 6
    square = random_offset(operation("depthwise", Offsets.SQUARE, 6), 5, rng)
    assert (square.dy[0] == square.dx[0]).all()
    assert (square.dy[0] == -square.dy[8]).all()
    assert not square.dy[4].any()
    shape = WORKS[OUTSIDE].layers[0]
    [outside] = WORKS[OUTSIDE].offsets(5)
    row = np.arange(64).reshape(1, -1, 1)
    tap = np.repeat((-1, 0, 1), 3).reshape(9, 1, 1)
    assert (outside.dy * 32 == np.round(outside.dy * 32)).all()
    at = row + tap + outside.dy
    assert (abs(at - row) > BUFFERED_ROWS).all()
    assert ((at >= 1) & (at <= shape.rows - 2)).all()


def test_utilization_is_useful_work_over_all_slots():
    cost = Cost(cycles=100, moved_bytes=7, useful_macs=800, macs=16)
    assert cost.utilization == 0.5
    assert WORKS["full"].useful_macs == 64 * 64 * 256 * 256 * 9
    assert WORKS["config c"].useful_macs == pytest.approx(1.13e9, rel=0.01)
