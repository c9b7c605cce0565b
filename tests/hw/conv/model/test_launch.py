"""The predicted cycles of a launch, as far as they follow from the order of work, not from latencies.

`tests.regression.test_engines` compares predictions with the gates.
"""

from dataclasses import replace
from itertools import pairwise

import pytest

from hw.board import load_board
from hw.conv.config import ConvConfig
from hw.conv.core.layouts import Offsets
from hw.conv.core.pointwise.pointwise import PointwiseUnit
from hw.conv.driver.layer import ConvLayer
from hw.conv.driver.route import Rearrangement
from hw.conv.driver.weights import tile_beats
from hw.conv.driver.workload import ConvJob, ConvWorkload
from hw.conv.engine import ConvEngine
from hw.conv.model.launch import predict_launch
from hw.conv.model.predict import predict
from hw.errors import InputError
from sim.engines.conv.cases import SMALL

BOARD = load_board("u55c")


def layer(channels, size, *, outputs=None, kernel=1, group=1, **more):
    pad = kernel // 2
    return ConvLayer(
        channels=channels,
        rows=size,
        columns=size,
        outputs=outputs or channels,
        kernel=(kernel, kernel),
        strides=(1, 1),
        pads=(pad, pad, pad, pad),
        group=group,
        **more,
    )


def launch(*jobs, config=SMALL, board=BOARD, **given):
    planned = [job.plan(config, beat_bits=config.port_width(board.memory.port_data_width)) for job in jobs]
    return predict_launch(config, board, planned, **given)


DEPTHWISE = ConvJob(layers=(layer(48, 40, kernel=5, group=48),))
POINTWISE = ConvJob(layers=(layer(32, 40, outputs=48),))


def test_a_depthwise_layer_takes_a_cycle_a_step_and_one_a_row():
    counters = launch(DEPTHWISE).counters
    steps = 40 * 40 * 3 * 13
    assert counters["cycles_busy"] == steps
    # First rows are read, last results leave; a row costs a cycle.
    assert steps + 40 <= sum(counters.values()) <= steps + 40 + 700


def test_a_pointwise_layer_takes_a_cycle_a_pixel_and_tile():
    counters = launch(POINTWISE).counters
    pixels = 40 * 40 * (32 // 8) * (48 // 8)
    assert counters["cycles_busy"] == pixels
    assert pixels <= sum(counters.values()) <= pixels + 600


def test_the_slower_of_two_units_sets_the_pace():
    both = ConvJob(layers=(layer(32, 40, kernel=3, group=32), POINTWISE.layers[0]))
    alone = sum(launch(POINTWISE).counters.values())
    assert alone < sum(launch(both).counters.values()) < alone + 600
    reverse = ConvJob(layers=(POINTWISE.layers[0], layer(48, 40, kernel=3, group=48)))
    assert alone < sum(launch(reverse).counters.values()) < 1.1 * alone


def test_blocks_of_few_pixels_take_as_long_as_their_tiles_need():
    counters = launch(replace(POINTWISE, most_pixels=4)).counters
    first, other = (tile_beats(SMALL, SMALL.port_bits, first=first) for first in (True, False))
    sweeps = [PointwiseUnit.sweep_cycles(SMALL, pixels=4, beats=beats) for beats in (first, other)]
    cycles = 400 * (6 * sweeps[0] + 18 * sweeps[1])
    assert counters["cycles_busy"] == 400 * 24 * 4
    assert cycles <= sum(counters.values()) <= cycles + 600


def test_a_job_after_earlier_results_does_not_overlap_with_them():
    together = launch(POINTWISE, POINTWISE).log
    apart = launch(POINTWISE, replace(POINTWISE, after=True)).log
    assert together[0] == apart[0]
    alone = launch(POINTWISE).log[0]
    assert apart[1] - apart[0] > alone - 150 > together[1] - together[0] - 150
    assert apart[1] > together[1] + 100


def test_a_shuffle_waits_for_its_bypass_and_writes_twice_as_much():
    shuffled = replace(POINTWISE, rearrangement=Rearrangement(shuffle=True))
    assert launch(shuffled).log[0] >= launch(POINTWISE).log[0]
    # A pixel of the bypass has two words before and after the cut, or one before; parts have whole words.
    for channels, slices in ((24, 4), (16, 2)):
        split = ConvJob(
            layers=(layer(16, 32, outputs=channels),), rearrangement=Rearrangement(shuffle=True, split=True)
        )
        assert launch(split).counters["cycles_busy"] == 32 * 32 * 2 * slices


def test_a_bypass_comes_before_its_map_where_a_map_came_last():
    """Both request at once: the arbiter serves the map first after a reset, and takes turns from then on."""
    pixels, words = 8, 3  # a block of each
    shuffled = ConvJob(
        layers=(replace(layer(16, pixels, outputs=16 * words), rows=1),),
        rearrangement=Rearrangement(shuffle=True),
    )
    first, later = (launch(shuffled, first=first).log[0] for first in (True, False))
    assert pixels * (words - 1) < later - first < pixels * (words + 1)


def test_memory_that_answers_later_costs_every_dependent_job_as_much():
    timing = BOARD.memory.timing
    slow_memory = replace(
        BOARD.memory, timing=replace(timing, fabric_response_ns=timing.fabric_response_ns + 1000)
    )
    slow = replace(BOARD, memories=(slow_memory, *BOARD.memories[1:]))
    jobs = [replace(POINTWISE, after=True)] * 4
    more = [late - soon for late, soon in zip(launch(*jobs, board=slow).log, launch(*jobs).log, strict=True)]
    cycles = slow.idle_read_cycles - BOARD.idle_read_cycles
    # Each job reads once before it can begin, and writes once; the first also needs its descriptor.
    assert more[0] >= 3 * cycles
    assert all(2 * cycles <= b - a for a, b in pairwise(more))


@pytest.mark.parametrize("after", [False, True])
def test_jobs_are_all_of_a_launch(after):
    workload = ConvWorkload(
        jobs=tuple(replace(job, after=after) for job in (DEPTHWISE, POINTWISE, DEPTHWISE))
    )
    found = predict(workload, SMALL, BOARD)
    assert min(found.job_cycles) > 0
    assert sum(found.job_cycles) < found.cycles_total < sum(found.job_cycles) + 100


def test_writes_take_cycles_of_reads():
    """A map whose bytes all lie at one port: its channel moves them both ways, more slowly than words."""
    job = ConvJob(layers=(layer(32, 64, kernel=3, group=32),))
    wide, narrow = (ConvConfig(lanes=64, ports=ports, inputs=16, outputs=16) for ports in (4, 2))
    words = 64 * 64
    bytes_a_word, channel = 2 * 32, BOARD.channel_bytes_per_cycle
    assert sum(launch(job, config=wide).counters.values()) < 1.2 * words
    assert sum(launch(job, config=narrow).counters.values()) > words * bytes_a_word / channel > 1.4 * words


def test_offsets_wait_for_the_pixel_before_where_the_store_holds_no_two():
    size, groups, steps = 12, 6, 9
    given = layer(48, size, kernel=3, group=48, offsets=Offsets.FREE, offset_group=groups, bound=1)
    entries, pixels = groups * steps, size * size
    small = replace(SMALL, lanes=8, taps=1, inputs=8, ports=1, gather_words=0)
    roomy, tight = (replace(small, offset_entries=count) for count in (256, 64))
    work = pixels * entries  # as many steps as entries: six words of eight lanes
    job = ConvJob(layers=(given,))
    assert work < sum(launch(job, config=roomy).counters.values()) < work + 800
    late = 2 * entries - tight.offset_entries  # entries of a pixel have no place while another is sampled
    assert pixels * late < sum(launch(job, config=tight).counters.values()) - work < pixels * (late + 15)


def test_words_of_results_go_as_their_ports_take_them():
    """A port takes a beat a cycle, and a pixel begins a new one."""
    wide = replace(SMALL, lanes=32, outputs=32, ports=1, port_bits=256)
    narrow = replace(wide, port_bits=128)
    words, pixels = 2, 40 * 40
    for channels, beats in ((64, 4), (40, 3)):
        job = ConvJob(layers=(layer(8, 40, outputs=channels),))
        assert sum(launch(job, config=wide).counters.values()) < words * pixels + 900
        assert beats * pixels < sum(launch(job, config=narrow).counters.values()) < beats * pixels + 900


def test_a_launch_too_long_to_predict_is_refused():
    long = ConvJob(layers=(ConvLayer(channels=4096, rows=512, columns=512, outputs=16384),))
    config = ConvEngine().default_config(BOARD)
    with pytest.raises(InputError, match=r"^sweeps of .* must be at most 4,194,304; split the layer"):
        predict(ConvWorkload(jobs=(long,)), config, BOARD)
