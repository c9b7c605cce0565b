"""The simulated gates of a small oblivious map, beside the formulas for the same operations."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hw.board import Board
from hw.launch import Tensor
from hw.oram.config import OramConfig
from hw.oram.core.layouts import Code
from hw.oram.driver.capacity import hbm_bytes, host_memory
from hw.oram.engine import OramEngine
from hw.oram.kernel.arguments import PAGE_PORT
from hw.oram.model.link import block_bursts
from hw.prediction import Prediction
from sim.compare.simulated import SimulatedRows
from sim.engines.oram.adapter import ADAPTER
from sim.engines.oram.cases import SMALL
from sim.engines.oram.job import CODES, KEYS, SEED, VALUES
from sim.memory.trace import Channel, accesses, read_trace
from sim.run.memories import is_host_port

#: Whether a key has one label or two, and whether an operation touches a page always: ``touch`` and ``pad``
#: of `OramConfig`.
Shape = tuple[Literal["one", "both"], Literal["skip", "always"]]
#: Operations of a measurement.
OPERATIONS = 2000


@dataclass(frozen=True, kw_only=True)
class OperationCost:
    """Cost of an operation, counted or by the formulas, without initialization."""

    cycles: float  #: An operation, from the map's being empty to the end of the launch.
    #: ``page_bytes``, ``bursts``: of pages an operation, both ways.
    page_bytes: float
    bursts: float
    hbm_bytes: int  #: Bytes of HBM that are in use.


@dataclass(frozen=True, kw_only=True)
class MapSimulation:
    """A co-simulation of the map."""

    counted: OperationCost  #: By the gates, and on the buses of the memory models.
    predicted: OperationCost  #: By the formulas, for the pages that were touched.
    exact: bool  #: Whether every bit of the responses was the golden model's.
    seconds: float  #: Of simulation, without building the simulator.

    @property
    def cycles_error(self) -> float:
        """The relative error of the predicted cycles."""
        return self.predicted.cycles / self.counted.cycles - 1


MAP_SIMULATIONS = SimulatedRows(MapSimulation)


def measured_config(shape: Shape) -> OramConfig:
    """Return the map that is measured."""
    touch, pad = shape
    return replace(SMALL, touch=touch, pad=pad)


def random_tensors(config: OramConfig, seed: int) -> dict[str, Tensor]:
    """Return gets and puts, and a delete at times, of random keys: as many keys as the map holds."""
    rng = np.random.default_rng(seed)
    keys = rng.integers(1 << config.key_bits, size=config.keys, dtype=np.uint64)
    return {
        CODES: rng.choice([Code.GET, Code.PUT, Code.DELETE], p=[0.5, 0.4, 0.1], size=OPERATIONS),
        KEYS: rng.choice(keys, size=OPERATIONS),
        VALUES: rng.integers(256, size=(OPERATIONS, config.value_bytes), dtype=np.uint8),
        SEED: np.array(seed),
    }


def measure(config: OramConfig, board: Board, seed: int, directory: Path) -> MapSimulation:
    """Run the map's gates on random operations; ``directory`` gets the simulator's log and the buses' traces.

    Raises `InputError` when the board has no access to the host's memory, or the configuration does not fit
    it.
    """
    from sim.run.run import run

    host = host_memory(board)
    traces = {memory.name: directory / f"{memory.name}.trace" for memory in (board.memory, host)}
    tensors = random_tensors(config, seed)
    result = run("oram", config, board, tensors, directory=directory, seed=seed, traces=traces)
    report = result.report
    workload = ADAPTER.workload(result.job, config)
    table = OramEngine().arguments(config, board)
    host_ports = [port for port in table.ports if is_host_port(port)]
    counted = OperationCost(
        cycles=(report.cycles.cycles_total - report.details["initialization_cycles"]) / OPERATIONS,
        hbm_bytes=_used_bytes(read_trace(traces[board.memory.name])),
        **_pages(config, read_trace(traces[host.name]), host_ports.index(PAGE_PORT)),
    )
    for path in traces.values():
        path.unlink()
    prediction = OramEngine().predict(replace(workload, initialize=False), config, board)
    return MapSimulation(
        counted=counted,
        predicted=predicted(config, prediction),
        exact=result.bit_exact,
        seconds=report.simulated.run_seconds,
    )


def predicted(config: OramConfig, prediction: Prediction) -> OperationCost:
    """Return the formulas' cost of an operation, for a launch without initialization."""
    operations = prediction.details["operations"]
    page_bytes = (prediction.read_bytes["pages"] + prediction.write_bytes["pages"]) / operations
    return OperationCost(
        cycles=prediction.details["cycles_per_operation"],
        page_bytes=page_bytes,
        bursts=page_bytes / config.page_bytes * block_bursts(config.page_bytes),
        hbm_bytes=hbm_bytes(config),
    )


def _pages(config: OramConfig, trace: NDArray[Any], port: int) -> dict[str, float]:
    """Count bytes and bursts of pages an operation; of the writes, those of all pages come first."""
    found = accesses(trace[trace["port"] == port])
    writes = found[found["channel"] == Channel.AW]
    empty = int(np.searchsorted(np.cumsum(writes["bytes"]), config.host_pages * config.page_bytes)) + 1
    reads = found[found["channel"] == Channel.AR]
    moved = int(reads["bytes"].sum()) + int(writes[empty:]["bytes"].sum())
    return {"page_bytes": moved / OPERATIONS, "bursts": (len(reads) + len(writes) - empty) / OPERATIONS}


def _used_bytes(trace: NDArray[Any]) -> int:
    """Count the bytes of a memory that were ever read or written: those of all beats at different places."""
    beats = trace[(trace["channel"] == Channel.W) | (trace["channel"] == Channel.R)]
    return int(np.unique(beats[["port", "address", "bytes"]])["bytes"].sum())
