"""Attention of one length: what the engine takes, simulated or predicted, and published schedules take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hw.errors import InputError
from sim.engines.attention.baselines import Cost, Machine, Work, fsa, fusemax, ita, three_pass, two_pass

#: The engine's name in the comparison.
OURS = "Loomwork"
#: Published schedules by name.
SCHEDULES: Mapping[str, Callable[[Work, Machine], Cost]] = {
    "FuseMax": fusemax,
    "FSA": fsa,
    "ITA": ita,
    "two passes": two_pass,
    "three passes, unfused": three_pass,
}
#: Those that keep the matrix of scores in memory.
SPILLING = ("ITA", "two passes", "three passes, unfused")


@dataclass(frozen=True, kw_only=True)
class CoSimulation:
    """What a co-simulation counted."""

    cycles: int  #: From start to done, with the board's memory behind every port.
    moved_bytes: int  #: Read and written by the engine.
    exact: bool  #: Whether every bit of the results was the golden model's.
    seconds: float  #: Of simulation, without building the simulator.


@dataclass(frozen=True, kw_only=True)
class AttentionRow:
    """One length of sequence."""

    tokens: int  #: Queries of a head, and keys.
    predicted: Cost  #: What the engine's cycle and traffic model says.
    measured: CoSimulation | None  #: What its gates did; None where they were not simulated.
    published: Mapping[str, Cost]  #: What each of `SCHEDULES` takes, by name.

    def __post_init__(self) -> None:
        costs = [self.ours, self.predicted, *self.published.values()]
        if self.tokens < 1 or any(cost.cycles <= 0 or cost.moved_bytes <= 0 for cost in costs):
            raise InputError(f"row of {self.tokens} tokens", self.tokens, "of positive numbers")

    @property
    def ours(self) -> Cost:
        """What the engine takes: as measured, else as predicted."""
        if self.measured is None:
            return self.predicted
        return Cost(cycles=self.measured.cycles, moved_bytes=self.measured.moved_bytes)

    def cost(self, method: str) -> Cost:
        """Give what `OURS` or one of `SCHEDULES` takes."""
        return self.ours if method == OURS else self.published[method]

    def source(self, method: str) -> str:
        """Say where a method's figures come from."""
        if method != OURS:
            return "formula"
        return "predicted" if self.measured is None else "measured"


def prediction_error(row: AttentionRow, measured: CoSimulation) -> float:
    """Give the relative error of the predicted cycles."""
    return row.predicted.cycles / measured.cycles - 1
