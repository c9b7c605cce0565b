"""The oblivious map beside others: the cost of an operation, as tables and files."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from rich.table import Table

from hw.board import Board
from hw.config import config_dict
from hw.energy.launch import predicted_microjoules
from hw.oram.config import OramConfig
from hw.oram.driver.capacity import hbm_bytes, host_structures, with_enough_ports
from hw.oram.driver.workload import OramWorkload
from hw.oram.engine import OramEngine
from hw.oram.model.link import Link, block_bursts
from hw.prediction import Prediction
from sim.compare.table import Column, Columns, table
from sim.engines.oram.baselines import (
    BOLT_SECONDS,
    OperationTraffic,
    bolt,
    bolt_cycles,
    hash_table,
    path_oram,
)
from sim.engines.oram.compare.measure import MAP_SIMULATIONS, MapSimulation, Shape
from sim.report.text import percent, signed_percent, sized, times

#: Ours.
OURS: dict[str, Shape] = {
    "Loomwork, one, skip": ("one", "skip"),
    "Loomwork, one, always": ("one", "always"),
    "Loomwork, both, skip": ("both", "skip"),
    "Loomwork, both, always": ("both", "always"),
}
BOLT = "BOLT"
OTHERS: dict[str, Callable[[OramConfig], OperationTraffic]] = {
    BOLT: lambda config: bolt(
        config.log_n, config.value_bytes, alpha=config.alpha, bin_keys=config.items_per_label
    ),
    "Path ORAM": lambda config: path_oram(config.log_n, config.value_bytes, alpha=config.alpha),
    "Path ORAM, recursive": lambda config: path_oram(
        config.log_n, config.value_bytes, alpha=config.alpha, recursive=True
    ),
    "hash table, insecure": lambda config: hash_table(config.log_n, config.value_bytes),
}
METHODS = (*OURS, *OTHERS)
#: The launch of ours that is predicted, of a map that is in use already.
LAUNCH = OramWorkload(operations=100_000, initialize=False)
#: Bytes of the values whose times BOLT published.
_BOLT_VALUE_BYTES = 8


@dataclass(frozen=True, kw_only=True)
class OramFigures:
    """Average cost of an operation of a map."""

    #: ``log_n``, ``value_bytes``, ``method``: of the map: N = 2^log_n keys.
    log_n: int
    value_bytes: int
    method: str
    #: Source of the cycles: predicted, published, line (through published points), or link (its least time).
    source: str
    #: ``page_bytes``, ``accesses``, ``bursts``, ``slots``: of pages in the host's memory, both ways, see
    #: `sim.engines.oram.baselines.OperationTraffic`. Commands and responses are the same for all maps.
    page_bytes: float
    accesses: float
    bursts: float
    slots: float
    slots_of_bolt: float  #: Slots over those of BOLT's bound.
    #: ``cycles``, ``operations_per_second``: at the board's clock and behind its link to the host.
    cycles: float
    operations_per_second: float
    #: ``host_bytes``, ``hbm_bytes``: memory the map takes altogether.
    host_bytes: float
    hbm_bytes: float
    fits: bool  #: Whether the board has it, ours with 16 ports for each structure if need be.
    #: ``record_slots``, ``overflow_failure_log2``: of ours, slots of a record, and log2 of the probability
    #: that its lists overflow within 10^12 operations.
    record_slots: int | None = None
    overflow_failure_log2: float | None = None
    microjoules: float | None = None  #: Of ours, energy of kernel, device and memories.


def variant(config: OramConfig, method: str, log_n: int, value_bytes: int) -> OramConfig:
    """Return the configuration of one of ours, or the one whose shape another map gets.

    Raises `InputError` when there is no such map.
    """
    touch, pad = OURS.get(method, (config.touch, config.pad))
    return replace(config, log_n=log_n, value_bytes=value_bytes, touch=touch, pad=pad)


def figures_of(config: OramConfig, board: Board, method: str) -> OramFigures:
    """Return the figures of a map of the shape of ``config``."""
    slots: int | None = None
    failure: float | None = None
    microjoules: float | None = None
    if method in OURS:
        engine = OramEngine()
        prediction = engine.predict(LAUNCH, config, board)
        microjoules = predicted_microjoules(engine, config, board, prediction) / LAUNCH.operations
        traffic = our_traffic(config, prediction, method)
        source, cycles = "predicted", float(prediction.details["cycles_per_operation"])
        fits = with_enough_ports(config, board) is not None
        slots, failure = config.record_slots, prediction.details["overflow_failure_log2"]
    else:
        traffic = OTHERS[method](config)
        source, cycles = _other_cycles(config, board, method, traffic)
        assert board.host is not None  # else there was no link
        fits = traffic.hbm_bytes <= board.memory.total_bytes and traffic.host_bytes <= board.host.total_bytes
    return OramFigures(
        log_n=config.log_n,
        value_bytes=config.value_bytes,
        method=method,
        source=source,
        page_bytes=traffic.moved_bytes,
        accesses=traffic.accesses,
        bursts=traffic.bursts,
        slots=traffic.slots,
        slots_of_bolt=traffic.slots / OTHERS[BOLT](config).slots,
        cycles=cycles,
        operations_per_second=board.clock_mhz * 1e6 / cycles,
        host_bytes=traffic.host_bytes,
        hbm_bytes=traffic.hbm_bytes,
        fits=fits,
        record_slots=slots,
        overflow_failure_log2=failure,
        microjoules=microjoules,
    )


def our_traffic(config: OramConfig, prediction: Prediction, method: str) -> OperationTraffic:
    """Return the traffic of an operation in a predicted launch."""
    operations = prediction.details["operations"]
    read, written = (moved["pages"] / operations for moved in (prediction.read_bytes, prediction.write_bytes))
    reads, writes = read / config.page_bytes, written / config.page_bytes
    return OperationTraffic(
        name=method,
        read_bytes=read,
        write_bytes=written,
        reads=reads,
        writes=writes,
        bursts=(reads + writes) * block_bursts(config.page_bytes),
        slots=(reads + writes) * config.slots,
        host_bytes=host_structures(config)[0].total_bytes,
        hbm_bytes=hbm_bytes(config),
    )


def _other_cycles(
    config: OramConfig, board: Board, method: str, traffic: OperationTraffic
) -> tuple[str, float]:
    """Return where the cycles of an operation of another map come from, and how many they are.

    BOLT does one operation after the other: its published time, and the link's for pages of larger values.
    The others take the link's time alone: bytes each way, or outstanding write bursts. Commands and responses
    come in groups like ours.
    """
    link = Link(board, used_bytes=round(traffic.host_bytes))
    if method == BOLT:
        published = OTHERS[BOLT](replace(config, value_bytes=_BOLT_VALUE_BYTES))
        more = max(0.0, traffic.moved_bytes - published.moved_bytes)
        cycles = bolt_cycles(config.log_n, clock_mhz=board.clock_mhz) + more * link.byte_cycles
        as_published = config.keys in BOLT_SECONDS and config.value_bytes == _BOLT_VALUE_BYTES
        return "published" if as_published else "line", cycles
    return "link", link.least_cycles(
        read_bytes=traffic.read_bytes + config.command_bytes,
        write_bytes=traffic.write_bytes + config.command_bytes,
        write_bursts=traffic.bursts * traffic.writes / traffic.accesses + 1 / config.ring_group,
    )


def _ours(figure: float | None, text: str) -> str:
    return "" if figure is None else text.format(figure)


@dataclass(frozen=True)
class OramComparison:
    """Figures of all maps by numbers of keys and sizes of values, and measurements of ours."""

    #: ``board``, ``config``: the setting of all; `variant` derives the map of a method.
    board: Board
    config: OramConfig
    figures: tuple[OramFigures, ...]  #: In order of values, keys and `METHODS`.
    measured: Mapping[str, MapSimulation]  #: By method.

    @cached_property
    def log_ns(self) -> list[int]:
        """Numbers of keys, in increasing order."""
        return sorted({figures.log_n for figures in self.figures})

    @cached_property
    def values(self) -> list[int]:
        """Sizes of values, in increasing order."""
        return sorted({figures.value_bytes for figures in self.figures})

    def of(self, method: str, log_n: int, value_bytes: int) -> OramFigures:
        """Find the figures of a map."""
        wanted = (method, log_n, value_bytes)
        return next(each for each in self.figures if (each.method, each.log_n, each.value_bytes) == wanted)

    @property
    def exact(self) -> bool:
        """Whether every co-simulation gave the golden model's bits."""
        return all(measured.exact for measured in self.measured.values())

    def document(self, known: Mapping[str, MapSimulation]) -> dict[str, Any]:
        """Return the content of the comparison's file, with all ``known`` measurements by their keys."""
        return {
            "board": self.board.name,
            "config": config_dict(self.config),
            "figures": [asdict(figures) for figures in self.figures],
            "measured": MAP_SIMULATIONS.dumped(known),
        }


COLUMNS: Columns[OramFigures] = (
    Column("keys", lambda figures: f"2^{figures.log_n}"),
    Column("map", lambda figures: figures.method, text=True),
    Column("cycles from", lambda figures: figures.source, text=True),
    Column("page bytes", lambda figures: f"{figures.page_bytes:,.1f}"),
    Column("accesses", lambda figures: f"{figures.accesses:,.2f}"),
    Column("bursts", lambda figures: f"{figures.bursts:,.2f}"),
    Column("slots", lambda figures: f"{figures.slots:,.1f}"),
    Column("of BOLT's", lambda figures: times(figures.slots_of_bolt, places=2)),
    Column("cycles", lambda figures: f"{figures.cycles:,.1f}"),
    Column("M ops/s", lambda figures: f"{figures.operations_per_second / 1e6:,.2f}"),
    Column("host memory", lambda figures: sized(figures.host_bytes)),
    Column("HBM", lambda figures: sized(figures.hbm_bytes)),
    Column("fits", lambda figures: "yes" if figures.fits else "no", text=True),
    Column("list", lambda figures: _ours(figures.record_slots, "{}")),
    Column("overflows", lambda figures: _ours(figures.overflow_failure_log2, "2^{:.0f}")),
    Column("µJ", lambda figures: _ours(figures.microjoules, "{:.2f}")),
)

#: A map that was simulated, beside the formulas.
MEASURED_COLUMNS: Columns[tuple[str, MapSimulation]] = (
    Column("map", lambda found: found[0], text=True),
    Column("page bytes, measured", lambda found: f"{found[1].counted.page_bytes:,.1f}"),
    Column("formula", lambda found: f"{found[1].predicted.page_bytes:,.1f}"),
    Column("bursts", lambda found: f"{found[1].counted.bursts:,.3f}"),
    Column("formula", lambda found: f"{found[1].predicted.bursts:,.3f}"),
    Column("cycles", lambda found: f"{found[1].counted.cycles:,.2f}"),
    Column("predicted", lambda found: f"{found[1].predicted.cycles:,.2f}"),
    Column("error", lambda found: signed_percent(found[1].cycles_error)),
    Column("HBM bytes", lambda found: f"{found[1].counted.hbm_bytes:,}"),
    Column("formula", lambda found: f"{found[1].predicted.hbm_bytes:,}"),
    Column("bit-exact", lambda found: "yes" if found[1].exact else "NO"),
    Column("seconds", lambda found: f"{found[1].seconds:.1f}"),
)


def oram_tables(comparison: OramComparison) -> tuple[Table, ...]:
    """Return the tables for a terminal: all maps by size of values, and measurements."""
    config = comparison.config
    found = [
        table(
            f"An operation on values of {value_bytes} bytes, {percent(config.alpha, places=0)} of the labels "
            f"in HBM, {comparison.board.name}",
            COLUMNS,
            [each for each in comparison.figures if each.value_bytes == value_bytes],
            style=lambda each: "green" if each.method in OURS else "",
            ends_section=lambda each: each.method == METHODS[-1],
        )
        for value_bytes in comparison.values
    ]
    if comparison.measured:
        found.append(
            table(
                "Simulated, and the formulas for the pages that were touched",
                MEASURED_COLUMNS,
                comparison.measured.items(),
                style=lambda found: "" if found[1].exact else "bold red",
            )
        )
    return tuple(found)
