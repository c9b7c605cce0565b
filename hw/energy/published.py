"""Published power of designs of known activity: fits of two coefficients, and checks by all other designs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter

from hw.edge import read_document, validate
from hw.energy.coefficients import Coefficients, RangeForm
from hw.energy.span import Span

FILE = Path(__file__).with_name("published.yaml")
#: Supply of the fabric that the coefficients are for, in volts.
VOLTS = 0.85
_CELLS = ("lut", "ff", "dsp", "bram36", "uram")
_RAMS = ("bram36", "uram")


class _Cells(BaseModel):
    model_config = ConfigDict(extra="ignore")  # unknown keys are found by `validate`
    lut: int
    ff: int
    dsp: int
    bram36: int
    uram: int


class _Design(BaseModel):
    model_config = ConfigDict(extra="ignore")
    title: str
    use: Literal["fit", "check"]
    coefficient: Literal["scale", "toggles"] | None = None
    watts: float
    clock_mhz: float
    busy: float = 1.0
    toggles: float | None = None
    both_ports: bool = False
    volts: float = VOLTS
    cells: _Cells
    idle: RangeForm
    source: str
    idle_source: str


class _Form(BaseModel):
    model_config = ConfigDict(extra="ignore")
    designs: dict[str, _Design]
    sources: dict[str, str]


_FORM: TypeAdapter[_Form] = TypeAdapter(_Form)


@dataclass(frozen=True, kw_only=True)
class Design:
    """A design with published power."""

    name: str
    title: str
    fits: Literal["scale", "toggles"] | None  #: The coefficient that it fits; None for a check.
    watts: float  #: Published.
    clock_mhz: float
    busy: float  #: Share of the cycles with a clock and work.
    toggles: float | None  #: Share of data bits that toggle; None where it is not known.
    both_ports: bool  #: Whether a RAM reads and writes in a cycle.
    volts: float  #: Supply of the fabric.
    cells: dict[str, int]
    idle: Span  #: Watts without the design.
    source: str  #: Text of the source.

    def predicted(self, coefficients: Coefficients) -> Span:
        """Return the watts that the coefficients predict."""
        picojoules = Span()
        for cell in _CELLS:
            words = (2 if self.both_ports else 1) if cell in _RAMS else 1
            each = coefficients.steady(cell, "clock") + words * coefficients.steady(cell, "access")
            picojoules += self.cells[cell] * (each + words * self._data(cell, coefficients))
        dynamic = picojoules * (self.busy * self.clock_mhz * 1e-6 * (self.volts / VOLTS) ** 2)
        return self.idle + dynamic

    def _data(self, cell: str, coefficients: Coefficients) -> Span:
        """Return picojoules of a cell's data; with known toggles the doubt is that of the scale."""
        if self.toggles is None:
            return coefficients.working(cell)
        return (self.toggles * coefficients.part(cell, "data").value) * coefficients.scale


def load_designs(path: Path = FILE) -> list[Design]:
    """Read a file of designs.

    Raises `InputError` with file and line for an unknown or missing key, a source that the file does not
    have, and a fit without a coefficient or a check with one.
    """
    document = read_document(path)
    form = validate(document, _FORM)
    designs = []
    for name, found in form.designs.items():
        place = ("designs", name)
        for key in ("source", "idle_source"):
            if getattr(found, key) not in form.sources:
                raise document.error((*place, key), "a key of sources: " + ", ".join(form.sources))
        if (found.use == "fit") != (found.coefficient is not None):
            raise document.error((*place, "use"), "fit with a coefficient, or check without one")
        fields = {
            field.name: getattr(found, field.name)
            for field in dataclasses.fields(Design)
            if hasattr(found, field.name)
        }
        further = {
            "name": name,
            "fits": found.coefficient,
            "cells": dict(found.cells),
            "idle": found.idle.span(),
            "source": f"{form.sources[found.source]}. Idle: {form.sources[found.idle_source]}",
        }
        designs.append(Design(**fields | further))
    return designs


def fitted(designs: Iterable[Design], coefficients: Coefficients) -> dict[str, float]:
    """Return the values of the fitted coefficients: first ``scale``, then ``toggles`` with that scale.

    Power is linear in each of them: its values at 0 and at 1 determine the line.
    """
    found: dict[str, float] = {}
    fits = {design.fits: design for design in designs if design.fits}
    for name in ("scale", "toggles"):
        design = fits[name]
        low, high = (design.predicted(_with(coefficients, name, value)).value for value in (0.0, 1.0))
        found[name] = (design.watts - low) / (high - low)
        coefficients = _with(coefficients, name, found[name])
    return found


def _with(coefficients: Coefficients, name: str, value: float) -> Coefficients:
    """Return coefficients with another value of a fitted one."""
    exact = Span(value, value, value)
    if name == "scale":
        return dataclasses.replace(coefficients, scale=exact)
    return dataclasses.replace(coefficients, toggles=exact)
