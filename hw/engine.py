"""The contract of an engine: configuration, gates, arguments, resources, prediction.

An engine has three layers, each usable without the next.  The **core** has streams and commands in, streams
out.  The **movers** turn descriptors into DMA commands and streams.  The **body**, inside the kernel shell,
has arguments, start and done, and memory ports.  A new engine is a folder in ``hw``, one of the same name in
``sim/engines``, and one line in `hw.registry` (``docs/add-an-engine.md``).
"""

import abc
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from amaranth.lib import wiring

from hw.board import Board
from hw.board.regions import Regions, undivided
from hw.board.resources import RamWords, Resources
from hw.lib.arguments import ArgumentTable
from hw.lib.axi import MAX_BURST_BEATS
from hw.lib.dma.read import ReadDMA
from hw.lib.dma.write import WriteDMA
from hw.lib.place import Placer
from hw.prediction import Prediction

#: Share of the user's region for a default: routing fails long before the region is full.
_DEFAULT_SHARE = 0.8

Config = TypeVar("Config")
Workload = TypeVar("Workload")


class Engine(abc.ABC, Generic[Config, Workload]):
    """An engine, for generator, simulator and reports."""

    #: Name on the command line, of the folder in ``hw`` and of that in ``sim/engines``.
    name: ClassVar[str]
    summary: ClassVar[str]  #: One line for listings.
    #: The frozen dataclass of the configuration; its fields are the YAML keys.
    config_type: ClassVar[type[Any]]
    #: The frozen dataclass of a workload of one launch: shapes, modes and formats as plain values, without
    #: tensors, checked without a configuration.
    workload_type: ClassVar[type[Any]]
    #: Folder with templates of further package files: ``NAME.j2`` becomes the file ``NAME``.
    templates: ClassVar[Path | None] = None
    #: Outstanding bursts of reads and of writes that keep a memory port busy; with fewer the engine waits.
    #: By default those of the DMAs of `hw.lib`.
    bursts_under_way: ClassVar[tuple[int, int]] = (
        ReadDMA.FIFO_BEATS // MAX_BURST_BEATS,
        WriteDMA.OUTSTANDING,
    )
    #: Prefixes of the names of placed cells that only compute: no handshake and no address depends on their
    #: outputs.  A control-only simulation leaves them out; an engine without any has none.
    data_cells: ClassVar[tuple[str, ...]] = ()
    #: Whether its components have models for simulation (`hw.lib.convert.Models`).
    modelled: ClassVar[bool] = False
    #: Whether the bytes of its predictions are those of the host's memory, not of the board's.
    predicts_host: ClassVar[bool] = False

    @abc.abstractmethod
    def default_config(self, board: Board) -> Config:
        """Return the default configuration, which fits ``board``."""

    def first_fit(self, configs: Iterable[Config], board: Board) -> Config:
        """Return the first configuration that leaves a fifth of the user's region free, or else the last."""
        share = Resources(**{name: int(_DEFAULT_SHARE * count) for name, count in board.user.items()})
        for config in configs:
            if self.resources(config, board).first_over(share) is None:
                break
        return config

    @abc.abstractmethod
    def arguments(self, config: Config, board: Board) -> ArgumentTable:
        """Return the table of kernel arguments and counters."""

    @abc.abstractmethod
    def body(self, config: Config, board: Board, placer: Placer) -> wiring.Component:
        """Make the gates: a component with the signature `hw.lib.kernel.BodySignature` of `arguments`."""

    @abc.abstractmethod
    def resources(self, config: Config, board: Board) -> Resources:
        """Estimate the kernel's resources, on the safe side; checked against the board before any work."""

    def ram_words(self, config: Config, board: Board) -> RamWords:
        """Return the RAMs that read or write a word in a busy cycle, by default all of `resources`.

        An engine with a memory that is deeper than one RAM, or of which only some banks work, counts fewer.
        """
        need = self.resources(config, board)
        return RamWords(bram36=need.bram36, uram=need.uram)

    @abc.abstractmethod
    def placement(self, config: Config, board: Board) -> dict[str, int]:
        """Return the memory channel of each memory port, by port name."""

    def regions(self, config: Config, board: Board) -> Regions:
        """Assign the kernel's placed parts to dies; by default all to the die of the memory's ports.

        The gates follow this pure function: paths between regions go from register to register.
        """
        return undivided(board)

    def data_ports(self, config: Config, board: Board) -> tuple[str, ...]:
        """Name the memory ports whose data decide nothing: no handshake and no address depends on them.

        A control-only simulation reads zeros there; by default no port is named.
        """
        return ()

    def signals(self, config: Config) -> Mapping[str, str]:
        """Return signals that a simulation may log, by name: each of one bit, by its path from the kernel's
        top module; by default none.
        """
        return {}

    def check(self, workload: Workload, config: Config, board: Board) -> None:
        """Check that the configuration can execute a workload, as `predict` does; by default by predicting.

        An engine whose predictions of single layers are long checks their sizes alone.
        """
        self.predict(workload, config, board)

    @abc.abstractmethod
    def predict(self, workload: Workload, config: Config, board: Board) -> Prediction:
        """Predict cycles and bytes of a launch with the analytic model: no tensors, no simulation.

        Reports, comparisons, planning and exploration all ask here.  The pages of the engines state the time:
        at most 0.2 s for every launch of theirs, but for attention, which takes 0.2 ms for each different
        pass.  Raises `InputError` when the configuration cannot execute the workload.
        """
