"""Layers of other tools' files as workloads of an engine; those that it cannot do are listed."""

import dataclasses
import json
import keyword
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from hw.errors import InputError
from sim.run.run import find_adapter
from sim.sweep.points import GATES, OF_WORKLOADS
from sim.sweep.spec import EngineSpec, LeftOut, ReadLayers, SweepSpec, WorkloadSpec
from sim.sweep.task import Task, legal_config, refusal
from sim.workloads.layers import Layer, Workload
from sim.workloads.reader import read_workload


def with_layers(spec: SweepSpec, variables: Mapping[str, int]) -> SweepSpec:
    """Return a sweep whose engines have the layers of their files as workloads.

    A layer that no board's default does is left out, with the reason; so is one of another kind.
    ``variables`` are those of the files, see `read_workload`.

    Raises `InputError` for a file that is wrong, or whose layers are all left out.
    """
    engines, read = dict(spec.engines), {}
    taken = [*spec.workloads, *spec.engines]
    for name, engine in spec.engines.items():
        if engine.layers:
            if not find_adapter(name).takes_layers:
                legal = f"left out: {name} takes no layers; name its files in a sweep's .yaml (docs/sweep.md)"
                raise InputError(f"layers of {name}", engine.layers, legal)
            found = read_workload(Path(engine.layers), variables)
            more, read[name] = _read(name, engine, found, spec, taken)
            engines[name] = dataclasses.replace(engine, workloads={**engine.workloads, **more}, layers="")
            taken += more
    if variables and not read:
        raise InputError("--dim", next(iter(variables)), "left out: no file of layers is read")
    return dataclasses.replace(spec, engines=engines, read=read)


def _read(
    name: str, engine: EngineSpec, found: Workload, spec: SweepSpec, taken: Iterable[str]
) -> tuple[dict[str, WorkloadSpec], ReadLayers]:
    numbers = {layer.name: number for number, layer in reversed(list(enumerate(found.layers)))}
    names = list(taken)
    workloads: dict[str, WorkloadSpec] = {}
    left_out, numbered = [], {}
    known: dict[str, str] = {}
    for number, layer, shape in _shaped(name, found, numbers):
        reason = shape if isinstance(shape, str) else ""
        if not isinstance(shape, str):
            asked = WorkloadSpec(shape=shape, weight=layer.count, title=layer.name)
            key = json.dumps(shape, sort_keys=True)
            if key not in known:
                known[key] = _refusal(name, engine, asked, spec.boards)
            reason = known[key]
            if not reason:
                called = _identifier(layer.name, names)
                names.append(called)
                workloads[called], numbered[called] = asked, number
        if reason:
            where = layer.where.replace(engine.layers, Path(engine.layers).name)
            left_out.append(LeftOut(name=layer.name, where=where, reason=reason, macs=layer.macs))
    if not workloads:
        raise InputError(
            f"layers of {engine.layers}",
            len(found.layers),
            f"such that {name} does one: {left_out[0].reason}",
        )
    return workloads, ReadLayers(
        source=f"{found.source}, {Path(engine.layers).name}",
        macs=sum(layer.macs for layer in found.layers),
        left_out=tuple(left_out),
        notes=found.notes,
        numbers=numbered,
    )


def _shaped(
    engine: str, found: Workload, numbers: Mapping[str, int]
) -> Iterator[tuple[int, Layer, Mapping[str, Any] | str]]:
    """Yield each layer with its number and its shape, or the reason that the engine has none for it.

    Attention stands for its parts where the engine does it.
    """
    adapter = find_adapter(engine)
    shapes: list[tuple[int, Layer, Mapping[str, Any] | str]] = []
    covered: set[str] = set()
    for layer in found.attentions:
        try:
            shapes.append((numbers[layer.parts[0]], layer, adapter.layer_shape(layer)))
            covered |= set(layer.parts)
        except InputError:
            continue  # its parts may be done one by one
    for number, layer in enumerate(found.layers):
        if layer.name in covered:
            continue
        try:
            shapes.append((number, layer, adapter.layer_shape(layer)))
        except InputError as error:
            shapes.append((number, layer, str(error)))
    yield from sorted(shapes, key=lambda each: each[0])


def _refusal(name: str, engine: EngineSpec, asked: WorkloadSpec, boards: Iterable[str]) -> str:
    """Return why no board's default does a workload; nothing where one does."""
    reason = ""
    for board in boards:
        try:
            config = legal_config(name, board, engine.config)
        except InputError as error:
            reason = str(error)
            continue
        reason = refusal(
            Task(
                fidelity="prediction", engine=name, board=board, config=config, workload="layer", asked=asked
            )
        )
        if not reason:
            return ""
    return reason


def _identifier(name: str, taken: Iterable[str]) -> str:
    """Return a name of expressions for a layer, which none has yet."""
    base = re.sub(r"\W", "_", name, flags=re.ASCII).strip("_") or "layer"
    base = base if base.isidentifier() and not keyword.iskeyword(base) else f"layer_{base}"
    used = {*taken, *GATES, *OF_WORKLOADS}
    found, number = base, 2
    while found in used:
        found, number = f"{base}_{number}", number + 1
    return found
