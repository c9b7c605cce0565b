"""Convolution beside other schedules: the figures of all operations and networks, as tables and as files."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from rich.table import Table

from hw.board import Board
from hw.config import config_dict
from hw.conv.config import ConvConfig
from hw.conv.core.layouts import Offsets
from hw.conv.driver.layer import LayerKind
from hw.conv.driver.network import build
from hw.conv.driver.workload import ConvJob, ConvWorkload
from hw.conv.engine import ConvEngine
from hw.conv.model.traffic import compulsory_bytes
from hw.energy.launch import predicted_microjoules
from sim.compare.simulated import CO_SIMULATIONS, CoSimulation
from sim.compare.table import STYLES, Column, Columns, table
from sim.engines.conv.baselines.codenet import CLOCK_MHZ, PUBLISHED, codenet
from sim.engines.conv.baselines.gather import gather
from sim.engines.conv.baselines.work import Cost, Work
from sim.engines.conv.compare.operations import ARRAY, network_rows
from sim.report.text import MISSING, percent, sized, times, whole

GATHER, SCHEDULE, GAPLESS = "gather, no buffer", "like CoDeNet", "like CoDeNet, gapless loops"
#: The engine with CoDeNet's array, the same with offsets rounded to whole pixels, and the one compared.
OURS, ROUNDED, CHOSEN = "Loomwork, 16 x 16", "Loomwork, 16 x 16, rounded", "Loomwork"
METHODS = (GATHER, SCHEDULE, GAPLESS, OURS, ROUNDED, CHOSEN)


@dataclass(frozen=True, kw_only=True)
class ConvSetting:
    """The setting of all rows."""

    board: Board
    config: ConvConfig  #: Of the engine `CHOSEN`.

    def engine(self, method: str) -> ConvConfig:
        """Return the configuration of one of ours."""
        return {OURS: ARRAY, ROUNDED: replace(ARRAY, fraction_bits=0), CHOSEN: self.config}[method]


@dataclass(frozen=True, kw_only=True)
class ConvRow:
    """One operation or network."""

    work: Work
    predicted: Mapping[str, Cost]  #: Predictions of our engines, by method.
    measured: CoSimulation | None = None  #: Simulated gates of `OURS`, if any.

    @cached_property
    def compulsory_bytes(self) -> int:
        """Bytes of any schedule in the narrowest form of any method, scales and biases apart.

        Weights have 4 bits, and coordinates of offsets a byte.
        """
        launch = workload(self.work, ARRAY)
        return compulsory_bytes(launch, weight_bits=4, offset_bytes=1, channel_bytes=0)


@dataclass(frozen=True, kw_only=True)
class ConvFigures:
    """One method at one operation or network."""

    #: ``source`` is measured, predicted or formula.
    work: str
    method: str
    source: str
    #: At the board's clock.
    cycles: float
    milliseconds: float
    macs: int  #: Multipliers.
    utilization: float  #: Useful multiply-accumulates over all slots of all cycles.
    moved_bytes: int  #: Across the memory ports.
    over_compulsory: float  #: Bytes over those of `ConvRow.compulsory_bytes`.
    millijoules: float | None  #: Energy of kernel, device and memory; None of formulas.


@dataclass(frozen=True, kw_only=True)
class Published:
    """CoDeNet's own figure of an operation or a network, and the formula that is meant to be it."""

    work: str
    milliseconds: tuple[float, ...]  #: Without and with a last-level cache, or one figure.
    cycles: float  #: Of the formula.

    @property
    def published_cycles(self) -> float:
        """The first figure at CoDeNet's clock."""
        return self.milliseconds[0] * CLOCK_MHZ * 1e3


@dataclass(frozen=True)
class ConvComparison:
    """Rows of different names: at least one."""

    setting: ConvSetting
    rows: tuple[ConvRow, ...]

    @cached_property
    def figures(self) -> tuple[ConvFigures, ...]:
        """Return every method at every row that it can do."""
        found = (self._of(row, method) for row in self.rows for method in METHODS)
        return tuple(figures for figures in found if figures is not None)

    def of(self, work: str, method: str) -> ConvFigures | None:
        """Find the figures of a method, None where there are none."""
        found = (each for each in self.figures if (each.work, each.method) == (work, method))
        return next(found, None)

    def _of(self, row: ConvRow, method: str) -> ConvFigures | None:
        source, cost = "formula", None
        if method == GATHER:
            cost = gather(row.work, ARRAY, self.setting.board)
        elif method in (SCHEDULE, GAPLESS):
            gapless = {"loop_cycles": 0} if method == GAPLESS else {}
            cost = codenet(row.work, self.setting.board, **gapless)
        elif method == OURS and row.measured is not None:
            source, cost = "measured", _measured(row.work, row.measured)
        elif method in row.predicted:
            source, cost = "predicted", row.predicted[method]
        if cost is None:
            return None
        return ConvFigures(
            work=row.work.name,
            method=method,
            source=source,
            cycles=cost.cycles,
            milliseconds=cost.cycles / self.setting.board.clock_mhz / 1e3,
            macs=cost.macs,
            utilization=cost.utilization,
            moved_bytes=cost.moved_bytes,
            over_compulsory=cost.moved_bytes / row.compulsory_bytes,
            millijoules=None if cost.microjoules is None else cost.microjoules / 1e3,
        )

    @cached_property
    def published(self) -> tuple[Published, ...]:
        """Return CoDeNet's figures of the rows that it has."""
        return tuple(
            Published(work=name, milliseconds=milliseconds, cycles=figures.cycles)
            for name, milliseconds in PUBLISHED.items()
            if (figures := self.of(name, SCHEDULE)) is not None
        )

    @property
    def exact(self) -> bool:
        """Whether every co-simulation gave the golden model's bits."""
        return all(row.measured.exact for row in self.rows if row.measured is not None)

    def document(self, known: Mapping[str, CoSimulation]) -> dict[str, Any]:
        """Return the content of the comparison's file, with all ``known`` co-simulations by their keys."""
        return {
            "board": self.setting.board.name,
            "configs": {name: config_dict(self.setting.engine(name)) for name in (OURS, ROUNDED, CHOSEN)},
            "figures": [asdict(figures) for figures in self.figures],
            "published": [asdict(published) for published in self.published],
            "measured": CO_SIMULATIONS.dumped(known),
        }


def predicted(work: Work, setting: ConvSetting) -> Mapping[str, Cost]:
    """Predict a work on each of our engines; neighbours that are fetched one by one are not predicted."""
    if work.outside:
        return {}
    engines = (OURS, ROUNDED, CHOSEN) if _rounds(work) else (OURS, CHOSEN)
    found, engine = {}, ConvEngine()
    for method in engines:
        config = setting.engine(method)
        prediction = engine.predict(workload(work, config), config, setting.board)
        found[method] = Cost(
            cycles=prediction.cycles_total,
            moved_bytes=prediction.moved_bytes,
            useful_macs=work.useful_macs,
            macs=prediction.mac_slots_per_cycle,
            microjoules=predicted_microjoules(engine, config, setting.board, prediction),
        )
    return found


def _measured(work: Work, measured: CoSimulation) -> Cost:
    macs = ARRAY.inputs * ARRAY.outputs + ARRAY.lanes * ARRAY.taps
    return Cost(
        cycles=measured.cycles,
        moved_bytes=measured.moved_bytes,
        useful_macs=work.useful_macs,
        macs=macs,
        microjoules=measured.microjoules,
    )


def workload(work: Work, config: ConvConfig) -> ConvWorkload:
    """Return the workload: a network with its layers in jobs, or the one layer."""
    if len(work.layers) > 1:
        return build(network_rows(work.name.removeprefix("config ")), config).workload
    return ConvWorkload(jobs=(ConvJob(layers=work.layers),))


def _rounds(work: Work) -> bool:
    """Say whether rounding offsets saves cycles: samples of a full layer are fewer bytes."""
    return any(layer.kind is LayerKind.SAMPLES and layer.offsets is not Offsets.NONE for layer in work.layers)


COLUMNS: Columns[ConvFigures] = (
    Column("", lambda figures: figures.work, text=True),
    Column("method", lambda figures: figures.method, text=True),
    Column("from", lambda figures: figures.source, text=True),
    Column("cycles", lambda figures: f"{figures.cycles:,.0f}"),
    Column("ms", lambda figures: f"{figures.milliseconds:,.3f}"),
    Column("MACs", lambda figures: whole(figures.macs)),
    Column("useful", lambda figures: percent(figures.utilization, places=1)),
    Column("off-chip bytes", lambda figures: sized(figures.moved_bytes)),
    Column("over compulsory", lambda figures: times(figures.over_compulsory, places=2)),
    Column("mJ", lambda figures: MISSING if figures.millijoules is None else f"{figures.millijoules:,.2f}"),
)

PUBLISHED_COLUMNS: Columns[Published] = (
    Column("", lambda found: found.work, text=True),
    Column("published, ms", lambda found: f"{found.milliseconds[0]:g}"),
    Column(
        "with cache, ms", lambda found: f"{found.milliseconds[1]:g}" if found.milliseconds[1:] else MISSING
    ),
    Column("cycles", lambda found: f"{found.published_cycles:,.0f}"),
    Column("formula, cycles", lambda found: f"{found.cycles:,.0f}"),
    Column("over published", lambda found: times(found.cycles / found.published_cycles, places=2)),
)


def conv_tables(comparison: ConvComparison) -> tuple[Table, ...]:
    """Return the tables for a terminal: all methods, and the formula beside published figures."""
    figures = comparison.figures
    last = {each.work: each.method for each in figures}
    return (
        table(
            f"Convolution on {comparison.setting.board.name}",
            COLUMNS,
            figures,
            style=lambda each: STYLES.get(each.source, ""),
            ends_section=lambda each: last[each.work] == each.method,
        ),
        table(
            f"CoDeNet as published, Ultra96 at {CLOCK_MHZ:g} MHz, and its formula here",
            PUBLISHED_COLUMNS,
            comparison.published,
        ),
    )
