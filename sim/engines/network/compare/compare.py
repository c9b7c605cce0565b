"""Networks on the kernel, layer by layer through memory, and on a published processor: figures and tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table

from hw.board import Board
from hw.config import config_dict
from hw.network.config import NetworkConfig
from sim.compare.table import STYLES, Column, Columns, table
from sim.engines.network.compare.published import CLOCK_MHZ, DPU, MULTIPLIERS
from sim.engines.network.compare.signals import Difference, Signal
from sim.report.text import MISSING, percent, sized, times, whole

WHOLE, LAYERS, PUBLISHED = "Loomwork, whole", "Loomwork, layer by layer", "AMD DPU, 2 x B4096"
METHODS = (WHOLE, LAYERS, PUBLISHED)


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Predicted cycles and bytes of a network."""

    cycles: int
    moved_bytes: int


@dataclass(frozen=True, kw_only=True)
class NetworkRow:
    """One network on the kernel."""

    name: str
    macs: int
    compulsory_bytes: int  #: Inputs, outputs and parameters once.
    launches: int  #: Layer by layer.
    whole: Cost
    layers: Cost


@dataclass(frozen=True, kw_only=True)
class NetworkFigures:
    """One way to run one network."""

    #: ``source`` is predicted or published.
    network: str
    method: str
    source: str
    cycles: float
    images_a_second: float  #: One image after the other at the clock.
    multipliers: int
    utilization: float  #: Multiply-accumulates over all slots of all cycles.
    #: None where it is not published.
    moved_bytes: int | None = None
    over_compulsory: float | None = None


@dataclass(frozen=True, kw_only=True)
class NetworkComparison:
    """All networks, and the tensors of one of them beside its float model and a reference."""

    board: Board
    config: NetworkConfig
    rows: Sequence[NetworkRow]
    signals: Sequence[Signal] = ()
    #: Of a reference: whether there is one, and the first tensor that differs.
    referenced: bool = False
    difference: Difference | None = None

    @property
    def figures(self) -> list[NetworkFigures]:
        """The figures of every method at every network that has them."""
        return [figures for row in self.rows for figures in self._of(row)]

    def of(self, network: str, method: str) -> NetworkFigures | None:
        """Return one method at one network."""
        named = (each for each in self.figures if (each.network, each.method) == (network, method))
        return next(named, None)

    def _of(self, row: NetworkRow) -> Iterable[NetworkFigures]:
        slots = self.config.matrix.inputs * self.config.columns
        for method, cost in ((WHOLE, row.whole), (LAYERS, row.layers)):
            yield NetworkFigures(
                network=row.name,
                method=method,
                source="predicted",
                cycles=cost.cycles,
                images_a_second=self.board.clock_mhz * 1e6 / cost.cycles,
                multipliers=slots,
                utilization=row.macs / (slots * cost.cycles),
                moved_bytes=cost.moved_bytes,
                over_compulsory=cost.moved_bytes / row.compulsory_bytes,
            )
        if (published := DPU.get(row.name)) is not None:
            yield NetworkFigures(
                network=row.name,
                method=PUBLISHED,
                source="published",
                cycles=published.cycles,
                images_a_second=published.images_a_second,
                multipliers=MULTIPLIERS,
                utilization=row.macs / (MULTIPLIERS * published.cycles),
            )

    def document(self, known: Mapping[str, NetworkRow]) -> dict[str, Any]:
        """Return the file's content; ``known``: rows by their keys."""
        return {
            "board": self.board.name,
            "config": config_dict(self.config),
            "published_clock_mhz": CLOCK_MHZ,
            "figures": [asdict(each) for each in self.figures],
            "signals": [
                asdict(each) | {"decibels": None if abs(each.decibels) == float("inf") else each.decibels}
                for each in self.signals
            ],
            "difference": None if self.difference is None else asdict(self.difference),
            "rows": {key: asdict(row) for key, row in known.items()},
        }


def rows_of(document: Any) -> dict[str, NetworkRow]:
    """Return the rows of a file by their keys."""
    return {
        key: NetworkRow(**row | {name: Cost(**row[name]) for name in ("whole", "layers")})
        for key, row in document["rows"].items()
    }


COLUMNS: Columns[NetworkFigures] = (
    Column("Network", lambda each: each.network, text=True),
    Column("Method", lambda each: each.method, text=True),
    Column("Source", lambda each: each.source, text=True),
    Column("Cycles", lambda each: whole(round(each.cycles))),
    Column("Images a second", lambda each: f"{each.images_a_second:,.0f}"),
    Column("Multipliers", lambda each: whole(each.multipliers)),
    Column("Useful", lambda each: percent(each.utilization)),
    Column("Bytes moved", lambda each: MISSING if each.moved_bytes is None else sized(each.moved_bytes)),
    Column(
        "Over compulsory",
        lambda each: MISSING if each.over_compulsory is None else times(each.over_compulsory, places=2),
    ),
)
SIGNALS: Columns[Signal] = (
    Column("Operator", lambda each: each.operator, text=True),
    Column("Kind", lambda each: each.kind, text=True),
    Column("Tensor of the float model", lambda each: each.tensor, text=True),
    Column("Signal to noise, dB", lambda each: f"{each.decibels:.1f}"),
    Column("Largest error, steps", lambda each: f"{each.largest:.1f}"),
)


def network_tables(comparison: NetworkComparison) -> list[Table]:
    """Return the tables for the terminal."""
    found = [
        table(
            f"Networks on {comparison.board.name}",
            COLUMNS,
            comparison.figures,
            style=lambda each: STYLES.get(each.source, ""),
            ends_section=lambda each: each.method == (PUBLISHED if each.network in DPU else LAYERS),
        )
    ]
    if comparison.signals:
        found.append(table("Tensors beside the float model", SIGNALS, comparison.signals))
    return found


def said(comparison: NetworkComparison) -> str:
    """Return a sentence on the reference."""
    found = comparison.difference
    if found is None:
        return "No tensor differs from the reference." if comparison.referenced else ""
    row, column, channel = found.at
    return (
        f"First difference: {found.tensor} of operator {found.operator}, {found.differ:,} of "
        f"{found.elements:,} elements, by {found.largest} steps at most; the first at row {row}, "
        f"column {column}, channel {channel}."
    )
