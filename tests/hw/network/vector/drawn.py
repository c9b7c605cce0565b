"""Random commands of each kind, with ties, extremes, and windows over the image's border."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np

from hw.network.commands import (
    Addition,
    Bounds,
    Source,
    TapTile,
    Target,
    VectorCommand,
    VectorKind,
)
from hw.network.compile.lower import Lowered
from hw.network.graph import integers
from hw.network.normalization import ChannelRows
from tests.hw.network.vector.bench import GRANULES, Program

#: Granules of the area of each operand and of the results, behind those into which small results may wrap.
WRAP = 48
AREA = (GRANULES - WRAP) // 3
#: Kinds on bytes.
BYTE_KINDS = tuple(VectorKind)[: VectorKind.SOFTMAX + 1]


class Drawn:
    """Draws commands, and collects the tables that they refer to."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(f"vector {seed}")
        self.numbers = np.random.default_rng(seed)
        self.taps: list[TapTile] = []
        self.norm_rows: list[ChannelRows] = []
        self.tables = [self.numbers.integers(-128, 128, 256).astype(np.int8) for _ in range(3)]
        self.exponentials = [integers.exponentials(self.rng.choice([0.01, 0.05, 0.3, 2.0])) for _ in range(2)]

    def program(self, commands: list[VectorCommand]) -> Program:
        """Return commands with all tables."""
        lowered = Lowered(
            commands=(),
            operators=(),
            taps=tuple(self.taps),
            passes=(),
            tables=tuple(self.tables),
            exponentials=tuple(self.exponentials),
            columns=64,
            norms=tuple(self.norm_rows),
        )
        return Program(commands=commands, lowered=lowered)

    def memory(self) -> np.ndarray:
        """Draw all granules; some are equal to their neighbours, or at a bound."""
        found = self.numbers.integers(-128, 128, (GRANULES, 16)).astype(np.int8)
        for value in (-128, 127, 0):
            found[self.numbers.random(GRANULES) < 0.05] = value
        return found

    def command(self, kind: VectorKind) -> VectorCommand:
        """Draw a command of a kind."""
        while True:
            found = self._window(kind) if kind in (VectorKind.MAX, VectorKind.MEAN) else self._plain(kind)
            if found is not None:
                return found

    def _byte(self) -> int:
        return self.rng.choice([-128, 127, 0, *(self.rng.randrange(-128, 128) for _ in range(5))])

    def _target(self, rows: int, columns: int, granules: int) -> Target | None:
        pitch = granules + self.rng.choice([0, 0, 1, 3])
        if rows * columns * pitch > AREA:
            return None
        low, high = sorted([self._byte(), self._byte()])
        if self.rng.random() < 0.6:
            low, high = -128, 127
        size = rows * columns * pitch
        most = AREA if size <= WRAP and self.rng.random() < 0.2 else AREA - size + 1
        base = WRAP + 2 * AREA + self.rng.randrange(most)
        return Target(base=base, pitch=pitch, granules=granules, zero=self._byte(), low=low, high=high)

    def _source(self, area: int, rows: int, columns: int, granules: int) -> tuple[int, int] | None:
        """Return base and pitch of a tensor."""
        pitch = granules + self.rng.choice([0, 0, 1, 2])
        if rows * columns * pitch > AREA:
            return None
        return WRAP + area * AREA + self.rng.randrange(AREA - rows * columns * pitch + 1), pitch

    def _scale(self, size: float) -> float:
        """Draw a factor that makes of ``size`` about an int8."""
        value = self.rng.choice([100 / size * self.rng.random(), 2.0 ** self.rng.randrange(-9, 1)])
        return float(np.float32(value))

    def _window(self, kind: VectorKind) -> VectorCommand | None:
        rng = self.rng
        kernel = rng.choice([(1, 1), (2, 2), (3, 3), (3, 3), (1, 2), (3, 1), (2, 4), (3, 5), (7, 7)])
        strides = rng.choice([(1, 1), (2, 2), (2, 2), (1, 2), (3, 3)])
        dilation = rng.choice([1, 1, 1, 2])
        pads = rng.choice([0, 0, 1, 2]), rng.choice([0, 0, 1, 2])
        rows, columns, granules = rng.randrange(1, 5), rng.randrange(1, 7), rng.randrange(1, 6)
        sizes = [
            max(1, (out - 1) * stride + (taps - 1) * dilation + 1 - pad - rng.choice([0, 0, 1, pad]))
            for out, stride, taps, pad in zip((rows, columns), strides, kernel, pads, strict=True)
        ]
        place, target = self._source(0, *sizes, granules), self._target(rows, columns, granules)
        if place is None or target is None or len(self.taps) + kernel[0] > 128:
            return None
        base, pitch = place
        first_tap = len(self.taps)
        for tap in range(kernel[0]):
            row = tap * dilation - pads[0]
            offset = row * sizes[1] * pitch - pads[1] * pitch
            self.taps.append(TapTile(offset=offset, row=row, columns=(-pads[1],) * 4, valid=(True,) * 4))
        scales: tuple[float, ...] = ()
        if kind is VectorKind.MEAN:
            most = kernel[0] * kernel[1]
            counted = rng.random() < 0.5
            scales = tuple(self._scale(100.0 * n) for n in range(1 if counted else most, most + 1))
        return VectorCommand(
            kind=kind,
            rows=rows,
            columns=columns,
            sources=(
                Source(
                    base=base,
                    across=strides[1] * pitch,
                    down=strides[0] * sizes[1] * pitch,
                    zero=self._byte(),
                ),
            ),
            target=target,
            bounds=Bounds(height=sizes[0], width=sizes[1], stride_y=strides[0], stride_x=strides[1]),
            first_tap=first_tap,
            taps=kernel[0],
            kernel_columns=kernel[1],
            column_step=dilation,
            column_granules=dilation * pitch,
            scales=scales,
            zero_first=rng.random() < 0.5,
        )

    def _plain(self, kind: VectorKind) -> VectorCommand | None:
        rng = self.rng
        rows, columns, granules = rng.randrange(1, 4), rng.randrange(1, 6), rng.randrange(1, 10)
        if kind is VectorKind.SOFTMAX:
            rows, columns = rng.choice([(1, 1), (1, 2), (2, 1)])
            granules = rng.choice([3, 5])
        places = [self._source(area, rows, columns, granules) for area in range(2)]
        target = self._target(rows, columns, granules)
        if None in places or target is None or len(self.taps) > 127:
            return None
        sources = []
        for base, pitch in places:
            across, down = pitch, columns * pitch
            if len(sources) and rng.random() < 0.2:
                across = down = 0  # one pixel for all
            sources.append(Source(base=base, across=across, down=down, zero=self._byte()))
        first_tap = len(self.taps)
        # Only the first source has the tap's offset.
        offset = rng.randrange(-9, 10)
        sources[0] = replace(sources[0], base=sources[0].base - offset)
        self.taps.append(TapTile(offset=offset, row=0, columns=(0,) * 4, valid=(True,) * 4))
        parts: dict = {}
        if kind is VectorKind.ADD:
            ties = rng.random() < 0.4
            shift = rng.choice([24, 24, 24, rng.randrange(9, 25)])
            factors = [1 << shift - 1, 1 << shift - 2] if ties else [rng.getrandbits(26) for _ in range(2)]
            if rng.random() < 0.2:
                factors[rng.randrange(2)] = rng.choice([0, (1 << 26) - 1])
            pairs = [(self._byte(), self._byte()) for _ in range(rng.randrange(3))]
            parts["addition"] = Addition(
                first=factors[0], second=factors[1], shift=shift, exceptions=tuple(pairs)
            )
        elif kind is VectorKind.MULTIPLY:
            parts["scales"] = (self._scale(10_000.0),)
            parts["zero_first"] = rng.random() < 0.7
        elif kind is VectorKind.TABLE:
            parts["table"] = rng.randrange(len(self.tables))
        else:
            parts["table"] = rng.randrange(len(self.exponentials))
            parts["channels"] = rng.randrange(16 * (granules - 1) + 1, 16 * granules + 1)
            parts["steps"] = rng.choice([65536, 65536, 65280, rng.getrandbits(20) + 1, (1 << 27) - 1])
        return VectorCommand(
            kind=kind,
            rows=rows,
            columns=columns,
            sources=tuple(sources[: 1 + (kind in (VectorKind.ADD, VectorKind.MULTIPLY))]),
            target=target,
            bounds=Bounds(height=rows, width=columns),
            first_tap=first_tap,
            kernel_columns=1,
            column_step=1,
            column_granules=places[0][1],
            **parts,
        )
