"""Networks on the kernel, other ways to run them there, and published processors: figures and tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pydantic import TypeAdapter
from rich.table import Table

from hw.board import Board
from hw.config import config_dict
from hw.network.config import NetworkConfig
from sim.compare.simulated import CO_SIMULATIONS, CoSimulation
from sim.compare.table import STYLES, Column, Columns, table
from sim.engines.network.compare.published import (
    CLOCK_MHZ,
    DPU,
    GPT2_MEDIUM_LAYERS,
    MULTIPLIERS,
    TRANSFORMERS,
)
from sim.engines.network.compare.signals import Difference, Signal
from sim.engines.network.compare.split import PUBLISHED_LAUNCH_SECONDS, Link
from sim.report.text import MISSING, percent, sized, times, whole

WHOLE, LAYERS, PUBLISHED = "Loomwork, whole", "Loomwork, layer by layer", "AMD DPU, 2 x B4096"
BARRIERS, TURN = "Loomwork, a barrier a step", "Loomwork, one core at a time"
SPLIT = "Loomwork, attention engine, host between"
#: Ways to run a network on the kernel, and published ones, in the order of figures.
METHODS = (
    *(WHOLE, TURN, BARRIERS, SPLIT, LAYERS, PUBLISHED),
    *dict.fromkeys(peer.method for peers in TRANSFORMERS.values() for peer in peers),
)


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Cycles and bytes of a network, or of a launch."""

    cycles: int
    moved_bytes: int
    microjoules: float | None = None  #: None where it is not predicted.


@dataclass(frozen=True, kw_only=True)
class Launch:
    """A launch of a network that is split at its attentions."""

    name: str
    attention: bool  #: Of the attention engine; otherwise of the array.
    count: int
    predicted: Cost


@dataclass(frozen=True, kw_only=True)
class Split:
    """A network whose attention is a launch of the attention engine."""

    launches: tuple[Launch, ...]
    link: Link
    multipliers: int  #: Of the attention engine.


@dataclass(frozen=True, kw_only=True)
class NetworkRow:
    """Predictions of one network on the kernel."""

    name: str
    tokens: tuple[int, ...] = ()  #: Of each sentence, for a model on tokens.
    macs: int
    compulsory_bytes: int  #: Inputs, outputs and parameters once.
    launches: int  #: Layer by layer.
    #: By the method: `WHOLE` and `LAYERS`; with attention, `BARRIERS` and `TURN`, too.
    ways: Mapping[str, Cost]
    split: Split | None = None


@dataclass(frozen=True, kw_only=True)
class NetworkFigures:
    """One way to run one network."""

    #: ``source`` is measured, predicted, published, or derived from published ones.  Where launches lie apart
    #: it has ``computed``, too: the cycles between them.
    network: str
    method: str
    source: str
    cycles: float
    clock_mhz: float  #: Of these cycles.
    images_a_second: float  #: Images, or bundles of sentences, one after the other at the clock.
    #: None where it is not published.
    multipliers: int | None = None
    utilization: float | None = None  #: Multiply-accumulates over all slots of all cycles.
    moved_bytes: int | None = None
    over_compulsory: float | None = None
    millijoules: float | None = None  #: Of a run, predicted; None of published ones.

    @property
    def milliseconds(self) -> float:
        """Time of a run."""
        return self.cycles / self.clock_mhz / 1e3


@dataclass(frozen=True, kw_only=True)
class Term:
    """A share of the cycles of a network that is split at its attentions."""

    #: ``source`` is measured, predicted, computed or derived.
    network: str
    name: str
    source: str
    count: int
    cycles: int  #: All of them.
    summed: bool = True  #: Whether it is in the method's cycles.


@dataclass(frozen=True, kw_only=True)
class NetworkComparison:
    """All networks, and the tensors of one of them beside its float model and a reference."""

    board: Board
    config: NetworkConfig
    rows: Sequence[NetworkRow]
    #: Co-simulations by the network, and by the method or the launch.
    measured: Mapping[str, Mapping[str, CoSimulation]] = field(default_factory=dict)
    signals: Sequence[Signal] = ()
    #: Of a reference: whether there is one, and the first tensor that differs.
    referenced: bool = False
    difference: Difference | None = None

    @property
    def figures(self) -> list[NetworkFigures]:
        """The figures of every method at every network that has them."""
        return [figures for row in self.rows for figures in self._of(row)]

    @property
    def terms(self) -> list[Term]:
        """The shares of all networks that are split."""
        return [term for row in self.rows for term in self._terms(row)]

    @property
    def exact(self) -> bool:
        """Whether every co-simulation gave the golden model's bits."""
        return all(each.exact for found in self.measured.values() for each in found.values())

    def of(self, network: str, method: str) -> NetworkFigures | None:
        """Return one method at one network."""
        named = (each for each in self.figures if (each.network, each.method) == (network, method))
        return next(named, None)

    def _cost(self, row: NetworkRow, name: str, predicted: Cost) -> tuple[Cost, bool]:
        """Return the cost of a method or a launch, and whether it was measured."""
        found = self.measured.get(row.name, {}).get(name)
        if found is None:
            return predicted, False
        microjoules = predicted.microjoules if found.microjoules is None else found.microjoules
        return Cost(cycles=found.cycles, moved_bytes=found.moved_bytes, microjoules=microjoules), True

    def _of(self, row: NetworkRow) -> Iterable[NetworkFigures]:
        for method in METHODS:
            if method in row.ways:
                cost, measured = self._cost(row, method, row.ways[method])
                yield self._ours(row, method, "measured" if measured else "predicted", cost)
            elif method == SPLIT and row.split is not None:
                yield self._split(row, row.split)
        if (published := DPU.get(row.name)) is not None:
            yield NetworkFigures(
                network=row.name,
                method=PUBLISHED,
                source="published",
                cycles=published.cycles,
                clock_mhz=CLOCK_MHZ,
                images_a_second=published.images_a_second,
                multipliers=MULTIPLIERS,
                utilization=row.macs / (MULTIPLIERS * published.cycles),
            )
        for peer in TRANSFORMERS.get(row.name, ()):
            if len(row.tokens) == 1 and (time := peer.milliseconds.get(row.tokens[0])) is not None:
                layer = time / GPT2_MEDIUM_LAYERS
                yield NetworkFigures(
                    network=row.name,
                    method=peer.method,
                    source=peer.source,
                    cycles=1e3 * layer * peer.clock_mhz,
                    clock_mhz=peer.clock_mhz,
                    images_a_second=1e3 / layer,
                )

    def _ours(self, row: NetworkRow, method: str, source: str, cost: Cost, more: int = 0) -> NetworkFigures:
        """Return figures on the kernel; ``more``: multipliers beside the array's."""
        slots = self.config.matrix.inputs * self.config.columns
        return NetworkFigures(
            network=row.name,
            method=method,
            source=source,
            cycles=cost.cycles,
            clock_mhz=self.board.clock_mhz,
            images_a_second=self.board.clock_mhz * 1e6 / cost.cycles,
            multipliers=slots + more,
            utilization=row.macs / ((slots + more) * cost.cycles),
            moved_bytes=cost.moved_bytes,
            over_compulsory=cost.moved_bytes / row.compulsory_bytes,
            millijoules=None if cost.microjoules is None else cost.microjoules / 1e3,
        )

    def _split(self, row: NetworkRow, split: Split) -> NetworkFigures:
        terms = self._terms(row)
        sources = dict.fromkeys(term.source for term in terms if term.summed)
        moved = sum(
            each.count * self._cost(row, each.name, each.predicted)[0].moved_bytes for each in split.launches
        )
        cost = Cost(
            cycles=sum(term.cycles for term in terms if term.summed),
            moved_bytes=moved + split.link.activation_bytes,
        )
        return self._ours(row, SPLIT, " and ".join(sources), cost, split.multipliers)

    def _terms(self, row: NetworkRow) -> list[Term]:
        if row.split is None:
            return []
        found = []
        for name, attention in (("the array", False), ("the attention engine", True)):
            launches = [each for each in row.split.launches if each.attention == attention]
            costs = [(each.count, *self._cost(row, each.name, each.predicted)) for each in launches]
            found.append(
                Term(
                    network=row.name,
                    name=f"launches of {name}",
                    source="measured" if all(seen for *_, seen in costs) else "predicted",
                    count=sum(count for count, *_ in costs),
                    cycles=sum(count * cost.cycles for count, cost, _ in costs),
                )
            )
        link = row.split.link
        launch = round(PUBLISHED_LAUNCH_SECONDS * 1e6 * self.board.clock_mhz)
        between = [
            ("activations to the host and back", "computed", found[1].count, link.activations),
            ("done to the next start, link alone", "computed", link.crossings, link.crossing_cycles),
            ("not in the sum: starts of a U280", "derived", link.crossings, link.crossings * launch),
        ]
        found += [
            Term(
                network=row.name,
                name=name,
                source=source,
                count=count,
                cycles=cycles,
                summed=source == "computed",
            )
            for name, source, count, cycles in between
        ]
        return found

    def document(self, known: Mapping[str, NetworkRow | CoSimulation]) -> dict[str, Any]:
        """Return the file's content; ``known``: rows and co-simulations by their keys."""
        rows = {key: row for key, row in known.items() if isinstance(row, NetworkRow)}
        simulated = {key: row for key, row in known.items() if isinstance(row, CoSimulation)}
        return {
            "board": self.board.name,
            "config": config_dict(self.config),
            "published_clock_mhz": CLOCK_MHZ,
            "figures": [asdict(each) for each in self.figures],
            "terms": [asdict(each) for each in self.terms],
            "signals": [
                asdict(each) | {"decibels": None if abs(each.decibels) == float("inf") else each.decibels}
                for each in self.signals
            ],
            "difference": None if self.difference is None else asdict(self.difference),
            "rows": _ROWS.dump_python(rows),
            "measured": CO_SIMULATIONS.dumped(simulated),
        }


_ROWS: TypeAdapter[dict[str, NetworkRow]] = TypeAdapter(dict[str, NetworkRow])


def rows_of(document: Any) -> dict[str, NetworkRow | CoSimulation]:
    """Return the rows and co-simulations of a file by their keys."""
    return {**_ROWS.validate_python(document["rows"]), **CO_SIMULATIONS.read(document)}


COLUMNS: Columns[NetworkFigures] = (
    Column("Network", lambda each: each.network, text=True),
    Column("Method", lambda each: each.method, text=True),
    Column("Source", lambda each: each.source, text=True),
    Column("Cycles", lambda each: whole(round(each.cycles))),
    Column("Milliseconds", lambda each: f"{each.milliseconds:,.3f}"),
    Column("Runs a second", lambda each: f"{each.images_a_second:,.0f}"),
    Column("Multipliers", lambda each: MISSING if each.multipliers is None else whole(each.multipliers)),
    Column("Useful", lambda each: MISSING if each.utilization is None else percent(each.utilization)),
    Column("Bytes moved", lambda each: MISSING if each.moved_bytes is None else sized(each.moved_bytes)),
    Column(
        "Over compulsory",
        lambda each: MISSING if each.over_compulsory is None else times(each.over_compulsory, places=2),
    ),
    Column("Millijoules", lambda each: MISSING if each.millijoules is None else f"{each.millijoules:,.3f}"),
)
TERMS: Columns[Term] = (
    Column("Network", lambda each: each.network, text=True),
    Column("Share", lambda each: each.name, text=True),
    Column("Source", lambda each: each.source, text=True),
    Column("Times", lambda each: whole(each.count)),
    Column("Cycles", lambda each: whole(each.cycles)),
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
    figures = comparison.figures
    last = {each.network: each.method for each in figures}
    found = [
        table(
            f"Networks on {comparison.board.name}",
            COLUMNS,
            figures,
            style=lambda each: STYLES.get(each.source, ""),
            ends_section=lambda each: each.method == last[each.network],
        )
    ]
    if comparison.terms:
        found.append(table(f"{SPLIT}: shares", TERMS, comparison.terms))
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
