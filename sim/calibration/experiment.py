"""Experiments: a memory and programs for the generators, run on a bench, many in one simulation."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sim.build.simulator import SimulationError, build, run
from sim.calibration.bench import MEMORY, TOP, VISIBLE, bench_sources
from sim.calibration.program import TrafficProgram, result_of
from sim.host.files import write_text
from sim.memory.config import MemoryConfig, parameter_text

PLAN_FILE, ANSWER_FILE = "experiments.json", "results.json"
_CONFIG_FILE = "memory.cfg"


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A bench to build: number and width of its generators."""

    ports: int
    data_bits: int


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One run."""

    bench: Bench  #: Its bench.
    memory: MemoryConfig  #: The memory; its ``port_channels`` must match the number of ports of the bench.
    #: Programs by port.
    reads: Mapping[int, TrafficProgram]
    writes: Mapping[int, TrafficProgram]


@dataclass(frozen=True, kw_only=True)
class ExperimentResult:
    """The results of an experiment."""

    #: Of the experiment.
    kernel_clock_mhz: float
    beat_bytes: int
    #: Results by port, each an `hw.lib.traffic.RESULT` in kernel cycles.
    reads: Mapping[int, Any]
    writes: Mapping[int, Any]
    counters: Mapping[str, Any]  #: The memory's own (`sim.memory.view.MemoryView.counters`).

    @property
    def results(self) -> list[Any]:
        """All results."""
        return [*self.reads.values(), *self.writes.values()]

    def ns(self, cycles: float) -> float:
        """Convert kernel cycles to ns."""
        return cycles * 1e3 / self.kernel_clock_mhz

    def gb_per_s(self, *, extra_ns: float = 0.0) -> float:
        """Return the bytes of all results over the time of the longest and ``extra_ns``, in GB/s."""
        time_ns = self.ns(max(result.cycles for result in self.results)) + extra_ns
        return sum(result.beats for result in self.results) * self.beat_bytes / time_ns

    def mean_latency_ns(self, kind: str) -> float:
        """Return the mean latency of ``"read"`` (to first data) or ``"write"`` (last data to response)."""
        ports = [self.counters["ports"][port] for port in (self.reads if kind == "read" else self.writes)]
        cycles = sum(port[f"{kind}_latency_cycles_sum"] for port in ports)
        return self.ns(cycles / sum(port[f"{kind}_latency_count"] for port in ports))


def run_experiments(experiments: Mapping[str, Experiment]) -> dict[str, ExperimentResult]:
    """Run experiments by name: one simulation a bench; benches that are not cached are built.

    Raises `SimulationError` when a generator hangs or a rule of AXI is broken. Raises `ToolError` when a
    bench cannot be built.
    """
    outcomes: dict[str, ExperimentResult] = {}
    for bench in dict.fromkeys(experiment.bench for experiment in experiments.values()):
        chosen = {name: e for name, e in experiments.items() if e.bench == bench}
        outcomes |= _run_on(bench, chosen)
    return {name: outcomes[name] for name in experiments}


def _run_on(bench: Bench, experiments: Mapping[str, Experiment]) -> dict[str, ExperimentResult]:
    built = build(bench_sources(ports=bench.ports, data_bits=bench.data_bits), top=TOP, visible=VISIBLE)
    texts = {name: parameter_text([replace(e.memory, name=MEMORY)]) for name, e in experiments.items()}
    plan = {
        name: {
            "memory": texts[name],
            "reads": {port: program.words() for port, program in e.reads.items()},
            "writes": {port: program.words() for port, program in e.writes.items()},
            "max_cycles": 4_000_000,
        }
        for name, e in experiments.items()
    }
    with TemporaryDirectory(prefix="loomwork-calibration-") as folder:
        directory = Path(folder)
        write_text(directory / PLAN_FILE, json.dumps(plan))
        write_text(directory / _CONFIG_FILE, next(iter(texts.values())))
        run(
            built,
            module="sim.calibration.session",
            directory=directory,
            environ={"LOOM_MEMORY_CONFIG": str(directory / _CONFIG_FILE)},
        )
        answers = json.loads((directory / ANSWER_FILE).read_text())
    outcomes = {}
    for name, answer in answers.items():
        if answer["errors"]:
            raise SimulationError(f"calibration, {name}: {answer['errors'][0]}")
        outcomes[name] = ExperimentResult(
            kernel_clock_mhz=experiments[name].memory.kernel_clock_mhz,
            beat_bytes=bench.data_bits // 8,
            reads={int(port): result_of(words) for port, words in answer["reads"].items()},
            writes={int(port): result_of(words) for port, words in answer["writes"].items()},
            counters=answer["counters"],
        )
    return outcomes
