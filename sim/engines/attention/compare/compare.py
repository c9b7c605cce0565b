"""Attention beside published schedules: the figures of all lengths, as tables and as files."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from hw.errors import InputError
from sim.engines.attention.baselines import Machine, Work, flash_law_bytes
from sim.engines.attention.compare.rows import OURS, SCHEDULES, AttentionRow, Measured
from sim.plans.facts import sized
from sim.report.figures import percent, signed_percent

#: Value of ``format`` in the comparison's JSON.
COMPARE_FORMAT = "loomwork-compare-attention/1"
#: All that is compared, the engine first.
METHODS = (OURS, *SCHEDULES)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What all rows have in common.

    Parameters
    ----------
    board
        Its name.
    clock_mhz
        Of the engine on it.
    config
        The engine's configuration, every key.
    heads
        Attention heads, back to back.
    size
        Elements of a query, key, value and result.
    output_bytes
        Of an element of the results.
    machine
        As many multipliers, as much memory on chip and as much bandwidth as the engine has, for the others.
    """

    board: str
    clock_mhz: float
    config: Mapping[str, Any]
    heads: int
    size: int
    output_bytes: int
    machine: Machine

    def work(self, tokens: int) -> Work:
        """Give the work of a length."""
        return Work(
            heads=self.heads,
            queries=tokens,
            keys=tokens,
            size=self.size,
            output_bytes=self.output_bytes,
        )


@dataclass(frozen=True, kw_only=True)
class Figures:
    """One method at one length.

    Members
    -------
    tokens, method, source
        ``source`` is measured, predicted or formula.
    cycles, milliseconds
        At the board's clock.
    utilization
        Useful multiply-accumulates over all slots of all cycles.
    moved_bytes
        Across the memory ports.
    over_compulsory
        Bytes over those of every input and result once.
    over_flash_law
        Bytes over ``N^2 d^2 / M``; that law has no published constant.
    bytes_per_cycle
        Bandwidth that the cycles ask for.
    """

    tokens: int
    method: str
    source: str
    cycles: float
    milliseconds: float
    utilization: float
    moved_bytes: int
    over_compulsory: float
    over_flash_law: float
    bytes_per_cycle: float


@dataclass(frozen=True)
class Comparison:
    """Rows of any number of lengths.

    Raises
    ------
    InputError
        When there is no row, or two of one length.
    """

    setting: Setting
    rows: tuple[AttentionRow, ...]

    def __post_init__(self) -> None:
        if not self.rows:
            raise InputError("rows of a comparison", 0, "at least one")
        lengths = [row.tokens for row in self.rows]
        for tokens in lengths:
            if lengths.count(tokens) > 1:
                raise InputError("rows of a comparison", tokens, "one for a length")

    @cached_property
    def figures(self) -> tuple[Figures, ...]:
        """Give every method at every length, lengths in the order of the rows."""
        return tuple(self.of(row, method) for row in self.rows for method in METHODS)

    def of(self, row: AttentionRow, method: str) -> Figures:
        """Give the figures of a method in a row."""
        work, machine, cost = self.setting.work(row.tokens), self.setting.machine, row.cost(method)
        return Figures(
            tokens=row.tokens,
            method=method,
            source=row.source(method),
            cycles=cost.cycles,
            milliseconds=cost.cycles / self.setting.clock_mhz / 1e3,
            utilization=cost.utilization(work, machine),
            moved_bytes=cost.moved_bytes,
            over_compulsory=cost.moved_bytes / work.compulsory_bytes,
            over_flash_law=cost.moved_bytes / flash_law_bytes(work, machine),
            bytes_per_cycle=cost.moved_bytes / cost.cycles,
        )

    @property
    def measured(self) -> tuple[AttentionRow, ...]:
        """The rows with a co-simulation."""
        return tuple(row for row in self.rows if row.measured)

    @property
    def exact(self) -> bool:
        """Whether every co-simulation gave the golden model's bits."""
        return all(row.measured.exact for row in self.rows if row.measured)

    def to_json(self, others: Mapping[str, Measured] | None = None) -> str:
        """Give the text of the comparison's file.

        Parameters
        ----------
        others
            Measurements that are of none of the rows, by key; they are kept in the file.
        """
        measured = {row.key: asdict(row.measured) for row in self.rows if row.measured}
        measured |= {key: asdict(found) for key, found in (others or {}).items()}
        document = {
            "format": COMPARE_FORMAT,
            "setting": asdict(self.setting),
            "figures": [asdict(figures) for figures in self.figures],
            "measured": measured,
        }
        return json.dumps(document, indent=1, allow_nan=False) + "\n"

    def to_csv(self) -> str:
        """Give a line for each of `figures`, under a line with their names."""
        text = io.StringIO()
        writer = csv.DictWriter(text, list(Figures.__dataclass_fields__), lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(figures) for figures in self.figures)
        return text.getvalue()


COLUMNS = (
    "tokens",
    "method",
    "from",
    "cycles",
    "ms",
    "useful MACs",
    "off-chip bytes",
    "over compulsory",
    "over N²d²/M",
    "bytes a cycle",
)


def figure_cells(figures: Figures) -> list[str]:
    """Give figures as text, in the order of `COLUMNS`."""
    return [
        f"{figures.tokens:,}",
        figures.method,
        figures.source,
        f"{figures.cycles:,.0f}",
        f"{figures.milliseconds:,.3f}",
        percent(figures.utilization, places=2),
        sized(figures.moved_bytes),
        f"{figures.over_compulsory:,.2f} x",
        f"{figures.over_flash_law:,.2f} x",
        f"{figures.bytes_per_cycle:,.2f}",
    ]


MODEL_COLUMNS = (
    "tokens",
    "cycles, measured",
    "predicted",
    "error",
    "bytes, measured",
    "predicted",
    "bit-exact",
    "seconds",
)


def model_cells(row: AttentionRow) -> list[str]:
    """Give a measured row beside its prediction as text, in the order of `MODEL_COLUMNS`."""
    assert row.measured is not None
    assert row.prediction_error is not None
    return [
        f"{row.tokens:,}",
        f"{row.measured.cycles:,}",
        f"{row.predicted.cycles:,.0f}",
        signed_percent(row.prediction_error),
        f"{row.measured.moved_bytes:,}",
        f"{row.predicted.moved_bytes:,}",
        "yes" if row.measured.exact else "NO",
        f"{row.measured.seconds:.1f}",
    ]


_STYLES = {"measured": "bold green", "predicted": "green"}


def attention_tables(comparison: Comparison) -> tuple[Table, ...]:
    """Give the tables for a terminal: all methods at all lengths; predictions beside measurements."""
    setting = comparison.setting
    title = (
        f"{setting.heads} heads of {setting.size} on {setting.machine.macs:,} multipliers, {setting.board}"
    )
    table = _table(title, COLUMNS, left=("method", "from"))
    for row in comparison.rows:
        for method in METHODS:
            figures = comparison.of(row, method)
            cells = (Text(cell) for cell in figure_cells(figures))
            table.add_row(*cells, style=_STYLES.get(figures.source, ""), end_section=method == METHODS[-1])
    if not comparison.measured:
        return (table,)
    model = _table("Simulated and predicted", MODEL_COLUMNS, left=())
    for row in comparison.measured:
        assert row.measured is not None
        model.add_row(*map(Text, model_cells(row)), style="" if row.measured.exact else "bold red")
    return table, model


def _table(title: str, columns: tuple[str, ...], left: tuple[str, ...]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")
    for column in columns:
        table.add_column(column, justify="left" if column in left else "right")
    return table
