"""Co-simulations among the rows of a comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import GenericAlias
from typing import Any, Generic, Protocol, TypeVar

from pydantic import TypeAdapter

from sim.report.report import Report


class Exactness(Protocol):
    """A row that was compared with a golden model."""

    @property
    def exact(self) -> bool:
        """Whether every bit of the results was the golden model's."""


Simulated = TypeVar("Simulated", bound=Exactness)


class SimulatedRows(Generic[Simulated]):
    """Reads and writes the key ``measured`` of a comparison's file: simulated rows of one class, by key."""

    def __init__(self, kind: type[Simulated]) -> None:
        rows: Any = GenericAlias(dict, (str, kind))  # a type of run time, which a checker does not follow
        self._adapter: TypeAdapter[dict[str, Simulated]] = TypeAdapter(rows)

    def dumped(self, known: Mapping[str, Simulated]) -> Any:
        """Return rows as JSON has them."""
        return self._adapter.dump_python(dict(known))

    def read(self, document: Mapping[str, Any]) -> dict[str, Simulated]:
        """Take the rows from the content of a file.

        A row that differed is left out and made again: the golden model may have been wrong.
        """
        found = self._adapter.validate_python(document["measured"])
        return {key: row for key, row in found.items() if row.exact}


@dataclass(frozen=True, kw_only=True)
class CoSimulation:
    """Figures of a co-simulation."""

    cycles: int  #: From start to done, with the board's memory behind every port.
    moved_bytes: int  #: Read and written by the engine.
    exact: bool  #: Whether every bit of the results was the golden model's.
    seconds: float  #: Of simulation, without building the simulator.
    microjoules: float | None = None  #: Energy of the counted activity; None of rows made before.

    @classmethod
    def of(cls, report: Report) -> CoSimulation:
        """Take the figures from a run's report."""
        return cls(
            cycles=report.cycles.cycles_total,
            moved_bytes=report.traffic.useful_bytes,
            exact=bool(report.bit_exact),
            seconds=report.simulated.run_seconds,
            microjoules=1e-6 * report.energy.energy_total_picojoules if report.energy else None,
        )


CO_SIMULATIONS = SimulatedRows(CoSimulation)
