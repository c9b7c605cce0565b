"""The accesses of commands are those of the units' ports, request by request."""

import functools
import random
from dataclasses import replace

import numpy as np
import pytest

from hw.network.commands import VectorKind
from hw.network.program.accesses import NONE, accesses
from hw.network.vector.wide_fields import WIDE_KINDS
from tests.hw.network.matrix import bench as matrix_bench
from tests.hw.network.matrix.bench import GRANULES
from tests.hw.network.matrix.test_unit import BENCH, changed
from tests.hw.network.program.example import CONFIG
from tests.hw.network.vector import bench as vector_bench
from tests.hw.network.vector.test_unit import unit_of
from tests.hw.network.vector.wide import DrawnWide
from tests.support.gateware.streams import seeds, simulate
from tests.support.networks.layers import drawn_convolution


def watched(found, unit):
    """Return a simulation that notes addresses and enables of each port of a unit."""

    async def watch(ctx):
        ports = [port.request for port in unit.read] + [unit.write.write]
        found.extend([] for _ in ports)
        pins = [(each.valid, each.ready, each.payload.address, each.payload.enable) for each in ports]
        tick = ctx.tick().sample(*(pin for some in pins for pin in some))
        while True:
            _, _, *values = await tick
            for n, notes in enumerate(found):
                valid, ready, address, enable = values[4 * n : 4 * n + 4]
                if valid and ready:
                    notes.append((address, enable))

    def run(dut, *benches, background, **options):
        return simulate(dut, *benches, background=[*background, watch], **options)

    return run


def granules_of(notes):
    """Return accesses as `accesses` has them."""
    if not notes:
        return np.empty((0, 4), np.int64)
    address, enable = np.array(notes).T
    found = (address[:, None] + np.arange(4)) % (CONFIG.shape.words * 4)
    return np.where(enable[:, None] >> np.arange(4) & 1, found, NONE)


def joined(parts):
    return np.concatenate([np.empty((0, 4), np.int64), *parts])


@pytest.mark.soak
@pytest.mark.parametrize("seed", seeds(1, 12))
def test_matrix_commands(monkeypatch, seed):
    """Commands of int8 and int16 that overlap; a residual's port may read granules that are not used."""
    found, rng = [], random.Random(seed)
    monkeypatch.setattr(matrix_bench, "simulate", watched(found, BENCH.unit))
    networks = [drawn_convolution(rng, most_channels=40) for _ in range(3)]
    change = functools.partial(changed, rng)
    played = matrix_bench.run(BENCH, networks, stall=0, seed=seed, change=change, spare=GRANULES // 8)
    work = [each for each, _ in played.commands]
    listed = [(each.command, accesses(each.command, each.lowered.taps, CONFIG)) for each in work]
    first, second, other, written = map(granules_of, found)
    gated = [[each for each in made.reads if each.gated] for _, made in listed]
    assert (joined(reads[0].granules for reads in gated) == first).all()
    assert (joined(reads[1].granules for reads in gated if len(reads) > 1) == second).all()
    residuals = joined(made.reads[-1].granules for command, made in listed if command.residual)
    assert (np.where(residuals == NONE, NONE, other) == residuals).all()
    assert (joined(made.writes for _, made in listed) == written).all()
    commands = {(command.bits, command.halves, command.residual is None) for command, _ in listed}
    assert seed or len(commands) > 2, commands


@pytest.mark.parametrize(
    ("lanes", "seed"),
    [
        (16, 0),
        pytest.param(32, 1, marks=pytest.mark.soak),
        *(pytest.param(64, n, marks=pytest.mark.soak) for n in range(9)),
    ],
)
def test_vector_commands(monkeypatch, lanes, seed):
    """Of every kind, and of LayerNorms of cut and whole words."""
    drawn, unit, found = DrawnWide(seed), unit_of(lanes), []
    kinds = [kind for kind in VectorKind if kind not in WIDE_KINDS]
    commands = [drawn.command(kind) for kind in (*kinds, VectorKind.MAX, VectorKind.MEAN)]
    commands += [drawn.sum(), drawn.mean(), *drawn.norms(96, 2), *drawn.norms(40, 3), *drawn.norms(128, 4)]
    program = drawn.program(commands)
    monkeypatch.setattr(vector_bench, "simulate", watched(found, unit))
    vector_bench.run(unit, program, drawn.memory())
    config = replace(CONFIG, lanes=lanes, vector_taps=128, tables=4)
    listed = [accesses(command, program.lowered.taps, config) for command in commands]
    first, second, written = map(granules_of, found)
    assert (joined(made.reads[0].granules for made in listed) == first).all()
    assert (joined(made.reads[1].granules for made in listed if len(made.reads) > 1) == second).all()
    assert (joined(made.writes for made in listed) == written).all()
    for command, made in zip(commands, listed, strict=True):
        assert np.prod(made.grid) == len(made.reads[0].granules)
        assert (command.kind is VectorKind.STATS) == (len(made.writes) == 0)
