# amaranth: UnusedElaboratable=no
"""The cycle model against the gates on the scratchpad, and the reads of overlapping windows."""

from dataclasses import replace

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, connect

from hw.lib.place import InlinePlacer
from hw.network.commands import Bounds, Source, Target, VectorCommand, VectorKind
from hw.network.scratchpad.scratchpad import GranuleScratchpad
from hw.network.scratchpad.shape import GranuleShape
from hw.network.scratchpad.slice import ScratchpadSlice
from hw.network.vector.config import VectorConfig
from hw.network.vector.fields import loops_of
from hw.network.vector.timing import cycles
from tests.hw.network.vector.bench import SHAPE, execute, unit_of
from tests.hw.network.vector.drawn import BYTE_KINDS
from tests.hw.network.vector.wide import DrawnWide
from tests.support.gateware.streams import simulate

#: Kinds whose windows may lie outside of the image.
WINDOWS = (VectorKind.MAX, VectorKind.MEAN, VectorKind.MEAN16)
#: Cycles of a word in the slices of the scratchpad.
SLICE_LATENCY = ScratchpadSlice.REQUEST_LATENCY + ScratchpadSlice.RESPONSE_LATENCY


class OnScratchpad(wiring.Component):
    """A unit that is alone on the scratchpad."""

    def __init__(self) -> None:
        self.unit = unit_of.__wrapped__(16)
        super().__init__({"i": In(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.unit = self.unit
        m.submodules.scratchpad = scratchpad = GranuleScratchpad(SHAPE, InlinePlacer(), readers=2, writers=1)
        for own, port in zip(
            (*self.unit.read, self.unit.write), (*scratchpad.read, *scratchpad.write), strict=True
        ):
            connect(m, own, port)
        return m


@pytest.mark.soak
def test_cycles_are_those_of_the_model():
    """Exact but for conflicts of the unit's own ports at the banks."""
    bench = OnScratchpad()
    drawn = DrawnWide(5)
    commands = [drawn.command(kind) for kind in [*BYTE_KINDS] * 2]
    for channels, pixels in ((96, 5), (40, 1), (72, 6)):
        commands += [*drawn.norms(channels, pixels), drawn.sum(), drawn.mean()]
    program = drawn.program(commands)
    found = []

    async def main(ctx):
        found.extend(await execute(ctx, bench.unit, program))

    simulate(bench, main)
    held, expected = -1, []
    for command in commands:
        is_table = command.kind is VectorKind.TABLE
        expected.append(cycles(bench.unit.config, command, table_held=held == command.table))
        held = command.table if is_table else held
    late = [got - want for got, want in zip(found, expected, strict=True)]
    for command, each, want in zip(commands, late, expected, strict=True):
        # Windows that all lie outside of the image have no words to wait for.
        least = -SLICE_LATENCY if command.kind in WINDOWS else 0
        assert least <= each <= 0.02 * want + 1, (command, each, want)
    assert late.count(0) >= 0.8 * len(late)


def pool(kind, size, kernel, stride, granules):
    """Return a pool of a square image without pads."""
    out = (size - kernel) // stride + 1
    return VectorCommand(
        kind=kind,
        rows=out,
        columns=out,
        sources=(Source(base=0, across=stride * granules, down=stride * size * granules),),
        target=Target(base=0, pitch=granules, granules=granules),
        bounds=Bounds(height=size, width=size, stride_y=stride, stride_x=stride),
        taps=kernel,
        kernel_columns=kernel,
        column_step=1,
        column_granules=granules,
    )


@pytest.mark.parametrize(
    ("kernel", "stride", "steps"), [(3, 2, 3), (2, 2, 2), (3, 1, 6), (2, 1, 2), (5, 3, 10), (7, 7, 28)]
)
def test_steps_of_a_maximum(kernel, stride, steps):
    """Both ports read, and no column twice where windows share one."""
    config = VectorConfig(shape=GranuleShape())
    command = pool(VectorKind.MAX, 56, kernel, stride, 4)
    loops = loops_of(config, command)
    assert loops.reads == command.rows * (command.columns + loops.reuse) * steps
    assert loops.results == command.rows * command.columns


def test_a_mean_reads_each_column_once_a_window():
    config = VectorConfig(shape=GranuleShape())
    command = pool(VectorKind.MEAN, 7, 7, 1, 128)
    assert loops_of(config, command).reads == 32 * 7 * 4
    assert cycles(config, command) < cycles(config, replace(command, rows=2)) - 32 * 28 + 1
