"""A sweep: parameters, workloads, objectives, and the fidelities of designs."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, TypeAdapter

from hw.errors import InputError, check_one_of, check_range
from hw.registry import known_engines
from sim.sweep.expression import Expression
from sim.sweep.points import GATES, OF_WORKLOADS, Fidelity, Value

#: Most values of one parameter.
MOST_VALUES = 10_000
#: Keys of a workload in the file; all others are options of ``loomwork sim`` that name a file.
WORKLOAD_KEYS = ("shape", "weight", "title")
_FORMS = (
    "a list of values, {from: 8, to: 32, step: 8}, {powers_of_two: [16, 128]} or {expression: lanes // 8}"
)


@dataclass(frozen=True, kw_only=True)
class WorkloadSpec:
    """A workload of an engine: a ``shape``, or files of ``loomwork sim``."""

    shape: Mapping[str, Any] = field(default_factory=dict)  #: Fields of the engine's workload.
    #: Files by the engine's options (``input``, ``plan``, ...), relative to the folder of the sweep's file;
    #: in it they are keys beside ``shape``.
    files: Mapping[str, str] = field(default_factory=dict)
    weight: float = 1.0  #: How often it is done, in figures of all workloads: above 0.
    title: str = ""  #: Name of a layer as its file has it.

    def __post_init__(self) -> None:
        if self.shape and self.files:
            name, path = next(iter(self.files.items()))
            raise InputError(name, path, "left out beside a shape")
        if not self.weight > 0:
            raise InputError("weight", self.weight, "above 0")


def _files_apart(workload: Any) -> Any:
    """Put the keys of a workload that name files into ``files``."""
    if not isinstance(workload, dict) or "files" in workload:
        return workload
    files = {name: path for name, path in workload.items() if name not in WORKLOAD_KEYS}
    for name, path in files.items():
        if not isinstance(path, str):
            raise InputError(name, path, "text")
    return {name: workload[name] for name in WORKLOAD_KEYS if name in workload} | {"files": files}


@dataclass(frozen=True, kw_only=True)
class EngineSpec:
    """An engine of a sweep."""

    #: Fields of its configuration that are varied: a list of values, ``{from: 8, to: 32, step: 8}``,
    #: ``{powers_of_two: [16, 128]}``, or ``{expression: lanes // 8}`` of other parameters.
    parameters: Mapping[str, Any]
    #: By name.
    workloads: Mapping[str, Annotated[WorkloadSpec, BeforeValidator(_files_apart)]] = field(
        default_factory=dict
    )
    #: File of another tool (`sim.workloads.reader.read_workload`), whose layers are further workloads.
    layers: str = ""
    #: Fields of its configuration that are not varied; the board's defaults where a field is in neither.
    config: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.workloads and not self.layers:
            raise InputError("workloads", "none", "at least one")


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """A layer of another tool's file that no design of the sweep does."""

    name: str
    where: str  #: File and line.
    reason: str
    macs: int  #: Multiply-accumulates, 0 for other work.


@dataclass(frozen=True, kw_only=True)
class ReadLayers:
    """What was read from another tool's file."""

    source: str  #: Form and name of the file.
    macs: int  #: Multiply-accumulates of all its layers.
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()  #: Statements of the file that no engine follows.
    #: Number of each workload's layer in the file, from 0, by the workload's name.
    numbers: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Strategy:
    """The choice of designs."""

    #: ``grid``: all. ``random``: as many as ``designs``, each once. ``nsga2``, ``tpe``: Optuna's suggestions
    #: from earlier objectives.
    name: Literal["grid", "random", "nsga2", "tpe"] = "grid"
    designs: int = 0  #: Most designs; 0 for all of a grid.
    batch: int = 32  #: Designs suggested at a time by ``nsga2`` (its population) and ``tpe``.

    def __post_init__(self) -> None:
        if self.designs < 0 or (self.name != "grid" and not self.designs):
            raise InputError("designs", self.designs, "at least 1" if self.name != "grid" else "at least 0")
        check_range("batch", self.batch, 2)


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The designs that a fidelity evaluates."""

    #: ``front``: designs that no other dominates, by cheaper fidelities; ``all``.
    of: Literal["front", "all"] = "front"
    #: Steps of one parameter within which neighbours of the front are included.
    neighbours: int = 0
    at_most: int = 0  #: Designs of the front, spread evenly over it by the first objective; 0 for all.
    #: Behaviour of the memory in simulation, as ``loomwork sim --memory``.
    memory: Literal["model", "fast", "jitter"] = "model"

    def __post_init__(self) -> None:
        for name in ("neighbours", "at_most"):
            check_range(name, getattr(self, name), 0)


@dataclass(frozen=True, kw_only=True)
class SweepSpec:
    """A sweep."""

    boards: tuple[str, ...]  #: Names of boards, or paths of their files.
    engines: Mapping[str, EngineSpec]  #: By name; a design has one of each, and they share the board.
    #: Expressions over figures, each with ``min`` or ``max``.
    objectives: Mapping[str, Literal["min", "max"]]
    #: Expressions over parameters and figures; a design that breaks one does not count.
    constraints: tuple[str, ...] = ()
    #: ``strategy``, ``fidelities``: see `Strategy` and `Selection`; every design is predicted, so
    #: ``prediction`` is not among them.
    strategy: Strategy = Strategy()
    fidelities: Mapping[Literal["control", "full", "synthesis"], Selection] = field(default_factory=dict)
    seed: int = 0  #: Of all that is random.
    #: What was read from files of other tools, by engine; not in the sweep's file.
    read: Mapping[str, ReadLayers] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("boards", "engines", "objectives"):
            if not getattr(self, name):
                raise InputError(name, "none", "at least one")
        for name in self.engines:
            check_one_of(f"engines.{name}", name, sorted(known_engines()))
        check_range("seed", self.seed, 0)
        names = [name for engine in self.engines.values() for name in engine.workloads]
        for name in names:
            if names.count(name) > 1 or name in self.engines or not name.isidentifier():
                legal = "an identifier that no engine or other workload has"
                raise InputError("name of a workload", name, legal)

    @property
    def workloads(self) -> dict[str, WorkloadSpec]:
        """All workloads by name."""
        return {name: found for engine in self.engines.values() for name, found in engine.workloads.items()}

    def scope(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return parameters by names of expressions: ``attention.rows``; ``rows`` if only one has it."""
        short = [name.partition(".")[2] for name in parameters]
        named = {name.partition(".")[2]: value for name, value in parameters.items()}
        return {name: value for name, value in named.items() if short.count(name) == 1} | dict(parameters)

    @property
    def names(self) -> set[str]:
        """Names that objectives and constraints may have."""
        found = {"board", *GATES, *OF_WORKLOADS}
        for name, engine in self.engines.items():
            found |= {f"{name}.{gate}" for gate in GATES}
            found |= {f"{workload}.{figure}" for workload in engine.workloads for figure in OF_WORKLOADS}
        return found | set(self.scope({f"{n}.{p}": 0 for n, e in self.engines.items() for p in e.parameters}))

    @property
    def stages(self) -> list[tuple[Fidelity, Selection]]:
        """The fidelities after the prediction, the cheapest first."""
        order: tuple[Literal["control", "full", "synthesis"], ...] = ("control", "full", "synthesis")
        return [(name, self.fidelities[name]) for name in order if name in self.fidelities]


#: Reads a sweep from plain values.
SPEC = TypeAdapter(SweepSpec)


def spec_dict(spec: SweepSpec) -> dict[str, Any]:
    """Return a spec as plain values, as the database keeps it."""
    plain: dict[str, Any] = SPEC.dump_python(spec, mode="json")
    return plain


def spec_of(plain: Mapping[str, Any]) -> SweepSpec:
    """Return the spec of `spec_dict`'s values."""
    return SPEC.validate_python(plain)


def values_of(given: Any) -> tuple[Value, ...] | Expression:
    """Return the values of a parameter as the file has it, or the expression it follows from.

    Raises `ValueError`, which says what is legal, when it is none of the forms that `EngineSpec` names, has
    no value, or has one twice.
    """
    match given:
        case {"expression": str(text), **more} if not more:
            return Expression(text)
        case {"powers_of_two": [int(first), int(last)], **more} if not more and first > 0 and last < 1 << 62:
            values: list[Value] = [1 << n for n in range(62) if first <= 1 << n <= last]
        case {"from": int(first), "to": int(last), **more} if (
            set(more) <= {"step"} and type(step := more.get("step", 1)) is int and step > 0
        ):
            values = list(itertools.islice(range(first, last + 1, step), MOST_VALUES + 1))
        case [*found] | tuple(found) if all(isinstance(value, int | float | str | bool) for value in found):
            values = list(found)
        case _:
            raise ValueError(_FORMS)
    if not values:
        raise ValueError("of at least one value")
    if len(values) > MOST_VALUES or len({(type(value), value) for value in values}) < len(values):
        raise ValueError(f"of at most {MOST_VALUES:,} values, each once")
    return tuple(values)
