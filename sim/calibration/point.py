"""A calibration point: a published figure, the experiments that should give it, and the figure they give."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hw.board import Memory
from sim.calibration.experiment import Bench, Experiment, Outcome
from sim.calibration.program import Program
from sim.memory.config import MemoryConfig, Timing

#: How far a point that the models answer for may be from the published figure.
TOLERANCE = 0.10

#: A port of the memory itself, in its own clock; and the 512-bit ports of Vitis kernels.
NATIVE = Bench(ports=1, data_bits=256)
VITIS = Bench(ports=32, data_bits=512)
VITIS_MHZ = 300.0
BEAT_BYTES = VITIS.data_bits // 8


@dataclass(frozen=True, kw_only=True)
class Point:
    """One published figure.

    Parameters
    ----------
    key
        Number in the table; points with a letter share an experiment's kind.
    title
        The pattern.
    published, unit
        The figure.
    source
        Who measured it, on what.
    experiments
        By name within the point.
    measure
        From the experiments' outcomes to the figure.
    held_out
        Whether it is outside the list that must hold; one that had a part in choosing a parameter says so in
        ``note``.
    at_least
        Whether the figure is a lower bound: the measurement was limited by something else.
    note
        What a reader has to know of a deviation.
    """

    key: str
    title: str
    published: float
    unit: str
    source: str
    experiments: Mapping[str, Experiment]
    measure: Callable[[Mapping[str, Outcome]], float]
    held_out: bool = False
    at_least: bool = False
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A point with the model's figure."""

    point: Point
    value: float

    @property
    def deviation(self) -> float:
        """Relative to the published figure; 0 for a lower bound that is exceeded."""
        deviation = self.value / self.point.published - 1
        return 0.0 if self.point.at_least and deviation > 0 else deviation

    @property
    def within(self) -> bool:
        """Whether it is within `TOLERANCE`."""
        return abs(self.deviation) <= TOLERANCE


def memory_of(
    memory: Memory,
    bench: Bench,
    *,
    timing: Timing | None = None,
    clock_mhz: float = VITIS_MHZ,
    beside: Sequence[int] | None = None,
    max_beats: int = 256,
    working_set_bytes: int = 0,
) -> MemoryConfig:
    """Give a bench's memory: a board's, with ports beside channels 0, 1, 2... unless told otherwise."""
    spread = [port % memory.channels for port in range(bench.ports)]
    return MemoryConfig(
        name=memory.name,
        timing=timing or memory.timing,
        channels=memory.channels,
        channel_bytes=memory.channel_bytes,
        port_channels=tuple([*(beside or ()), *spread][: bench.ports]),
        kernel_clock_mhz=clock_mhz,
        max_burst_beats=max_beats,
        working_set_bytes=working_set_bytes,
    )


def stream(
    channel_bytes: int,
    channel: int,
    *,
    bytes_moved: int,
    burst_bytes: int = 1024,
    outstanding: int = 64,
    interval_cycles: int = 0,
) -> Program:
    """Give a sequential run of a 512-bit port through one channel."""
    return Program(
        base=channel * channel_bytes,
        window_bytes=channel_bytes,
        stride_bytes=burst_bytes,
        beats=burst_bytes // BEAT_BYTES,
        count=bytes_moved // burst_bytes,
        outstanding=outstanding,
        interval_cycles=interval_cycles,
    )


def total(outcomes: Mapping[str, Outcome]) -> float:
    """Give the bytes of all ports over the time of the longest, in GB/s, of the only experiment."""
    (outcome,) = outcomes.values()
    return outcome.gb_per_s()
