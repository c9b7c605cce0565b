"""Attention beside published schedules: the figures of all lengths, as tables and as files."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from rich.table import Table

from sim.compare.simulated import CO_SIMULATIONS, CoSimulation
from sim.compare.table import STYLES, Column, Columns, table
from sim.engines.attention.baselines import SCHEDULES
from sim.engines.attention.baselines.work import Cost, Machine, Work, flash_law_bytes
from sim.report.text import MISSING, percent, signed_percent, sized, times, whole

#: The engine's name in the comparison.
OURS = "Loomwork"


@dataclass(frozen=True, kw_only=True)
class AttentionRow:
    """One length of sequence."""

    tokens: int  #: Queries of a head, and keys.
    predicted: Cost  #: Of the engine's analytic model.
    measured: CoSimulation | None  #: The simulated gates; None without a simulation.

    @property
    def ours(self) -> Cost:
        """The engine's cost, measured or else predicted."""
        if self.measured is None:
            return self.predicted
        found = self.measured
        return Cost(cycles=found.cycles, moved_bytes=found.moved_bytes, microjoules=found.microjoules)


def prediction_error(row: AttentionRow, measured: CoSimulation) -> float:
    """Return the relative error of the predicted cycles."""
    return row.predicted.cycles / measured.cycles - 1


#: All that is compared, the engine first.
METHODS = (OURS, *SCHEDULES)


@dataclass(frozen=True, kw_only=True)
class AttentionSetting:
    """The setting of all rows."""

    board: str  #: Its name.
    clock_mhz: float  #: Of the engine on it.
    config: Mapping[str, Any]  #: The engine's configuration, every key.
    heads: int  #: Attention heads, back to back.
    size: int  #: Elements of a query, key, value and result.
    output_bytes: int  #: Of an element of the results.
    #: As many multipliers, as much memory on chip and as much bandwidth as the engine has, for the others.
    machine: Machine

    def work(self, tokens: int) -> Work:
        """Return the work of a length."""
        return Work(
            heads=self.heads, queries=tokens, keys=tokens, size=self.size, output_bytes=self.output_bytes
        )


@dataclass(frozen=True, kw_only=True)
class AttentionFigures:
    """One method at one length."""

    #: ``source`` is measured, predicted or formula.
    tokens: int
    method: str
    source: str
    #: At the board's clock.
    cycles: float
    milliseconds: float
    utilization: float  #: Useful multiply-accumulates over all slots of all cycles.
    moved_bytes: int  #: Across the memory ports.
    over_compulsory: float  #: Bytes over those of every input and result once.
    over_flash_law: float  #: Bytes over ``N^2 d^2 / M``; that law has no published constant.
    bytes_per_cycle: float  #: Bandwidth that the cycles ask for.
    millijoules: float | None  #: Energy of kernel, device and memory; None of formulas.


@dataclass(frozen=True)
class AttentionComparison:
    """Rows of lengths that differ: at least one."""

    setting: AttentionSetting
    rows: tuple[AttentionRow, ...]

    @cached_property
    def figures(self) -> tuple[AttentionFigures, ...]:
        """Return every method at every length, lengths in the order of the rows."""
        return tuple(self.of(row, method) for row in self.rows for method in METHODS)

    def of(self, row: AttentionRow, method: str) -> AttentionFigures:
        """Return the figures of a method in a row."""
        work, machine = self.setting.work(row.tokens), self.setting.machine
        if method == OURS:
            source, cost = "measured" if row.measured else "predicted", row.ours
        else:
            source, cost = "formula", SCHEDULES[method](work, machine)
        return AttentionFigures(
            tokens=row.tokens,
            method=method,
            source=source,
            cycles=cost.cycles,
            milliseconds=cost.cycles / self.setting.clock_mhz / 1e3,
            utilization=cost.utilization(work, machine),
            moved_bytes=cost.moved_bytes,
            over_compulsory=cost.moved_bytes / work.compulsory_bytes,
            over_flash_law=cost.moved_bytes / flash_law_bytes(work, machine),
            bytes_per_cycle=cost.moved_bytes / cost.cycles,
            millijoules=None if cost.microjoules is None else cost.microjoules / 1e3,
        )

    @cached_property
    def measured(self) -> tuple[tuple[AttentionRow, CoSimulation], ...]:
        """The rows with a co-simulation."""
        return tuple((row, row.measured) for row in self.rows if row.measured)

    @property
    def exact(self) -> bool:
        """Whether every co-simulation gave the golden model's bits."""
        return all(measured.exact for _, measured in self.measured)

    def document(self, known: Mapping[str, CoSimulation]) -> dict[str, Any]:
        """Return the content of the comparison's file, with all ``known`` co-simulations by their keys."""
        return {
            "setting": asdict(self.setting),
            "figures": [asdict(figures) for figures in self.figures],
            "measured": CO_SIMULATIONS.dumped(known),
        }


COLUMNS: Columns[AttentionFigures] = (
    Column("tokens", lambda figures: whole(figures.tokens)),
    Column("method", lambda figures: figures.method, text=True),
    Column("from", lambda figures: figures.source, text=True),
    Column("cycles", lambda figures: f"{figures.cycles:,.0f}"),
    Column("ms", lambda figures: f"{figures.milliseconds:,.3f}"),
    Column("useful MACs", lambda figures: percent(figures.utilization)),
    Column("off-chip bytes", lambda figures: sized(figures.moved_bytes)),
    Column("over compulsory", lambda figures: times(figures.over_compulsory, places=2)),
    Column("over N²d²/M", lambda figures: times(figures.over_flash_law, places=2)),
    Column("bytes a cycle", lambda figures: f"{figures.bytes_per_cycle:,.2f}"),
    Column("mJ", lambda figures: MISSING if figures.millijoules is None else f"{figures.millijoules:,.2f}"),
)

#: A row that was simulated, beside its prediction.
MODEL_COLUMNS: Columns[tuple[AttentionRow, CoSimulation]] = (
    Column("tokens", lambda found: whole(found[0].tokens)),
    Column("cycles, measured", lambda found: whole(found[1].cycles)),
    Column("predicted", lambda found: f"{found[0].predicted.cycles:,.0f}"),
    Column("error", lambda found: signed_percent(prediction_error(*found))),
    Column("bytes, measured", lambda found: whole(found[1].moved_bytes)),
    Column("predicted", lambda found: whole(found[0].predicted.moved_bytes)),
    Column("bit-exact", lambda found: "yes" if found[1].exact else "NO"),
    Column("seconds", lambda found: f"{found[1].seconds:.1f}"),
)


def attention_tables(comparison: AttentionComparison) -> tuple[Table, ...]:
    """Return the tables for a terminal: all methods at all lengths; predictions beside measurements."""
    setting = comparison.setting
    figures = table(
        f"{setting.heads} heads of {setting.size} on {setting.machine.macs:,} multipliers, {setting.board}",
        COLUMNS,
        comparison.figures,
        style=lambda figures: STYLES.get(figures.source, ""),
        ends_section=lambda figures: figures.method == METHODS[-1],
    )
    model = table(
        "Simulated and predicted",
        MODEL_COLUMNS,
        comparison.measured,
        style=lambda found: "" if found[1].exact else "bold red",
    )
    return (figures, model) if comparison.measured else (figures,)
