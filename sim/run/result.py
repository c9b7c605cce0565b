"""The result of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from hw.errors import InputError

if TYPE_CHECKING:
    from sim.report.report import Report


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """The result of `sim.run.run.run`."""

    #: Content of the user's output file, in real units; see `sim.run.adapter.EngineAdapter.results`.
    outputs: Mapping[str, NDArray[Any]]
    #: The RTL's outputs in integers; with the golden backend the golden model's.  A control-only simulation
    #: has no ``outputs``, ``integers`` and ``golden``.
    integers: Mapping[str, NDArray[Any]]
    golden: Mapping[str, NDArray[Any]]  #: The golden model's outputs in integers.
    job: Any = field(default=None, repr=False)  #: The adapter's job.
    #: A line for each output or trace that differs from the golden model; empty when the RTL is exact.
    mismatches: tuple[str, ...] = ()
    #: The report; None with the golden backend, which has no cycles to report.
    measured: Report | None = field(default=None, repr=False)
    waves: Path | None = None  #: The waveform file, when one was asked for.
    traces: Mapping[str, Path] = field(default_factory=dict)  #: Of transfers, by the memory's name.
    signals: Path | None = None  #: The log of signals, when one was asked for; see `sim.run.signals`.
    addresses: Mapping[str, int] = field(default_factory=dict)  #: Of the launch's buffers, by argument.

    @property
    def bit_exact(self) -> bool:
        """Whether every output bit equals the golden model's.

        Raises `InputError` of a control-only simulation, which has no outputs.
        """
        if self.measured is not None and self.measured.bit_exact is None:
            raise InputError("control only", True, "false where outputs are asked for")
        return not self.mismatches

    @property
    def report(self) -> Report:
        """The report of a run that simulated gates."""
        if self.measured is None:
            raise InputError("backend", "golden", "rtl where a report is asked for: only gates have cycles")
        return self.measured
