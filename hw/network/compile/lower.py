"""Lowers the steps of a planned network to commands, tap tiles, weights and tables.

An output row range whose taps lie in the same bands of each input is one command.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hw.network.commands import (
    Addition,
    Bounds,
    Command,
    MatrixCommand,
    Source,
    TapTile,
    Target,
    VectorCommand,
    VectorKind,
)
from hw.network.compile.bands import Band, Bands
from hw.network.compile.columns import Columns, TapGranule, columns_of, packets, window_of
from hw.network.compile.form import GRANULE, WORD_GRANULES, Form
from hw.network.compile.operands import Operands
from hw.network.compile.planning import row_window
from hw.network.compile.steps import Step, Steps, Work
from hw.network.compile.tokens import TokenLowering
from hw.network.graph import integers
from hw.network.graph.network import (
    Attention,
    AveragePool,
    Convolution,
    LayerNorm,
    MaxPool,
    Operator,
    Product,
    Softmax,
    Sum,
    Table,
    TokenMean,
    Value,
    Window,
)
from hw.network.graph.products import product_rule
from hw.network.graph.sums import sum_rule, wide_sum_rule
from hw.network.normalization import ChannelRows


@dataclass(frozen=True, kw_only=True, eq=False)
class Lowered:
    """The commands of each step of a plan, and all that they refer to."""

    commands: tuple[tuple[Command, ...], ...]
    operators: tuple[tuple[str, ...], ...]  #: The operator's name, for each command.
    taps: tuple[TapTile, ...]
    passes: tuple[NDArray[np.uint8], ...]  #: Packets, each of shape ``(beats, BEAT_BYTES)``.
    tables: tuple[NDArray[np.int8], ...]  #: 256 results each.
    exponentials: tuple[NDArray[np.int64], ...]  #: 256 exponentials each.
    columns: int  #: Of the array.
    norms: tuple[ChannelRows, ...] = ()  #: Factors of the channels of LayerNorms.


class Lowering:
    """Collects commands; equal taps, passes and tables are kept once.

    ``packs``: whether weights are packed; passes are empty otherwise.
    """

    def __init__(self, steps: Steps, *, columns: int, packs: bool = True) -> None:
        self._steps = steps
        self._columns = columns
        self._packs = packs
        self._taps: list[TapTile] = []
        self._tap_blocks: dict[tuple[TapTile, ...], int] = {}
        self._passes: dict[tuple[str, int], tuple[int, NDArray[np.uint8]]] = {}
        self._tables: dict[bytes, int] = {}
        self._exponentials: dict[float, int] = {}
        self._tokens = TokenLowering(steps, taps=self._taps_of)
        self._commands: list[tuple[Command, ...]] = []
        self._operators: list[tuple[str, ...]] = []

    def add(self, step: Step, inputs: dict[str, Bands], output: Band) -> None:
        """Lower one step of the plan, which makes the rows of ``output``."""
        found = [
            (command, work.operator.name)
            for work in step.works
            for command in self._work(step, work, inputs, output)
        ]
        self._commands.append(tuple(command for command, _ in found))
        self._operators.append(tuple(name for _, name in found))

    def lowered(self) -> Lowered:
        """Return all that was added."""
        return Lowered(
            commands=tuple(self._commands),
            operators=tuple(self._operators),
            taps=tuple(self._taps),
            passes=tuple(packet for _, packet in self._passes.values()),
            tables=tuple(np.frombuffer(table, np.int8) for table in self._tables),
            exponentials=tuple(integers.exponentials(scale) for scale in self._exponentials),
            columns=self._columns,
            norms=self._tokens.norms,
        )

    def _work(self, step: Step, work: Work, inputs: dict[str, Bands], output: Band) -> Iterator[Command]:
        names = work.inputs
        windows = [row_window(self._steps, work, name) for name in names]
        bands = [inputs[name] for name in names]
        heights = [self._steps.forms[name].rows for name in names]
        for first, last in _segments(output.first, output.last, windows, bands, heights):
            if isinstance(work.operator, Convolution):
                yield from self._matrix(step, work, bands, output, range(first, last))
            elif isinstance(work.operator, (LayerNorm, Attention, TokenMean)):
                yield from self._tokens.commands(step, work, bands, output)
            elif isinstance(work.operator, Sum) and self._steps.values[work.operator.output].bits == 16:
                command = self._vector(step, work, bands, output, range(first, last))
                yield from self._tokens.sums(work.operator, command)
            else:
                yield self._vector(step, work, bands, output, range(first, last))

    def _target(
        self, step: Step, work: Work, output: Band, first: int, granule: int, granules: int
    ) -> Target:
        """Return where the results from output row ``first`` on go: ``granules`` from ``granule`` on."""
        form, value = self._steps.forms[step.output], self._steps.values[work.operator.output]
        base = output.address + (first - output.first) * form.row_granules + work.first_granule + granule
        return Target(
            base=base,
            pitch=form.granules,
            granules=granules,
            zero=value.zero,
            low=work.operator.low,
            high=work.operator.high,
        )

    def _source(self, name: str, window: Window | None, bands: Bands, first: int) -> tuple[Source, list[int]]:
        """Return a source for output rows from ``first`` on, and for each row of the window the address that
        its band adds.
        """
        form, zero = self._steps.forms[name], self._steps.values[name].zero
        if window is None:
            return Source(base=bands[0].address, zero=zero), [0]
        origins = []
        for tap in range(window.kernel[0]):
            row = first * window.strides[0] + tap * window.dilations[0] - window.pads[0]
            band = _holding(bands, min(max(row, 0), form.rows - 1))
            origins.append(band.address - band.first * form.row_granules)
        source = Source(
            base=origins[0] + first * window.strides[0] * form.row_granules,
            across=window.strides[1] * form.granules,
            down=window.strides[0] * form.row_granules,
            zero=zero,
        )
        return source, [origin - origins[0] for origin in origins]

    def _taps_of(self, tiles: Iterable[TapTile]) -> tuple[int, int]:
        """Return the first row and the number of rows of the tap table that hold these tiles."""
        block = tuple(tiles)
        if block not in self._tap_blocks:
            self._tap_blocks[block] = len(self._taps)
            self._taps += block
        return self._tap_blocks[block], len(block)

    def _matrix(
        self, step: Step, work: Work, bands: list[Bands], output: Band, rows: range
    ) -> Iterator[MatrixCommand]:
        convolution = work.operator
        assert isinstance(convolution, Convolution)
        name, steps = convolution.inputs[0], self._steps
        form, made = steps.forms[name], steps.forms[step.output]
        window = window_of(convolution, form)
        source, shifts = self._source(name, window, bands[0], rows.start)
        residual = addition = None
        after = steps.values[convolution.output]
        if work.sum is not None:
            after = steps.values[work.sum.output]
            residual, _ = self._source(work.residual, Window(), bands[-1], rows.start)
            position = work.sum.inputs.index(convolution.output)
            operands = [steps.values[each] for each in (convolution.output, work.residual)]
            addition = _addition(operands, after, last=work.sum.last ^ position)
        size = after.bits // 8
        tables: list[int] = []
        parts = list(columns_of(convolution, form, self._columns))
        if work.table is not None:
            tables = self._tables_of(work.table)
        if isinstance(convolution, Operands) or len(tables) > 1:
            parts = [tile for part in parts for tile in _tiles(part, self._columns)]
        for number, part in enumerate(parts):
            first_granule, granules = part.first * size // GRANULE, -(-part.count * size // GRANULE)
            # Commands of one pixel share the packets of the others.
            twice = (
                part.count <= self._columns // 2
                and after.bits == 8
                and self._columns % (2 * GRANULE) == 0
                and made.granules == granules
                and (residual is None or residual.across == granules)
            )
            halves = twice and len(rows) * made.columns > 1
            tiles = [_tile(taps, form, window, shifts, rows.start) for taps in part.tiles]
            first_tap, taps = self._taps_of(tiles)
            yield MatrixCommand(
                rows=len(rows),
                columns=made.columns,
                source=source,
                bounds=Bounds(
                    height=form.rows,
                    width=form.columns,
                    stride_y=window.strides[0],
                    stride_x=window.strides[1],
                ),
                first_tap=first_tap,
                taps=taps,
                group_step=part.group_step,
                column_tiles=-(-part.count // (self._columns // (1 + halves))),
                target=self._target(step, work, output, rows.start, first_granule, granules),
                halves=halves,
                weights=self._pass(convolution, part, form, copies=1 + twice),
                residual=residual,
                addition=addition,
                sum_target=(after.zero, work.sum.low, work.sum.high) if work.sum else (0, -128, 127),
                table=tables[number % len(tables)] if tables else -1,
                bits=after.bits,
                shifts=_shifts(steps.values[name], part.tiles),
            )

    def _pass(self, convolution: Convolution, part: Columns, form: Form, *, copies: int) -> int:
        key = (convolution.output, part.first)
        if not self._packs:
            return 0
        if key not in self._passes:
            before = self._steps.values[convolution.inputs[0]]
            after = self._steps.values[convolution.output]
            made = packets(
                convolution,
                part,
                form,
                before,
                after,
                width=self._columns // copies,
                copies=copies,
            )
            self._passes[key] = len(self._passes), made
        return self._passes[key][0]

    def _tables_of(self, operator: Table) -> list[int]:
        """Return the index of an operator's table, or of each group's, clamped as its results are."""
        clamped = np.clip(operator.results, operator.low, operator.high).astype(np.int8)
        rows = clamped.reshape(-1, 256)
        return [self._tables.setdefault(row.tobytes(), len(self._tables)) for row in rows]

    def _vector(self, step: Step, work: Work, bands: list[Bands], output: Band, rows: range) -> VectorCommand:
        operator, steps = work.operator, self._steps
        name, before, after = (
            operator.inputs[0],
            steps.values[operator.inputs[0]],
            steps.values[operator.output],
        )
        form, made = steps.forms[name], steps.forms[step.output]
        window = row_window(steps, work, name) or Window()
        source, shifts = self._source(name, window, bands[0], rows.start)
        sources = [source]
        if len(operator.inputs) > 1:
            other = operator.inputs[1]
            sources.append(self._source(other, row_window(steps, work, other), bands[1], rows.start)[0])
        tiles = []
        for tap in range(window.kernel[0]):
            granule = TapGranule(row=tap, column=0, granule=0)
            tiles.append(_tile((granule,) * 4, form, window, shifts, rows.start))
        first_tap, taps = self._taps_of(tiles)
        kind, parts = self._parts(operator, [steps.values[each] for each in operator.inputs], after)
        if isinstance(operator, Softmax):
            parts["channels"] = before.shape[2]
        return VectorCommand(
            kind=kind,
            rows=len(rows),
            columns=made.columns,
            sources=tuple(sources),
            target=self._target(step, work, output, rows.start, 0, form.granules),
            bounds=Bounds(
                height=form.rows, width=form.columns, stride_y=window.strides[0], stride_x=window.strides[1]
            ),
            first_tap=first_tap,
            taps=taps,
            kernel_columns=window.kernel[1],
            column_step=window.dilations[1],
            column_granules=window.dilations[1] * form.granules,
            **parts,
        )

    def _parts(self, operator: Operator, before: list[Value], after: Value) -> tuple[VectorKind, dict]:
        """Return the kind of an element-wise operator or pool, and the numbers it needs."""
        scales, scale = [value.scale for value in before], after.scale
        if isinstance(operator, Sum) and after.bits == 16:
            return VectorKind.ADD16, {"addition": _addition(before, after, last=0)}
        if isinstance(operator, Sum):
            return VectorKind.ADD, {"addition": _addition(before, after, last=operator.last)}
        if isinstance(operator, Product):
            rule = product_rule(before[0], before[1], after)
            parts = {"scales": (rule.scale,), "exceptions": rule.exceptions, "zero_first": True}
            return VectorKind.MULTIPLY, parts
        if isinstance(operator, AveragePool):
            most = operator.window.kernel[0] * operator.window.kernel[1]
            padded = any(operator.window.pads) and not operator.counts_pads
            counts = np.arange(1 if padded else most, most + 1)
            factors = integers.mean_scale(scales[0], counts, scale)
            return VectorKind.MEAN, {"scales": tuple(map(float, factors)), "zero_first": operator.zero_first}
        if isinstance(operator, Softmax):
            index = self._exponentials.setdefault(scales[0], len(self._exponentials))
            return VectorKind.SOFTMAX, {"table": index, "steps": integers.softmax_units(scale)}
        if isinstance(operator, Table):
            (table,) = self._tables_of(operator)
            return VectorKind.TABLE, {"table": table}
        assert isinstance(operator, MaxPool)
        return VectorKind.MAX, {}


def _addition(operands: Sequence[Value], result: Value, *, last: int) -> Addition:
    """Return a sum of two values; ``last``: the operand that onnxruntime adds last."""
    if result.bits == 16:
        rule = wide_sum_rule(operands[0], operands[1], result)
    else:
        rule = sum_rule(operands[0], operands[1], result, last=last)
    return Addition(first=rule.first, second=rule.second, shift=rule.shift, exceptions=rule.exceptions)


def _tiles(columns: Columns, width: int) -> Iterator[Columns]:
    """Cut columns without groups into column tiles."""
    for at in range(0, columns.count, width):
        yield replace(columns, first=columns.first + at, count=min(width, columns.count - at))


def _shifts(before: Value, tiles: Sequence[Sequence[TapGranule]]) -> tuple[int, ...]:
    """Return the left shift of each tap's products, where the input has groups of scales."""
    if not before.group_shifts:
        return ()
    return tuple(int(before.lifts[taps[0].granule * GRANULE]) for taps in tiles)


def _holding(bands: Bands, row: int) -> Band:
    return next(band for band in bands if band.first <= row < band.last)


def _segments(
    first: int, last: int, windows: list[Window | None], bands: list[Bands], heights: list[int]
) -> Iterator[tuple[int, int]]:
    """Cut output rows where a tap moves to another band of an input."""

    def key(row: int) -> tuple[int, ...]:
        return tuple(
            _holding(
                some, min(max(row * w.strides[0] + tap * w.dilations[0] - w.pads[0], 0), height - 1)
            ).first
            for w, some, height in zip(windows, bands, heights, strict=True)
            if w is not None and len(some) > 1
            for tap in range(w.kernel[0])
        )

    for _, rows in itertools.groupby(range(first, last), key):
        found = list(rows)
        yield found[0], found[-1] + 1


def _tile(taps: Sequence[TapGranule], form: Form, window: Window, shifts: list[int], first: int) -> TapTile:
    """Return the row of the tap table for neighbouring granules, for output rows from ``first`` on."""
    tap = taps[0]
    row = tap.row * window.dilations[0] - window.pads[0]
    columns = [each.column * window.dilations[1] - window.pads[1] for each in taps]
    return TapTile(
        offset=shifts[tap.row] + row * form.row_granules + columns[0] * form.granules + tap.granule,
        row=row + first * window.strides[0],
        columns=(*columns, *[0] * (WORD_GRANULES - len(columns))),
        valid=tuple(number < len(taps) for number in range(WORD_GRANULES)),
    )
