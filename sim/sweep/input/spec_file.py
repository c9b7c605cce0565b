"""The file of a sweep, read and checked, with the layers of other tools' files."""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import TypeAdapter

from hw.board import load_board
from hw.edge import Document, Location, read_document, validate
from hw.errors import InputError
from hw.registry import find_engine
from sim.run.run import find_adapter
from sim.sweep.expression import LEGAL, Expression
from sim.sweep.input.layers import with_layers
from sim.sweep.spec import SPEC, WORKLOAD_KEYS, EngineSpec, SweepSpec, WorkloadSpec, values_of


def read_spec(
    path: Path,
    variables: Mapping[str, int] | None = None,
    *,
    boards: Sequence[str] = (),
    layers: Path | None = None,
) -> SweepSpec:
    """Read a sweep's file; files of its workloads become absolute paths.

    ``variables`` are those of files of layers, see `sim.workloads.reader.read_workload`. ``boards`` and
    ``layers`` take the place of the file's, ``layers`` of all workloads.

    Raises `InputError` for the first key or value that is wrong; the message names file and line.
    """
    document = read_document(path)
    here = os.path.relpath(Path.cwd(), path.absolute().parent)
    if boards:
        named = [str(Path(here, each)) if each.endswith((".yaml", ".yml")) else each for each in boards]
        document.data["boards"] = named
    engines = document.data.get("engines")
    if layers is not None and isinstance(engines, dict):
        if len(engines) != 1:
            raise InputError("--workload", str(layers), "left out for a sweep of several engines")
        for engine in engines.values():
            if isinstance(engine, dict):
                engine.pop("workloads", None)
                engine["layers"] = str(Path(here, layers))
    return _checked_spec(document, variables)


def layers_spec(
    engine: str,
    layers: Path,
    *,
    boards: Sequence[str],
    vary: Sequence[str] = (),
    simulate: int = 0,
    variables: Mapping[str, int] | None = None,
) -> SweepSpec:
    """Return the sweep of an engine's shapes over the layers of a file, for time and DSPs.

    ``vary``: fields with values, ``rows=8,16`` or ``rows={powers_of_two: [8, 32]}``; without any, those of
    the engine's adapter. ``simulate``: designs of the front whose control is simulated.

    Raises `InputError` for the first value or line that is wrong.
    """
    found = find_adapter(engine)
    parameters = dict(map(_varied, vary)) or {name: list(values) for name, values in found.space.items()}
    data = {
        "boards": list(boards),
        "engines": {engine: {"parameters": parameters, "layers": str(layers)}},
        "objectives": {"microseconds": "min", "dsp": "min"},
        "fidelities": {"control": {"of": "front", "at_most": simulate}} if simulate else {},
    }
    return _checked_spec(Document(path=Path("options"), data=data), variables)


def _varied(text: str) -> tuple[str, Any]:
    """Parse ``rows=8,16``, or a form of a sweep's file behind the equals sign."""
    name, equals, values = text.partition("=")
    try:
        found = yaml.safe_load(values if values.strip().startswith(("[", "{")) else f"[{values}]")
    except yaml.YAMLError:
        found = None
    if not equals or not name or not found:
        raise InputError("--vary", text, "FIELD=VALUES, as in rows=8,16 or rows={powers_of_two: [8, 32]}")
    return name, found


def _checked_spec(document: Document, variables: Mapping[str, int] | None = None) -> SweepSpec:
    """Check a sweep as plain values; paths are relative to the folder of its file; see `read_spec`."""
    spec = validate(document, SPEC)
    if spec.read:
        raise document.error(("read",), "left out: layers names the file to read")
    for name, engine in spec.engines.items():
        _check_engine(document, name, engine)
    folder = document.path.absolute().parent
    boards = [str(folder / name) if name.endswith((".yaml", ".yml")) else name for name in spec.boards]
    for number, name in enumerate(boards):
        try:
            load_board(name)
        except InputError as error:
            raise document.error(("boards", number), error.legal) from error
    engines = {
        name: dataclasses.replace(
            engine,
            workloads={key: _absolute(asked, folder) for key, asked in engine.workloads.items()},
            layers=str(folder / engine.layers) if engine.layers else "",
        )
        for name, engine in spec.engines.items()
    }
    spec = with_layers(dataclasses.replace(spec, boards=tuple(boards), engines=engines), variables or {})
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
    return spec


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
        kinds = {kind.option: kind for kind in find_adapter(name).input_files}
        for option, path in asked.files.items():
            if option not in kinds:
                legal = "one of " + ", ".join((*WORKLOAD_KEYS, *kinds))
                raise document.error((*location, option), legal, value=option)
            kinds[option].check(document.where((*location, option)), document.path.parent / path)


def _absolute(workload: WorkloadSpec, folder: Path) -> WorkloadSpec:
    files = {name: str(folder / path) for name, path in workload.files.items()}
    return dataclasses.replace(workload, files=files)
