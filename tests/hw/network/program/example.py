"""A program of every kind of row, without a plan behind it."""

import numpy as np

from hw.network.commands import (
    Addition,
    Bounds,
    Core,
    Follow,
    MatrixCommand,
    Source,
    TapTile,
    Target,
    VectorCommand,
    VectorKind,
)
from hw.network.config import NetworkConfig
from hw.network.program.program import Gathered, NetworkProgram, Step, Transfer

CONFIG = NetworkConfig(
    scratchpad_bytes=1 << 14,
    banks=4,
    memory="block",
    columns=32,
    weight_ports=2,
    lanes=32,
    max_steps=60,
    max_transfers=100,
    max_region_bytes=1 << 20,
    max_taps=512,
    vector_taps=64,
    scales=32,
    tables=8,
)


def matrix(**fields):
    """Return a matrix command of two taps, which begin outside of the image."""
    given = {
        "rows": 3,
        "columns": 4,
        "source": Source(base=8, across=1, down=6, zero=-3),
        "bounds": Bounds(height=5, width=6),
        "first_tap": 2,
        "taps": 2,
        "column_tiles": 1,
        "target": Target(base=200, pitch=2, granules=2, zero=5, low=-100),
        "weights": 0,
    }
    return MatrixCommand(**(given | fields))


def vector(kind, **fields):
    """Return a vector command of one row."""
    given = {
        "kind": kind,
        "rows": 2,
        "columns": 5,
        "sources": (Source(base=40, across=1, down=5),),
        "target": Target(base=300, pitch=1, granules=1, zero=-7),
        "bounds": Bounds(height=2, width=5),
    }
    return VectorCommand(**(given | fields))


def example():
    """Return a program of six commands."""
    numbers = np.random.default_rng(0)
    residual = {
        "residual": Source(base=90, across=1, zero=9),
        "addition": Addition(first=3 << 20, second=5 << 19, shift=24, exceptions=((-7, 99),)),
        "sum_target": (4, -50, 60),
    }
    half = {"target": Target(base=500, pitch=1, granules=1), "halves": True, "weights": 1, "taps": 1}
    commands = [
        vector(VectorKind.MAX, taps=2, kernel_columns=2, column_step=1, column_granules=1),
        matrix(),
        matrix(table=2, **residual),
        matrix(first_tap=4, **half),
        vector(VectorKind.MEAN, first_tap=1, scales=(0.5, 0.25, 0.125)),
        vector(VectorKind.TABLE, first_tap=1, table=1),
        vector(VectorKind.MULTIPLY, first_tap=0, sources=(Source(base=1), Source(base=2)), scales=(3.5,)),
        vector(VectorKind.SOFTMAX, first_tap=1, table=1, channels=9, steps=77),
    ]
    return NetworkProgram(
        name="example",
        columns=32,
        scratchpad_bytes=1 << 14,
        steps=tuple(
            Step(
                command=command,
                operator="some",
                planned=n,
                waits=(n // 2, n // 3, 0),
                wait_writes=n // 3,
                wait_reads=n + 1,
                follow=Follow(core=Core.VECTOR, first=n, step=1, tile_step=-3, per_tile=5, tiles=2)
                if n == 3
                else None,
            )
            for n, command in enumerate(commands)
        ),
        reads=tuple(
            Transfer(
                dram_address=1000 + n,
                address=7 * n,
                words=6,
                starts=(n // 2, n // 3, 0),
                others=n // 4,
                gathered=Gathered(rows=2, table=900 + n, table_rows=7) if n == 5 else None,
            )
            for n in range(9)
        ),
        writes=tuple(
            Transfer(dram_address=70 * n, address=255 - n, words=1 + n, starts=(n, n, 0), others=2 * n)
            for n in range(3)
        ),
        taps=(
            TapTile(offset=0, row=0, columns=(0,) * 4),
            TapTile(offset=-6, row=-1, columns=(-1,) * 4),
            TapTile(offset=-7, row=-1, columns=(-1, 0, 1, 2)),
            TapTile(offset=5, row=1, columns=(-1, 0, 0, 0), valid=(True, True, False, False)),
            TapTile(offset=1, row=0, columns=(1, 2, 3, 4)),
        ),
        passes=tuple(numbers.integers(0, 256, (beats, 128)).astype(np.uint8) for beats in (35, 19)),
        tables=tuple(numbers.integers(-128, 128, 256).astype(np.int8) for _ in range(3)),
        exponentials=tuple(numbers.integers(0, 1 << 20, 256) for _ in range(2)),
        inputs=(),
        constants=(),
        outputs=(),
        contents={},
    )
