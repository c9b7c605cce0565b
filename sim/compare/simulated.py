"""Co-simulations among the rows of a comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter


@dataclass(frozen=True, kw_only=True)
class CoSimulation:
    """What a co-simulation counted."""

    cycles: int  #: From start to done, with the board's memory behind every port.
    moved_bytes: int  #: Read and written by the engine.
    exact: bool  #: Whether every bit of the results was the golden model's.
    seconds: float  #: Of simulation, without building the simulator.


_CO_SIMULATIONS = TypeAdapter(dict[str, CoSimulation])


def dumped(known: Mapping[str, CoSimulation]) -> Any:
    """Return co-simulations by their keys as JSON has them."""
    return _CO_SIMULATIONS.dump_python(dict(known))


def co_simulations_of(document: Mapping[str, Any]) -> dict[str, CoSimulation]:
    """Take the co-simulations from the content of a comparison's file, by their keys.

    What was wrong is left out, to be looked at again: it may have been the golden model.
    """
    found = _CO_SIMULATIONS.validate_python(document["measured"])
    return {key: measured for key, measured in found.items() if measured.exact}
