"""Commands of operators on tokens: LayerNorm, attention, the mean of a segment's tokens.

A LayerNorm's statistics stay in the vector unit: the next LayerNorm of the same pixels uses them again.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from hw.network.commands import (
    Addition,
    Bounds,
    Command,
    Source,
    TapTile,
    Target,
    VectorCommand,
    VectorKind,
)
from hw.network.compile.bands import Band, Bands
from hw.network.compile.form import WORD_GRANULES, Form
from hw.network.compile.heads import attention_commands
from hw.network.compile.steps import Step, Steps, Work
from hw.network.graph.network import Attention, LayerNorm, Sum, TokenMean
from hw.network.graph.norms import norm_rows
from hw.network.graph.sums import wide_mean_rule
from hw.network.normalization import ChannelRows

#: Pixels whose statistics the vector unit keeps.
KEPT_PIXELS = 512
#: Pixels of a sum that is computed while others arrive from memory.
SUM_PIXELS = 32
#: Columns of a mean's window.
_WINDOW_COLUMNS = 128


class TokenLowering:
    """Collects the factors of LayerNorms; each is kept once.

    ``taps``: returns the first row and the number of rows of the tap table that hold some tiles.
    """

    def __init__(self, steps: Steps, *, taps: Callable[[Iterable[TapTile]], tuple[int, int]]) -> None:
        self._steps, self._taps = steps, taps
        self._norms: dict[ChannelRows, int] = {}
        self._kept: tuple[str, int] | None = None  # the value and first pixel of the statistics in the unit

    @property
    def norms(self) -> tuple[ChannelRows, ...]:
        """Factors of LayerNorms, to which commands refer."""
        return tuple(self._norms)

    def commands(self, step: Step, work: Work, bands: list[Bands], output: Band) -> Iterator[Command]:
        """Yield the commands of a work on tokens."""
        operator, steps = work.operator, self._steps
        forms = [steps.forms[name] for name in work.inputs]
        places = [(band[0].address, form) for band, form in zip(bands, forms, strict=True)]
        out = output.address, steps.forms[step.output]
        if isinstance(operator, LayerNorm):
            yield from self._norm(operator, places[0], out)
        elif isinstance(operator, TokenMean):
            yield from self._mean(operator, places[0], out)
        else:
            assert isinstance(operator, Attention)
            yield from attention_commands(
                operator,
                [steps.values[name] for name in operator.inputs],
                steps.values[operator.output],
                places * 3 if work.joined else places,
                out,
            )

    def sums(self, operator: Sum, command: VectorCommand) -> Iterator[VectorCommand]:
        """Yield a sum of int16 in parts, each with its statistics if a LayerNorm reads them."""
        network, after = self._steps.network, self._steps.values[operator.output]
        norms = [each for each in network.operators if isinstance(each, LayerNorm)]
        readers = [each for each in norms if after.name in each.inputs]
        kept = bool(readers) and command.columns <= KEPT_PIXELS
        for first in range(0, command.columns, SUM_PIXELS):
            target, columns = command.target, min(SUM_PIXELS, command.columns - first)
            yield replace(
                command,
                columns=columns,
                sources=tuple(
                    replace(each, base=each.base + first * each.across) for each in command.sources
                ),
                target=replace(target, base=target.base + first * target.pitch),
            )
            if kept:
                _, epsilon = norm_rows(readers[0], after, self._steps.values[readers[0].output])
                yield self._statistics(target.base, target.pitch, first, columns, after.shape[2], epsilon)
        if kept:
            self._kept = after.name, 0

    def _statistics(
        self, base: int, pitch: int, pixel: int, columns: int, channels: int, epsilon: int
    ) -> VectorCommand:
        """Return the command that gathers the statistics of pixels from ``pixel`` on."""
        return VectorCommand(
            kind=VectorKind.STATS,
            rows=1,
            columns=columns,
            sources=(Source(base=base + pixel * pitch, across=pitch),),
            target=Target(base=0, pitch=0, granules=0),
            bounds=Bounds(height=1, width=1),
            first_tap=self._tap(),
            channels=channels,
            epsilon=epsilon,
            pixel=pixel % KEPT_PIXELS,
        )

    def _norm(
        self, operator: LayerNorm, place: tuple[int, Form], out: tuple[int, Form]
    ) -> Iterator[VectorCommand]:
        before, after = (self._steps.values[name] for name in (operator.inputs[0], operator.output))
        tokens, channels = before.shape[1:]
        rows, epsilon = norm_rows(operator, before, after)
        (base, form), (target, made) = place, out
        for first in range(0, tokens, KEPT_PIXELS):
            columns = min(KEPT_PIXELS, tokens - first)
            if self._kept != (before.name, first):
                self._kept = before.name, first
                yield self._statistics(base, form.granules, first, columns, channels, epsilon)
            yield VectorCommand(
                kind=VectorKind.NORM,
                rows=1,
                columns=columns,
                sources=(Source(base=base + first * form.granules, across=form.granules),),
                target=Target(
                    base=target + first * made.granules, pitch=made.granules, granules=made.granules
                ),
                bounds=Bounds(height=1, width=1),
                first_tap=self._tap(),
                channels=channels,
                bits=after.bits,
                norm=self._norms.setdefault(rows, len(self._norms)),
                shift=rows.shift,
            )

    def _mean(
        self, operator: TokenMean, place: tuple[int, Form], out: tuple[int, Form]
    ) -> Iterator[VectorCommand]:
        before, after = (self._steps.values[name] for name in (operator.inputs[0], operator.output))
        (base, form), (target, made) = place, out
        firsts = itertools.accumulate(operator.segments, initial=0)
        counts = [1] * len(operator.segments) if operator.first else operator.segments
        for number, (first, tokens) in enumerate(zip(firsts, counts, strict=False)):
            rule = wide_mean_rule(before, after, count=tokens)
            rows = -(-tokens // _WINDOW_COLUMNS)
            columns = -(-tokens // rows)
            first_tap, taps = self._taps(
                TapTile(
                    offset=row * columns * form.granules,
                    row=0,
                    columns=(row * columns,) * WORD_GRANULES,
                )
                for row in range(rows)
            )
            yield VectorCommand(
                kind=VectorKind.MEAN16,
                rows=1,
                columns=1,
                sources=(Source(base=base + first * form.granules, across=form.granules),),
                target=Target(
                    base=target + number * made.granules, pitch=made.granules, granules=made.granules
                ),
                bounds=Bounds(height=1, width=tokens),
                first_tap=first_tap,
                taps=taps,
                kernel_columns=columns,
                column_step=1,
                column_granules=form.granules,
                addition=Addition(first=rule.first, second=0, shift=rule.shift),
            )

    def _tap(self) -> int:
        """Return the row of the tap table without distance."""
        return self._taps([TapTile(offset=0, row=0, columns=(0,) * WORD_GRANULES)])[0]
