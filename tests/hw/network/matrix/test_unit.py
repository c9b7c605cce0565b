# amaranth: UnusedElaboratable=no
"""The matrix unit on its scratchpad: layers equal the golden model byte for byte, in the cycles it says."""

import functools
import itertools
import random
from dataclasses import replace

import pytest

from hw.lib.fifo import Fifo
from hw.network.commands import Addition, Core, Follow, Source, Target
from hw.network.config import NetworkConfig
from hw.network.graph.network import Convolution, Sum, Table
from hw.network.matrix.array import MatrixArray
from hw.network.matrix.config import MatrixConfig
from hw.network.matrix.feed import PixelFeed
from hw.network.matrix.timing import (
    COMMAND_CYCLES,
    TAKE_CYCLES,
    steps_of_blocks,
    sweep_cycles,
    table_wait,
)
from hw.network.scratchpad.shape import GranuleShape
from tests.hw.network.matrix.bench import GRANULES, UnitBench, run, run_work, work_of
from tests.support.gateware.streams import seeds
from tests.support.networks.layers import drawn_convolution

CONFIG = MatrixConfig(columns=32, ports=4, port_bits=256, tables=8)
#: From a command to its first step, and from a step to its result at the drain.
FIRST, RESULT = PixelFeed.LATENCY, MatrixArray.latency(CONFIG) + Fifo.DEEP_LATENCY
BENCH = UnitBench(GranuleShape(banks=4, rows=64, memory="block"), CONFIG)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
def test_layers_equal_the_golden_model(seed):
    """On memories that stall; `make test` has whole networks on such ones."""
    rng = random.Random(seed)
    found = run(BENCH, [drawn_convolution(rng) for _ in range(3)], stall=0.5, seed=seed)
    assert (found.after == found.wanted).all()


@pytest.mark.soak
@pytest.mark.parametrize("seed", seeds(1, 20))
def test_cycles_are_those_of_the_formula(seed):
    """A step a cycle, but for sweeps shorter than a packet.  A table is copied once for several commands."""
    rng = random.Random(seed)
    mapped = drawn_convolution(rng)
    while not any(isinstance(operator, Table) for operator in mapped.operators):
        mapped = drawn_convolution(rng)
    networks = [drawn_convolution(rng), mapped, mapped]
    found = run(BENCH, networks, stall=0, seed=seed)
    assert (found.after == found.wanted).all()
    held = None
    for work, taken in found.commands:
        command = work.command
        assert taken.taken - taken.came == TAKE_CYCLES
        assert taken.busy == sum(steps_of_blocks(command)) * command.taps * command.column_tiles
        sweep = sweep_cycles(command, CONFIG)
        late = table_wait(command, last_result=FIRST + sweep - 1 + RESULT, held=work.table == held)
        held = work.table or held
        assert 0 <= sweep + COMMAND_CYCLES + late - taken.cycles <= 16


def changed(rng, command, free):
    """Give k tiles shifts, and many a command results of int16 from granule ``free`` on, with a sum."""
    command = replace(command, shifts=tuple(rng.choice([0, 0, *range(8)]) for _ in range(command.taps)))
    if rng.random() < 0.3:
        return command
    granules = 2 * command.target.granules
    target = Target(base=free, pitch=granules, granules=granules, low=-(1 << 15), high=(1 << 15) - 1 >> 2)
    residual = Source(base=0, across=granules, down=granules * command.columns)
    addition = Addition(first=rng.randrange(1 << 26), second=rng.randrange(1 << 25), shift=24)
    summed = {"residual": residual, "addition": addition} if rng.random() < 0.6 else {}
    bounds = (0, -(1 << 15), 30_000)
    plain = {"residual": None, "addition": None, "table": -1, "sum_target": bounds}
    return replace(command, bits=16, target=target, **plain | summed)


@pytest.mark.parametrize("seed", seeds(1, 20))
def test_layers_that_overlap_equal_the_golden_model(seed):
    """Of int8 and int16, with sums and tables; layers of few pixels wait for the drain together."""
    rng = random.Random(seed)
    networks = [drawn_convolution(rng, most_channels=32, most_side=rng.choice([1, 3, 5])) for _ in range(4)]
    change = functools.partial(changed, rng)
    found = run(BENCH, networks, stall=0, seed=seed, change=change, spare=GRANULES // 8)
    assert (found.after == found.wanted).all()
    times = [taken for _, taken in found.commands]
    assert any(then.taken < before.done for before, then in itertools.pairwise(times))


def long_layer(rng):
    """Draw a layer of two k tiles and more pixels than a packet has words, with a sum."""
    while True:
        network = drawn_convolution(rng, most_channels=80, most_side=5)
        height, width, channels = network.values["result"].shape
        kinds = [type(operator) for operator in network.operators]
        fits = 64 < network.values["source"].shape[2] <= 80 and channels <= 32
        deep = network.operators[0].window.kernel == (1, 1) and fits
        if kinds == [Convolution, Sum] and height * width > 20 and deep:
            return network


def test_the_array_works_from_command_to_command():
    """Residuals are read and results written while the next sweeps run."""
    rng = random.Random(0)
    layers = [long_layer(rng) for _ in range(4)]
    found = run(BENCH, layers, stall=0, seed=0, change=lambda command, _: command)
    assert (found.after == found.wanted).all()
    commands = [work.command for work, _ in found.commands]
    steps = sum(each.rows * each.columns * each.column_tiles * each.taps for each in commands)
    cycles = found.commands[-1][1].done - found.commands[0][1].taken - 1
    assert steps + COMMAND_CYCLES - 8 <= cycles <= steps + COMMAND_CYCLES


def test_a_command_reads_each_word_when_the_one_before_has_written_it():
    rng = random.Random(0)
    while True:
        network = drawn_convolution(rng, most_channels=32, most_side=9)
        window, pixels = network.operators[0].window, network.values["result"].shape[:2]
        plain = window.kernel == window.strides == (1, 1) and window.pads == (0, 0, 0, 0)
        if (
            plain
            and len(network.operators) == network.operators[0].groups == 1
            and pixels[0] * pixels[1] > 40
        ):
            break
    (first,) = work_of([network], CONFIG.columns, change=None, spare=0)
    pixels = first.command.rows * first.command.columns
    source = replace(first.command.source, base=first.command.target.base)
    command = replace(first.command, source=source, target=replace(first.command.target, base=GRANULES // 2))
    follow = Follow(core=Core.MATRIX, first=0, step=1, tile_step=0, per_tile=pixels, tiles=1)
    second = replace(first, command=command, follow=follow)
    found = run_work(BENCH, [first, second], stall=0, seed=0, overlap=True)
    assert (found.after == found.wanted).all()
    (_, one), (_, two) = found.commands
    assert two.taken < one.done
    assert two.done - one.done < COMMAND_CYCLES + pixels // 2


@pytest.mark.soak
@pytest.mark.parametrize(
    "config",
    [
        NetworkConfig(),
        NetworkConfig(scratchpad_bytes=2 << 20, banks=8, columns=32, weight_ports=4, port_bytes=16, lanes=32),
    ],
    ids=["64 columns", "32 columns"],
)
def test_layers_on_the_units_of_boards(config):
    rng = random.Random(5)
    networks = [drawn_convolution(rng, most_channels=90, most_side=6) for _ in range(3)]
    found = run(UnitBench(config.shape, config.matrix), networks, stall=0.1, seed=0)
    assert (found.after == found.wanted).all()
    assert {work.command.halves for work, _ in found.commands} == {False, True}
