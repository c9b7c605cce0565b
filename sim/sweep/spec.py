"""The file of a sweep: parameters, workloads, objectives, and the fidelities of designs."""

import dataclasses
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, TypeAdapter

from hw.board import load_board
from hw.edge import Document, Location, read_document, validate
from hw.errors import InputError, check_one_of, check_range
from hw.registry import find_engine, known_engines
from sim.host.paths import check_readable
from sim.run.run import find_adapter
from sim.sweep.expression import LEGAL, Expression
from sim.sweep.points import GATES, OF_WORKLOADS, Fidelity, Value

#: Most values of one parameter.
MOST_VALUES = 10_000
#: Keys of a workload in the file; all others are options of ``loomwork sim`` that name a file.
_WORKLOAD_KEYS = ("shape", "weight")
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
    files = {name: path for name, path in workload.items() if name not in _WORKLOAD_KEYS}
    for name, path in files.items():
        if not isinstance(path, str):
            raise InputError(name, path, "text")
    return {name: workload[name] for name in _WORKLOAD_KEYS if name in workload} | {"files": files}


@dataclass(frozen=True, kw_only=True)
class EngineSpec:
    """An engine of a sweep."""

    #: Fields of its configuration that are varied: a list of values, ``{from: 8, to: 32, step: 8}``,
    #: ``{powers_of_two: [16, 128]}``, or ``{expression: lanes // 8}`` of other parameters.
    parameters: Mapping[str, Any]
    workloads: Mapping[str, Annotated[WorkloadSpec, BeforeValidator(_files_apart)]]  #: By name.
    #: Fields of its configuration that are not varied; the board's defaults where a field is in neither.
    config: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.workloads:
            raise InputError("workloads", "none", "at least one")


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


_SPEC = TypeAdapter(SweepSpec)


def read_spec(path: Path) -> SweepSpec:
    """Read a sweep's file; files of its workloads become absolute paths.

    Raises `InputError` for the first key or value that is wrong; the message names file and line.
    """
    document = read_document(path)
    spec = validate(document, _SPEC)
    for name, engine in spec.engines.items():
        _check_engine(document, name, engine)
    for location, text in _expressions(spec):
        known = spec.names
        if location[0] == "engines":  # a parameter: of those with values
            parameters = spec.engines[str(location[1])].parameters
            known = {name for name, given in parameters.items() if not _is_expression(given)}
        try:
            unknown = sorted(Expression(text).names - known)
        except ValueError as error:
            raise document.error(location, f"an expression: {LEGAL}", value=text) from error
        if unknown:
            raise document.error(location, "an expression over " + ", ".join(sorted(known)), value=text)
    folder = path.absolute().parent
    boards = [str(folder / name) if name.endswith((".yaml", ".yml")) else name for name in spec.boards]
    for number, name in enumerate(boards):
        try:
            load_board(name)
        except InputError as error:
            raise document.error(("boards", number), error.legal) from error
    engines = {
        name: dataclasses.replace(
            engine, workloads={key: _absolute(asked, folder) for key, asked in engine.workloads.items()}
        )
        for name, engine in spec.engines.items()
    }
    return dataclasses.replace(spec, boards=tuple(boards), engines=engines)


def spec_dict(spec: SweepSpec) -> dict[str, Any]:
    """Return a spec as plain values, as the database keeps it."""
    plain: dict[str, Any] = _SPEC.dump_python(spec, mode="json")
    return plain


def spec_of(plain: Mapping[str, Any]) -> SweepSpec:
    """Return the spec of `spec_dict`'s values."""
    return _SPEC.validate_python(plain)


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


def _expressions(spec: SweepSpec) -> list[tuple[Location, str]]:
    found: list[tuple[Location, str]] = [(("objectives", text), text) for text in spec.objectives]
    found += [(("constraints", n), text) for n, text in enumerate(spec.constraints)]
    for name, engine in spec.engines.items():
        for parameter, given in engine.parameters.items():
            if _is_expression(given):
                found.append((("engines", name, "parameters", parameter), given["expression"]))
    return found


def _is_expression(given: Any) -> bool:
    return isinstance(given, Mapping) and isinstance(given.get("expression"), str)


def _check_engine(document: Document, name: str, spec: EngineSpec) -> None:
    """Check an engine's fields, and the shapes and files of its workloads."""
    engine = find_engine(name)
    fields = [field.name for field in dataclasses.fields(engine.config_type)]
    for part in ("parameters", "config"):
        for key in getattr(spec, part):
            if key not in fields:
                location: Location = ("engines", name, part, key)
                raise document.error(location, "one of " + ", ".join(fields), value=key)
    for parameter, given in spec.parameters.items():
        location = ("engines", name, "parameters", parameter)
        try:
            values_of(given)
        except ValueError as error:
            raise document.error(location, str(error)) from error
        if parameter in spec.config:
            location = ("engines", name, "config", parameter)
            raise document.error(location, "left out: it is among the parameters")
    for workload, asked in spec.workloads.items():
        location = ("engines", name, "workloads", workload)
        if asked.shape:
            validate(document.part(*location, "shape"), TypeAdapter(engine.workload_type))
        options = [kind.option for kind in find_adapter(name).input_files]
        for option, path in asked.files.items():
            if option not in options:
                legal = "one of " + ", ".join((*_WORKLOAD_KEYS, *options))
                raise document.error((*location, option), legal, value=option)
            check_readable(document.where((*location, option)), document.path.parent / path)


def _absolute(workload: WorkloadSpec, folder: Path) -> WorkloadSpec:
    files = {name: str(folder / path) for name, path in workload.files.items()}
    return dataclasses.replace(workload, files=files)
