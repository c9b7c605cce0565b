# amaranth: UnusedElaboratable=no
"""Commands of every kind in gates, equal to the golden model of programs on every byte of the scratchpad."""

from dataclasses import replace

import numpy as np
import pytest

from hw.network.commands import Addition, Bounds, Source, TapTile, Target, VectorCommand, VectorKind
from hw.network.graph.network import Product, Sum
from hw.network.graph.products import product_rule
from hw.network.graph.sums import ALL_PAIRS, sum_rule
from sim.golden.network import result
from tests.hw.network.vector.bench import GRANULES, execute, run, unit_of
from tests.hw.network.vector.drawn import BYTE_KINDS, Drawn
from tests.hw.network.vector.memory import NaiveScratchpad
from tests.support.gateware.streams import hash_seed, simulate
from tests.support.networks.pairs import EXCEPTIONAL, EXCEPTIONAL_PRODUCT, Scales, pairs_next_to_ties

#: Lanes, share of cycles in which a port does not move, seed; those of `make test` first.
_POINTS = [(16, 0.0, 0), (32, 0.6, 1)]
_SOAK = [(lanes, stall, seed) for lanes in (16, 32, 64) for stall in (0.0, 0.3, 0.8) for seed in range(3, 13)]


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("lanes", "stall", "seed"), [*_POINTS, *(pytest.param(*p, marks=pytest.mark.soak) for p in _SOAK)]
)
def test_programs_equal_the_golden_model(lanes, stall, seed):
    drawn = Drawn(hash_seed(seed, f"{lanes} {stall}"))
    kinds = [*BYTE_KINDS, *drawn.rng.choices(BYTE_KINDS[:5], k=5)]
    drawn.rng.shuffle(kinds)
    kinds.append(VectorKind.SOFTMAX)  # results of others may be overwritten
    program = drawn.program([drawn.command(kind) for kind in kinds])
    memory = drawn.memory()
    found = run(unit_of(lanes), program, memory, stall=stall, seed=seed)
    wrong = np.argwhere(found.memory != program.expected(memory))
    assert not len(wrong), f"{len(wrong)} bytes differ, the first at granule and byte {wrong[0]}"
    assert found.busy == sum(found.cycles) - len(kinds)
    # Without stalls only the first words are waited for.
    assert stall or found.waits_read <= 20 * len(kinds)


def test_stalls_have_a_cause():
    """A port that does not move shows in its own counter."""
    drawn = Drawn(2)
    command = drawn.command(VectorKind.ADD)
    target = replace(command.target, granules=10, pitch=10)
    program = drawn.program([replace(command, rows=1, columns=6, target=target)])
    memory = drawn.memory()
    free, slow_reads, slow_writes = (
        run(unit_of(16), program, memory, read_stall=read, write_stall=write, seed=1)
        for read, write in ((0.0, 0.0), (0.9, 0.0), (0.0, 0.95))
    )
    assert free.waits_write == slow_reads.waits_write == 0
    assert slow_reads.waits_read > 2 * free.waits_read
    assert slow_writes.waits_write > 100 > slow_writes.waits_read == free.waits_read


def test_a_table_may_be_written_anew():
    """The lanes hold a table from command to command, but not its old results."""
    unit = unit_of(16)
    drawn = Drawn(4)
    command = replace(drawn.command(VectorKind.TABLE), table=0)
    programs = [drawn.program([command, command])]
    drawn.tables = drawn.tables[1:]
    programs.append(drawn.program([command]))
    pad = NaiveScratchpad(drawn.memory(), latency=12, stalls=(0.0, 0.0), seed=0)
    expected, cycles = pad.granules.copy(), []

    async def main(ctx):
        for program in programs:
            cycles.append(await execute(ctx, unit, program))

    simulate(unit, main, background=[pad.serve(unit)])
    for program in programs:
        expected = program.expected(expected)
    assert (pad.granules == expected).all()
    assert cycles[0][1] < cycles[0][0] == cycles[1][0]


def test_ties_of_softmax_round_up():
    """Two equal channels share 255 steps, 127.5 each, whatever lies behind them."""
    drawn = Drawn(1)
    command = replace(drawn.command(VectorKind.SOFTMAX), rows=1, columns=1, channels=2, steps=255 * 256)
    target = replace(command.target, zero=-128, low=-128, high=127, granules=1)
    program = drawn.program([replace(command, target=target)])
    memory = np.full((GRANULES, 16), 100, np.int8)
    memory[:, :2] = 7  # what is no channel is no maximum
    found = run(unit_of(16), program, memory)
    assert found.memory[target.base % GRANULES].tolist() == [0, 0, *[-128] * 14]
    assert (found.memory == program.expected(memory)).all()


SUMS = [given for count, given in EXCEPTIONAL if count == 2]


@pytest.mark.parametrize("given", SUMS)
def test_sums_next_to_ties_equal_float32(given):
    """With two exceptions, and a shift of 24 and of less."""
    rule = sum_rule(*given.values)
    pairs = pairs_next_to_ties(rule, given, 800)
    addition = Addition(first=rule.first, second=rule.second, shift=rule.shift, exceptions=rule.exceptions)
    operator = Sum(name="sum", inputs=("v0", "v1"), output="v2")
    check_pairs(given, operator, pairs, kind=VectorKind.ADD, addition=addition)


def test_products_next_to_ties_equal_float32():
    """With exceptions, and with exact ties beside an odd zero point."""
    ties = Scales(scales=(0.7, 0.125, 0.7), zeros=(-4, 9, 3))
    for given in (EXCEPTIONAL_PRODUCT, ties):
        rule = product_rule(*given.values)
        first, second = (each - zero for each, zero in zip(ALL_PAIRS, given.zeros, strict=False))
        exact = first * second * rule.scale
        near = np.argwhere((np.abs(exact % 1 - 0.5) < 1e-4) & (np.abs(exact) < 256)) - 128
        np.random.default_rng(0).shuffle(near)
        pairs = [*rule.exceptions, *near[:800].tolist()]
        fields = {"scales": (rule.scale,), "exceptions": rule.exceptions, "zero_first": True}
        operator = Product(name="product", inputs=("v0", "v1"), output="v2")
        check_pairs(given, operator, pairs, kind=VectorKind.MULTIPLY, **fields)


def check_pairs(given, operator, pairs, **fields):
    """Compare a command on pairs of bytes with an operator of the golden model."""
    columns = -(-len(pairs) // 16)
    stored = np.zeros((2, columns, 16), np.int8)
    for side, elements in zip(stored, zip(*pairs, strict=True), strict=True):
        side.reshape(-1)[: len(pairs)] = elements
    zeros = given.zeros
    command = VectorCommand(
        rows=1,
        columns=columns,
        sources=tuple(Source(base=64 * n, across=1, zero=zeros[n]) for n in range(2)),
        target=Target(base=128, pitch=1, granules=1, zero=zeros[2]),
        bounds=Bounds(height=1, width=columns),
        column_granules=1,
        **fields,
    )
    drawn = Drawn(0)
    drawn.taps = [TapTile(offset=0, row=0, columns=(0,) * 4, valid=(True,) * 4)]
    memory = drawn.memory()
    memory[:columns], memory[64 : 64 + columns] = stored
    program = drawn.program([command])
    found = run(unit_of(16), program, memory).memory
    assert (found == program.expected(memory)).all()
    values = {value.name: value for value in given.values}
    wanted = result(operator, [each[None] for each in stored], values)[0]
    assert (found[128 : 128 + columns] == wanted).all()


@pytest.mark.soak
def test_softmax_of_the_most_channels():
    drawn = Drawn(3)
    command = drawn.command(VectorKind.SOFTMAX)
    source = replace(command.sources[0], base=0, across=0, down=0)
    tap, target = len(drawn.taps), replace(command.target, base=512, pitch=256, granules=256)
    drawn.taps.append(TapTile(offset=0, row=0, columns=(0,) * 4, valid=(True,) * 4))
    size = {"rows": 1, "columns": 1, "channels": 4096, "bounds": Bounds(height=1, width=1)}
    command = replace(command, sources=(source,), target=target, first_tap=tap, steps=1 << 24, **size)
    program = drawn.program([command])
    memory = drawn.memory()
    for level in (memory, np.full_like(memory, 5)):  # the largest sum: all channels equal
        found = run(unit_of(16), program, level)
        assert (found.memory == program.expected(level)).all()
